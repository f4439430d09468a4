// tl_compile refuses what cannot be compiled, and says what could be.
#define TL_EXPERIMENTAL
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/abi/abi_testing.h"

namespace {

using border::Sized;

tl_status Compile(const tl_compile_options& options) {
  tl_kernel* kernel = nullptr;
  const tl_status status = tl_compile(families::SharedContext(), &options, &kernel);
  EXPECT_EQ(status == TL_OK, kernel != nullptr);
  tl_kernel_release(kernel);
  return status;
}

TEST(Compile, SourceOrFamily) {
  tl_compile_options options = Sized<tl_compile_options>();
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "exactly one of source and family");
  options.source = "";
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "source is empty");
  options.source = "tl 1.0";
  options.family = "gemm";
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "exactly one of source and family");
  options.source = nullptr;
  options.family = "";
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "family is empty");
  options.family = "gem";
  EXPECT_FAILS(Compile(options), TL_NOT_FOUND, "there is no family 'gem'");
  for (const char* name : {"gemm", "softmax", "vector_add"}) {
    EXPECT_NE(border::LastMessage().find(name), std::string::npos) << name;
  }
}

TEST(Compile, Targets) {
  const std::string source = border::AddProgram(1);
  for (const char* target : {"sm_91", "H2000", "cpuu", "", "sm_90a ", "SM_90A?"}) {
    tl_compile_options options = border::SourceOptions(source, target);
    const tl_status status = Compile(options);
    EXPECT_TRUE(status == TL_NOT_FOUND || status == TL_INVALID_ARGUMENT) << target;
    if (status == TL_NOT_FOUND) {
      EXPECT_NE(border::LastMessage().find("there is no target or GPU '"), std::string::npos);
      for (const char* name : {"sm_90a", "cpu", "reference"})
        EXPECT_NE(border::LastMessage().find(name), std::string::npos) << border::LastMessage();
    }
  }
  tl_compile_options options = border::SourceOptions(source, nullptr);
  options.device = 99;
  EXPECT_FAILS(Compile(options), TL_NOT_FOUND, "there is no device 99");
  options = border::SourceOptions(source, "reference");
  options.shared_budget = -1;
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "shared_budget is -1; it is a number of");
}

TEST(Compile, Parameters) {
  tl_compile_options options = Sized<tl_compile_options>();
  options.family = "gemm";
  options.target = "reference";
  options.num_params = 1;
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "params is NULL but num_params is not 0");
  const auto with = [&](const char* name, const char* value) {
    const tl_param param{name, value};
    options.params = &param;
    return Compile(options);
  };
  EXPECT_FAILS(with(nullptr, "1"), TL_INVALID_ARGUMENT, "params[0] has no name");
  EXPECT_FAILS(with("M", nullptr), TL_INVALID_ARGUMENT, "params[0] has no value");
  EXPECT_FAILS(with("m", "1"), TL_INVALID_ARGUMENT, "'gemm' has no parameter 'm'; it has M, N");
  EXPECT_FAILS(with("t", "bf15"), TL_INVALID_ARGUMENT, "bf15");
  EXPECT_FAILS(with("M", "-1"), TL_INVALID_ARGUMENT, "dim 'M' must be between 0 and");
  EXPECT_FAILS(with("M", "99999999999999999999"), TL_INVALID_ARGUMENT, "of 'M'");
  EXPECT_FAILS(with("M", ""), TL_INVALID_ARGUMENT, "the value '' of 'M'");
  EXPECT_GT(border::LastInfo().line, 0);
  const tl_param twice[] = {{"M", "1"}, {"N", "2"}, {"M", "3"}};
  options.params = twice;
  options.num_params = 3;
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "'M' is given twice, as '1' and as '3'");
}

TEST(Compile, ErrorsHavePlaces) {
  const std::string wrong = "tl 1.0\nkernel k() {\n  launch {\n    clear x\n  }\n}\n";
  EXPECT_FAILS(Compile(border::SourceOptions(wrong, "reference")), TL_INVALID_ARGUMENT,
               "unknown name 'x'");
  const tl_error_info info = border::LastInfo();
  EXPECT_EQ(info.reason, TL_REASON_SEMANTICS);
  EXPECT_EQ(info.line, 4);
  EXPECT_EQ(info.column, 11);
  EXPECT_EQ(info.end_line, 4);
  EXPECT_EQ(info.end_column, 12);
  EXPECT_STREQ(info.log, "");
  EXPECT_FAILS(Compile(border::SourceOptions("tl 1.0 kernl", "reference")), TL_INVALID_ARGUMENT,
               "");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_SYNTAX);
}

TEST(Compile, TextsThatAreNone) {
  const std::string good = border::AddProgram(1);
  tl_compile_options options = border::SourceOptions(good, "reference");
  std::string huge(100 << 20, ' ');
  options.source = huge.c_str();
  options.source_size = huge.size();
  EXPECT_FAILS(Compile(options), TL_RESOURCE_EXHAUSTED, "has 104857600 bytes; the limit is");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_LIMIT);
  options.source_size = static_cast<size_t>(-2);  // no such string exists
  EXPECT_FAILS(Compile(options), TL_RESOURCE_EXHAUSTED, "the limit is");
  const std::string nul = border::AddProgram(1) + '\0' + "x";
  options.source = nul.data();
  options.source_size = nul.size();
  EXPECT_FAILS(Compile(options), TL_INVALID_ARGUMENT, "");
  options.source_size = nul.size() - 2;  // a size that is no NUL's place
  EXPECT_EQ(Compile(options), TL_OK) << families::LastError();
  options.source_size = 0;
  EXPECT_EQ(Compile(options), TL_OK) << families::LastError();
  const std::string invalid = "tl 1.0 \xff\xfe";
  EXPECT_FAILS(Compile(border::SourceOptions(invalid, "reference")), TL_INVALID_ARGUMENT, "");
}

// Threads, grids and tiles that no target has are refused when compiled.
TEST(Compile, Limits) {
  struct Row {
    const char* head;
    const char* body;
    const char* message;
  };
  const Row rows[] = {
      {"threads=0", "", "threads must be between 1 and 1024, found 0"},
      {"threads=1025", "", "threads must be between 1 and 1024, found 1025"},
      {"threads=1024 groups=2", "", "makes 2048 threads in a block; at most 1024"},
      {"groups=17", "", "groups must be between 1 and 16"},
      {"m in -3", "", "axis 'm' has a negative extent: -3"},
      {"", "x = alloc_shared<f32>[1048577]", "between 1 and 1048576"},
      {"", "x = alloc_shared<f32>[1048576, 1048576]", "more than 16777216 elements"},
      {"", "parallel i, j in [16777216, 16777216] { }", "more than 16777216 iterations"},
  };
  for (const char* target : {"reference", "cpu", "sm_80"}) {
    for (const Row& row : rows) {
      const std::string source =
          std::string("tl 1.0\nkernel k() {\n launch ") + row.head + " { " + row.body + " }\n}\n";
      const tl_status status = Compile(border::SourceOptions(source, target));
      EXPECT_TRUE(status == TL_INVALID_ARGUMENT || status == TL_RESOURCE_EXHAUSTED) << row.head;
      EXPECT_NE(border::LastMessage().find(row.message), std::string::npos)
          << border::LastMessage();
    }
  }
  // 4 MiB of shared memory: a matter of the target.
  const std::string big =
      "tl 1.0\nkernel k(N: dim) {\n out Y: tensor<f32>[N]\n launch {\n x = "
      "alloc_shared<f32>[1048576]\n"
      " clear x copy x -> Y[0]\n }\n}\n";
  EXPECT_FAILS(Compile(border::SourceOptions(big, "sm_80")), TL_RESOURCE_EXHAUSTED, "4194304");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_LIMIT);
}

// "a=1 b=2" behind `words` in the last error, up to " (".
std::vector<std::pair<std::string, std::string>> SuggestedBy(const std::string& words) {
  const std::string message = border::LastMessage();
  const size_t at = message.find(words);
  std::vector<std::pair<std::string, std::string>> values;
  if (at == std::string::npos) return values;
  std::istringstream text(message.substr(at + words.size()));
  for (std::string word; text >> word && word[0] != '(';) {
    const size_t equals = word.find('=');
    values.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return values;
}

// What needs more memory than there is is refused with both numbers and with what fits, which does.
TEST(Compile, TooLargeTilesComeWithTheLargestThatFit) {
  constexpr char kTiles[] =
      "tl 1.0\nkernel tiles(N: dim) {\n  in X: tensor<f32>[N]\n  out Y: tensor<f32>[N]\n"
      "  tune rows in {96, 32, 48, 64}\n  launch n in ceildiv(N, 864 * rows) {\n"
      "    x = alloc_shared<f32>[864 * rows]\n    copy X[n*864*rows] -> x\n"
      "    copy x -> Y[n*864*rows]\n  }\n}\n";
  struct Row {
    const char* family;
    std::vector<tl_param> params;
    const char* target;
    int64_t budget;
    std::vector<const char*> words;
  };
  const Row rows[] = {
      {nullptr,
       {},
       "sm_90a",
       0,
       {"take 331776 bytes", "sm_90a has 232448", "rows=64 (221184 bytes)"}},
      {nullptr,
       {},
       "sm_80",
       0,
       {"take 331776 bytes", "sm_80 has 166912", "rows=48 (165888 bytes)"}},
      {nullptr, {}, "cpu", 120000, {"the budget given is 120000", "rows=32 (110592 bytes)"}},
      {"gemm",
       {{"bm", "256"}, {"bn", "256"}, {"bk", "128"}, {"stages", "4"}},
       "sm_80",
       0,
       {"does not hold for the values given: 524288 <= "}},
      {"gemm", {}, "cpu", 100000, {"the budget given is 100000"}},
  };
  tl_context* context = families::SharedContext();
  for (const Row& row : rows) {
    tl_compile_options options = border::SourceOptions(kTiles, row.target);
    if (row.family) options.source = nullptr, options.source_size = 0, options.family = row.family;
    options.shared_budget = row.budget;
    options.params = row.params.data();
    options.num_params = row.params.size();
    const char* data = nullptr;
    size_t size = 0;
    EXPECT_NE(tl_query(context, &options, &data, &size), TL_OK);
    for (const char* words : row.words)
      EXPECT_NE(border::LastMessage().find(words), std::string::npos) << border::LastMessage();
    const auto values = SuggestedBy("the largest of its configurations that fits is ");
    ASSERT_FALSE(values.empty()) << border::LastMessage();
    std::vector<tl_param> params;
    for (const auto& [name, value] : values) params.push_back({name.c_str(), value.c_str()});
    options.params = params.data();
    options.num_params = params.size();
    EXPECT_EQ(tl_query(context, &options, &data, &size), TL_OK) << border::LastMessage();
  }
  // Where nothing fits there is nothing to suggest.
  tl_compile_options options = border::SourceOptions(kTiles, "cpu");
  options.shared_budget = 1000;
  EXPECT_FAILS(Compile(options), TL_RESOURCE_EXHAUSTED, "the budget given is 1000");
  EXPECT_TRUE(SuggestedBy("that fits is ").empty());
}

TEST(Compile, LastErrorOfEachThread) {
  EXPECT_FAILS(tl_context_retain(nullptr), TL_INVALID_ARGUMENT, "context is NULL");
  std::thread other([] {
    tl_error_info info = Sized<tl_error_info>();
    EXPECT_EQ(tl_last_error(&info), TL_NOT_FOUND);
    EXPECT_FAILS(tl_kernel_retain(nullptr), TL_INVALID_ARGUMENT, "kernel is NULL");
  });
  other.join();
  EXPECT_EQ(border::LastMessage(), "context is NULL");
  // Success does not disturb it.
  EXPECT_EQ(Compile(border::SourceOptions(border::AddProgram(1), "reference")), TL_OK);
  EXPECT_EQ(border::LastMessage(), "context is NULL");
}

}  // namespace
