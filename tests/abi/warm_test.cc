// Plans warm a cache; queries tell what is in it.
#include <fstream>
#include <set>

#define TL_EXPERIMENTAL
#include "tests/abi/abi_testing.h"
#include "tests/abi/temp_dir.h"

namespace {

using border::Sized;
using border::TempDir;

border::Context ContextOn(const std::string& cache) {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_dir = cache.c_str();
  tl_context* context = nullptr;
  EXPECT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
  return border::Context(context);
}

struct Seen {
  std::vector<std::string> lines;  // "line program params target"
  std::vector<std::string> messages;
  std::set<uint64_t> done;
  int stop_after = -1;
};

int Record(void* user, const tl_warm_event* e) {
  Seen& seen = *static_cast<Seen*>(user);
  seen.lines.push_back(std::to_string(e->line) + " " + e->program + " " + e->params + " " +
                       e->target);
  if (e->status != TL_OK) seen.messages.push_back(seen.lines.back() + ": " + e->message);
  seen.done.insert(e->done);
  return static_cast<int>(seen.done.size()) == seen.stop_after;
}

struct Warmed {
  tl_status status;
  tl_warm_result result;
  Seen seen;
};

Warmed WarmUp(tl_context* context, const std::string& plan, std::vector<const char*> targets = {},
              const char* directory = nullptr, int stop_after = -1) {
  Warmed out{TL_OK, Sized<tl_warm_result>(), {}};
  out.seen.stop_after = stop_after;
  tl_warm_options options = Sized<tl_warm_options>();
  options.jobs = 2;
  options.plan = plan.c_str();
  options.plan_size = TL_ZERO_TERMINATED;
  options.directory = directory;
  options.targets = targets.data();
  options.num_targets = targets.size();
  options.progress = Record;
  options.user = &out.seen;
  out.status = tl_warm(context, &options, &out.result);
  std::sort(out.seen.lines.begin(), out.seen.lines.end());
  return out;
}

constexpr char kPlan[] =
    "plan = 1\ntargets = [\"reference\"]\n"
    "[[kernel]]\nfamily = \"vector_add\"\nparams = { t = [\"f32\", \"f16\"] }\n"
    "[[kernel]]\nfile = \"add.tl\"\n";

TEST(Warm, CompilesWhatIsNotThere) {
  const TempDir dir;
  std::ofstream(dir / "add.tl") << border::AddProgram(7);
  const std::string directory = dir / ".";
  for (const uint64_t compiled : {3u, 0u}) {
    const border::Context context = ContextOn(dir / "cache");
    const Warmed warmed = WarmUp(context.get(), kPlan, {}, directory.c_str());
    EXPECT_EQ(warmed.status, TL_OK) << families::LastError();
    EXPECT_EQ(warmed.result.total, 3u);
    EXPECT_EQ(warmed.result.compiled, compiled);
    EXPECT_EQ(warmed.result.present, 3 - compiled);
    EXPECT_EQ(warmed.result.failed, 0u);
    EXPECT_EQ(warmed.seen.lines,
              (std::vector<std::string>{"3 vector_add t=f16 reference",
                                        "3 vector_add t=f32 reference", "6 add.tl  reference"}));
    EXPECT_EQ(warmed.seen.done, (std::set<uint64_t>{1, 2, 3}));
    EXPECT_EQ(border::Stats(context.get()).compiles, compiled);
  }
  // What was warmed is what is asked for later.
  const border::Context context = ContextOn(dir / "cache");
  ASSERT_EQ(tl_seal(context.get()), TL_OK);
  const int32_t reference = families::FindDevice(context.get(), "reference");
  EXPECT_TRUE(families::Compile(context.get(), "vector_add", {{"t", "f16"}}, reference));
  EXPECT_TRUE(families::Compile(context.get(), border::AddProgram(7), {}, reference));
}

TEST(Warm, TargetsOfTheCaller) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  const std::string plan =
      "plan = 1\n[[kernel]]\nfamily = \"vector_add\"\n"
      "[[kernel]]\nfamily = \"vector_add\"\ntargets = [\"sm_80\", \"reference\"]\n"
      "params = { t = \"f16\" }\n";
  const Warmed none = WarmUp(context.get(), plan);
  EXPECT_EQ(none.status, TL_INVALID_ARGUMENT);
  EXPECT_NE(border::LastMessage().find("names targets"), std::string::npos);
  EXPECT_EQ(border::LastInfo().line, 2);
  // The second keeps those of its own that are asked for.
  const Warmed warmed = WarmUp(context.get(), plan, {"reference"});
  EXPECT_EQ(warmed.status, TL_OK) << families::LastError();
  EXPECT_EQ(warmed.seen.lines,
            (std::vector<std::string>{"2 vector_add  reference", "4 vector_add t=f16 reference"}));
  EXPECT_EQ(WarmUp(context.get(), plan, {"sm_999"}).status, TL_NOT_FOUND);
  EXPECT_NE(border::LastMessage().find("no target or GPU 'sm_999'"), std::string::npos);
}

TEST(Warm, AFailureKeepsNobodyElse) {
  const TempDir dir;
  std::ofstream(dir / "bad.tl") << "tl 1.0\nkernel bad() {\n  nonsense\n}\n";
  const std::string directory = dir / ".";
  const border::Context context = ContextOn(dir / "cache");
  const std::string plan =
      "plan = 1\ntargets = [\"reference\"]\n"
      "[[kernel]]\nfile = \"bad.tl\"\n"
      "[[kernel]]\nfamily = \"nobody\"\n"
      "[[kernel]]\nfile = \"missing.tl\"\n"
      "[[kernel]]\nfamily = \"vector_add\"\nparams = { q = 1 }\n"
      "[[kernel]]\nfamily = \"vector_add\"\n";
  const Warmed warmed = WarmUp(context.get(), plan, {}, directory.c_str());
  EXPECT_NE(warmed.status, TL_OK);
  EXPECT_NE(border::LastMessage().find("4 of 5 kernels failed; the first: "), std::string::npos);
  EXPECT_EQ(warmed.result.failed, 4u);
  EXPECT_EQ(warmed.result.compiled, 1u);
  std::string all;
  for (const std::string& message : warmed.seen.messages) all += message + "\n";
  for (const char* part :
       {"3 bad.tl", "5 nobody  reference: there is no family 'nobody'",
        "7 missing.tl  reference: cannot read", "9 vector_add q=1 reference: "}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
}

TEST(Warm, WhatCannotBe) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  EXPECT_EQ(WarmUp(context.get(), "plan = 1\n[[kernel]]\nfamly = \"gemm\"\n").status,
            TL_INVALID_ARGUMENT);
  EXPECT_EQ(border::LastInfo().line, 3);
  EXPECT_NE(border::LastMessage().find("did you mean 'family'?"), std::string::npos);
  const std::string unknown = "plan = 1\ntargets = [\"sm_9999\"]\n[[kernel]]\nfamily = \"gemm\"\n";
  EXPECT_EQ(WarmUp(context.get(), unknown).status, TL_NOT_FOUND);
  EXPECT_EQ(border::LastInfo().line, 3);
  // A file, and nobody said where.
  const Warmed warmed =
      WarmUp(context.get(), "plan = 1\ntargets = [\"reference\"]\n[[kernel]]\nfile = \"a.tl\"\n");
  EXPECT_EQ(warmed.status, TL_INVALID_ARGUMENT);
  EXPECT_NE(border::LastMessage().find("in which directory"), std::string::npos);
  // The callback ends it.
  const std::string two =
      "plan = 1\ntargets = [\"reference\"]\n[[kernel]]\nfamily = \"vector_add\"\n"
      "params = { block = [64, 128, 256, 512, 1024, 2048, 4096, 8192] }\n";
  EXPECT_EQ(WarmUp(context.get(), two, {}, nullptr, 1).status, TL_CANCELLED);
  // Where nothing stays, nothing is to be warmed; and a sealed context compiles nothing.
  const std::string text = dir / "text";
  std::ofstream(text) << "in the way";
  EXPECT_EQ(WarmUp(ContextOn(text).get(), two).status, TL_FAILED_PRECONDITION);
  ASSERT_EQ(tl_seal(context.get()), TL_OK);
  EXPECT_EQ(WarmUp(context.get(), two).status, TL_FAILED_PRECONDITION);
}

// ---- Queries

std::string Query(tl_context* context, const tl_compile_options& options) {
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_query(context, &options, &data, &size), TL_OK) << families::LastError();
  return data ? std::string(data, size) : "";
}

void ExpectIn(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

// ---- Walking

struct Walk {
  std::vector<std::string> stops;  // "line program params | dims"
  size_t stop_after = 100;
  tl_context* context = nullptr;
  bool compiles = true;
};

std::string Joined(const tl_param* values, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += " ";
    text += std::string(values[i].name) + "=" + values[i].value;
  }
  return text;
}

int Visit(void* user, const tl_plan_stop* stop) {
  Walk& walk = *static_cast<Walk*>(user);
  walk.stops.push_back(std::to_string(stop->line) + " " + stop->program + " " +
                       Joined(stop->compile->params, stop->compile->num_params) + " | " +
                       Joined(stop->dims, stop->num_dims));
  // What is given is a request, as it stands.
  tl_kernel* kernel = nullptr;
  walk.compiles = walk.compiles && tl_compile(walk.context, stop->compile, &kernel) == TL_OK;
  tl_kernel_release(kernel);
  return walk.stops.size() == walk.stop_after;
}

tl_status WalkThrough(tl_context* context, const std::string& plan, const char* directory,
                      Walk& walk) {
  walk.context = context;
  tl_plan_options options = Sized<tl_plan_options>();
  options.device = families::FindDevice(context, "reference");
  options.plan = plan.c_str();
  options.directory = directory;
  options.visit = Visit;
  options.user = &walk;
  return tl_plan_each(context, &options);
}

TEST(PlanEach, VisitsWhatIsForTheDeviceInOrder) {
  const TempDir dir;
  std::ofstream(dir / "add.tl") << border::AddProgram(7);
  const std::string directory = dir / ".";
  const border::Context context = ContextOn(dir / "cache");
  const std::string plan =
      "plan = 1\n"
      "[[kernel]]\nfamily = \"vector_add\"\nparams = { t = [\"f32\", \"f16\"] }\n"
      "dims = [{ N = [1, 2] }, { N = 30 }]\n"
      "[[kernel]]\nfamily = \"softmax\"\ntargets = [\"sm_80\", \"cpu\"]\n"
      "[[kernel]]\nfile = \"add.tl\"\ntargets = [\"sm_80\", \"reference\"]\n";
  const std::vector<std::string> all = {"2 vector_add t=f32 | N=1",
                                        "2 vector_add t=f32 | N=2",
                                        "2 vector_add t=f32 | N=30",
                                        "2 vector_add t=f16 | N=1",
                                        "2 vector_add t=f16 | N=2",
                                        "2 vector_add t=f16 | N=30",
                                        "9 add.tl  | "};
  Walk walk;
  EXPECT_EQ(WalkThrough(context.get(), plan, directory.c_str(), walk), TL_OK)
      << families::LastError();
  EXPECT_EQ(walk.stops, all);
  EXPECT_TRUE(walk.compiles);
  Walk some;
  some.stop_after = 2;
  EXPECT_EQ(WalkThrough(context.get(), plan, directory.c_str(), some), TL_CANCELLED);
  EXPECT_EQ(some.stops.size(), 2u);
}

TEST(PlanEach, WhatCannotBe) {
  struct Row {
    const char* plan;
    tl_status status;
    const char* message;
    int line;
  };
  const Row rows[] = {
      {"plan = 2", TL_INVALID_ARGUMENT, "plans of version 2", 1},
      {"plan = 1\n[[kernel]]\nfamily = \"softmax\"\ntargets = [\"sm_80\"]", TL_INVALID_ARGUMENT,
       "no kernel of the plan is for reference", 0},
      {"plan = 1\ntargets = [\"sm_1\"]\n[[kernel]]\nfamily = \"softmax\"", TL_NOT_FOUND,
       "no target or GPU 'sm_1'", 3},
      {"plan = 1\n[[kernel]]\nfile = \"missing.tl\"", TL_NOT_FOUND, "cannot read '/tmp/missing.tl'",
       2},
  };
  const border::Context context = ContextOn("");
  for (const Row& row : rows) {
    Walk walk;
    EXPECT_FAILS(WalkThrough(context.get(), row.plan, "/tmp", walk), row.status, row.message);
    EXPECT_EQ(border::LastInfo().line, row.line);
    EXPECT_TRUE(walk.stops.empty());
  }
  Walk walk;
  EXPECT_FAILS(WalkThrough(context.get(), "plan = 1\n[[kernel]]\nfile = \"a.tl\"", nullptr, walk),
               TL_INVALID_ARGUMENT, "nothing says in which directory it lies");
}

TEST(Query, TellsWithoutCompiling) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  tl_compile_options options = Sized<tl_compile_options>();
  options.family = "gemm";
  options.target = "sm_80";
  const tl_param params[] = {{"t", "bf16"}};
  options.params = params;
  options.num_params = 1;
  ExpectIn(Query(context.get(), options),
           {"\"cached\": false", "\"kernel\": \"gemm\"", "\"t\": \"bf16\"", "\"configuration\"",
            "\"shared_bytes\": ", "\"threads\": ", "\"notes\"", "tl_mma_"});
  options.target = "reference";
  ExpectIn(Query(context.get(), options), {"\"cached\": false"});
  EXPECT_EQ(border::Stats(context.get()).compiles, 0u);
  tl_kernel* kernel = nullptr;
  ASSERT_EQ(tl_compile(context.get(), &options, &kernel), TL_OK) << families::LastError();
  tl_kernel_release(kernel);
  // In memory here, in the cache for another.
  ExpectIn(Query(context.get(), options), {"\"cached\": true", "\"origin\": \"compiled\""});
  const border::Context other = ContextOn(dir / "cache");
  ExpectIn(Query(other.get(), options),
           {"\"cached\": true", "\"origin\": \"cache\"", "\"built_by\": \"reference"});
  EXPECT_EQ(border::Stats(other.get()).hits, 0u) << "a query is no hit";
}

TEST(Query, FailsAsCompilingWould) {
  const border::Context context = families::MakeContext();
  tl_compile_options options = Sized<tl_compile_options>();
  const char* data = nullptr;
  size_t size = 0;
  options.family = "nobody";
  options.target = "reference";
  EXPECT_FAILS(tl_query(context.get(), &options, &data, &size), TL_NOT_FOUND, "no family");
  options.family = "gemm";
  options.target = "sm_80";
  options.shared_budget = 1000;
  EXPECT_FAILS(tl_query(context.get(), &options, &data, &size), TL_RESOURCE_EXHAUSTED,
               "budget given is 1000 per block");
}

}  // namespace
