// The cache through the C interface: listing, checking, packs.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/abi/abi_testing.h"
#include "tests/abi/temp_dir.h"

namespace {

using border::Sized;
using border::TempDir;

// A context on `cache` (in memory if empty), with `pack` below if that is not empty.
border::Context ContextOn(const std::string& cache, const std::string& pack = "") {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_mode = cache.empty() ? TL_CACHE_MEMORY : TL_CACHE_DEFAULT;
  options.cache_dir = cache.empty() ? nullptr : cache.c_str();
  const char* packs[] = {pack.c_str()};
  options.packs = packs;
  options.num_packs = pack.empty() ? 0 : 1;
  tl_context* context = nullptr;
  EXPECT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
  return border::Context(context);
}

// Asks for AddProgram(1) and (2) for the reference interpreter.
void Warm(tl_context* context) {
  for (int add : {1, 2}) {
    EXPECT_TRUE(border::CompileFor(context, border::AddProgram(add), "reference"));
  }
}

struct Listed {
  std::vector<std::string> kernels, targets, keys;
  uint64_t bytes = 0, current = 0;
};

Listed List(tl_context* context, const char* pack) {
  Listed listed;
  const auto add = [](void* user, const tl_cache_entry* e) {
    auto* l = static_cast<Listed*>(user);
    l->kernels.push_back(std::string(e->kernel) + e->parameters);
    l->targets.push_back(e->target);
    l->keys.push_back(e->key);
    l->bytes += e->bytes;
    l->current += e->current;
    return 0;
  };
  EXPECT_EQ(tl_cache_list(context, pack, add, &listed), TL_OK) << families::LastError();
  return listed;
}

TEST(Cache, ListsWhatItHolds) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  Warm(context.get());
  const Listed listed = List(context.get(), nullptr);
  EXPECT_EQ(listed.kernels, (std::vector<std::string>{"add{}", "add{}"}));
  EXPECT_EQ(listed.targets, (std::vector<std::string>{"reference", "reference"}));
  EXPECT_NE(listed.keys[0], listed.keys[1]);
  EXPECT_EQ(listed.keys[0].size(), 32u);
  EXPECT_EQ(listed.bytes, border::Stats(context.get()).bytes);
  EXPECT_EQ(listed.current, 2u);
  // The callback ends it.
  int calls = 0;
  const auto once = [](void* user, const tl_cache_entry*) { return ++*static_cast<int*>(user); };
  EXPECT_EQ(tl_cache_list(context.get(), nullptr, once, &calls), TL_OK);
  EXPECT_EQ(calls, 1);
}

TEST(Cache, APackServesWithoutCompiling) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  tl_cache_transfer done = Sized<tl_cache_transfer>();
  {
    const border::Context context = ContextOn(dir / "cache");
    Warm(context.get());
    ASSERT_EQ(tl_cache_export(context.get(), pack.c_str(), nullptr, 0, &done), TL_OK)
        << families::LastError();
    EXPECT_EQ(done.entries, 2u);
    EXPECT_EQ(done.bytes, border::Stats(context.get()).bytes);
  }
  const border::Context context = ContextOn("", pack);
  Warm(context.get());
  EXPECT_EQ(border::Stats(context.get()).compiles, 0u);
  EXPECT_EQ(border::Stats(context.get()).hits, 2u);
  EXPECT_EQ(List(context.get(), pack.c_str()).kernels.size(), 2u);
  tl_cache_report report = Sized<tl_cache_report>();
  EXPECT_EQ(tl_cache_verify(context.get(), pack.c_str(), &report), TL_OK) << families::LastError();
  EXPECT_EQ(report.checked, 2u);
  EXPECT_STREQ(report.notes, "");
}

TEST(Cache, ExportsTheTargetsThatAreNamed) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  const border::Context context = ContextOn(dir / "cache");
  Warm(context.get());
  const char* reference[] = {"reference"};
  const char* sm80[] = {"sm_80"};
  const char* unknown[] = {"sm_999"};
  EXPECT_EQ(tl_cache_export(context.get(), pack.c_str(), reference, 1, nullptr), TL_OK)
      << families::LastError();
  EXPECT_FAILS(tl_cache_export(context.get(), pack.c_str(), sm80, 1, nullptr), TL_NOT_FOUND,
               "holds no kernel of this version of the library for sm_80; warm it first");
  EXPECT_FAILS(tl_cache_export(context.get(), pack.c_str(), unknown, 1, nullptr), TL_NOT_FOUND,
               "there is no target or GPU 'sm_999'");
  EXPECT_EQ(List(context.get(), pack.c_str()).kernels.size(), 2u) << "the earlier pack stays";
}

TEST(Cache, ImportsIntoAnother) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  {
    const border::Context context = ContextOn(dir / "cache");
    Warm(context.get());
    ASSERT_EQ(tl_cache_export(context.get(), pack.c_str(), nullptr, 0, nullptr), TL_OK);
  }
  {
    const border::Context context = ContextOn(dir / "other");
    for (uint64_t added : {2u, 0u}) {
      tl_cache_transfer done = Sized<tl_cache_transfer>();
      ASSERT_EQ(tl_cache_import(context.get(), pack.c_str(), &done), TL_OK)
          << families::LastError();
      EXPECT_EQ(done.entries, added);
      EXPECT_EQ(done.present, 2 - added);
    }
  }
  const border::Context context = ContextOn(dir / "other");
  Warm(context.get());
  EXPECT_EQ(border::Stats(context.get()).compiles, 0u);
}

TEST(Cache, DamageIsReportedAndNotServed) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  {
    const border::Context context = ContextOn(dir / "cache");
    Warm(context.get());
    ASSERT_EQ(tl_cache_export(context.get(), pack.c_str(), nullptr, 0, nullptr), TL_OK);
  }
  // A byte of the last text in it, which is a program: the binary of the reference interpreter.
  std::ifstream in(pack, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const size_t at = bytes.rfind("parallel");
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  std::filesystem::remove(pack);
  std::ofstream(pack, std::ios::binary) << bytes;
  const border::Context context = ContextOn(dir / "empty", pack);
  tl_cache_report report = Sized<tl_cache_report>();
  EXPECT_FAILS(tl_cache_verify(context.get(), pack.c_str(), &report), TL_DATA_LOSS, "is damaged");
  EXPECT_EQ(report.checked, 2u);
  EXPECT_EQ(report.damaged, 1u);
  EXPECT_NE(std::string(report.notes).find("is damaged"), std::string::npos);
  EXPECT_FAILS(tl_cache_import(context.get(), pack.c_str(), nullptr), TL_DATA_LOSS,
               "nothing of it was taken");
  Warm(context.get());
  EXPECT_EQ(border::Stats(context.get()).hits, 1u);
  EXPECT_EQ(border::Stats(context.get()).compiles, 1u);
}

// ---- Sealing

TEST(Seal, AProcessOverAPackCompilesNothing) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  {
    const border::Context context = ContextOn(dir / "cache");
    Warm(context.get());
    ASSERT_EQ(tl_cache_export(context.get(), pack.c_str(), nullptr, 0, nullptr), TL_OK);
  }
  const border::Context context = ContextOn("", pack);
  ASSERT_EQ(tl_seal(context.get()), TL_OK) << families::LastError();
  ASSERT_EQ(tl_seal(context.get()), TL_OK) << "once more changes nothing";
  const int32_t reference = families::FindDevice(context.get(), "reference");
  for (int add : {1, 2}) {
    const std::string source = border::AddProgram(add);
    const border::Kernel kernel = families::Compile(context.get(), source, {}, reference);
    ASSERT_TRUE(kernel);
    EXPECT_TRUE(border::RunsRight(kernel.get(), reference, add, 100));
  }
  const tl_cache_stats stats = border::Stats(context.get());
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 0u);
  EXPECT_EQ(stats.compiles, 0u);
}

// The error says what and how; its log is a plan.
TEST(Seal, AMissSaysWhatToWarm) {
  const TempDir dir;
  const border::Context context = ContextOn("", dir / "missing.pack");
  const border::Kernel before =
      border::CompileFor(context.get(), border::AddProgram(1), "reference");
  ASSERT_EQ(tl_seal(context.get()), TL_OK);
  EXPECT_TRUE(border::CompileFor(context.get(), border::AddProgram(1), "reference"))
      << "what is in memory is served";
  tl_compile_options options = Sized<tl_compile_options>();
  options.family = "gemm";
  options.target = "sm_80";
  const tl_param params[] = {{"t", "f16"}, {"K", "64"}};
  options.params = params;
  options.num_params = 2;
  options.shared_budget = 65536;
  tl_kernel* kernel = nullptr;
  EXPECT_FAILS(tl_compile(context.get(), &options, &kernel), TL_UNAVAILABLE,
               "is sealed and has no kernel 'gemm' for sm_80 with K=64 t=f16");
  EXPECT_EQ(kernel, nullptr);
  const tl_error_info error = border::LastInfo();
  EXPECT_EQ(error.reason, TL_REASON_NOT_READY);
  EXPECT_NE(std::string(error.message).find("missing.pack is left out"), std::string::npos);
  EXPECT_NE(std::string(error.message).find("tl warm"), std::string::npos);
  for (const char* line : {"plan = 1", "[[kernel]]", "family = \"gemm\"", "targets = [ \"sm_80\" ]",
                           "shared_budget = 65536", "K = \"64\"", "t = \"f16\""}) {
    EXPECT_NE(std::string(error.log).find(line), std::string::npos) << line << "\n" << error.log;
  }
  EXPECT_EQ(border::Stats(context.get()).compiles, 1u);
  // So does a text that is made by compiling.
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_FAILS(tl_kernel_text(before.get(), TL_TEXT_ASSEMBLY, &data, &size), TL_UNAVAILABLE,
               "sealed");
  EXPECT_EQ(tl_kernel_text(before.get(), TL_TEXT_REPORT, &data, &size), TL_OK);
}

TEST(Cache, WhatCannotBe) {
  const TempDir dir;
  std::ofstream(dir / "text") << "no pack";
  const border::Context context = ContextOn(dir / "cache");
  tl_cache_report report = Sized<tl_cache_report>();
  const auto ignore = [](void*, const tl_cache_entry*) { return 0; };
  const std::string text = dir / "text", missing = dir / "missing";
  EXPECT_FAILS(tl_cache_export(context.get(), missing.c_str(), nullptr, 0, nullptr), TL_NOT_FOUND,
               "warm it first");
  EXPECT_FAILS(tl_cache_list(context.get(), text.c_str(), ignore, nullptr), TL_DATA_LOSS,
               "is no cache of this version");
  EXPECT_FAILS(tl_cache_verify(context.get(), missing.c_str(), &report), TL_NOT_FOUND, "missing");
  EXPECT_FAILS(tl_cache_import(context.get(), missing.c_str(), nullptr), TL_NOT_FOUND, "missing");
  EXPECT_FAILS(tl_cache_import(context.get(), "", nullptr), TL_INVALID_ARGUMENT, "path is empty");
  EXPECT_FAILS(tl_cache_list(context.get(), "", ignore, nullptr), TL_INVALID_ARGUMENT,
               "pack is an empty path");
  // A cache that cannot be written takes nothing that is meant to stay.
  const border::Context nowhere = ContextOn(dir / "text");
  EXPECT_FAILS(tl_cache_import(nowhere.get(), missing.c_str(), nullptr), TL_FAILED_PRECONDITION,
               "cannot be written");
  // Packs in the options.
  tl_context_options options = Sized<tl_context_options>();
  options.num_packs = 1;
  tl_context* made = nullptr;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT,
               "packs is NULL but num_packs is 1");
  const char* packs[] = {""};
  options.packs = packs;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT, "packs[0] is empty");
}

}  // namespace
