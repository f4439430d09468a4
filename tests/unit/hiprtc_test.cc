// HIPRTC in a process of its own: which library is taken, and what becomes of one that aborts,
// hangs or talks nonsense. A fake library does all of that; the real one is tried where it is
// installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/hip/code_object.h"
#include "backends/hip/compiler.h"
#include "backends/hip/targets.h"
#include "base/program.h"
#include "service/compile_worker.h"
#include "service/context.h"
#include "service/families.h"

namespace tl {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const char kWorker[] = TL_BINARY_DIR "/bin/tl-worker";

// An environment variable for as long as the object lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::string old_;
};

// Installations of ROCm and of clang, in a directory of the test's own.
class Installed : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(dir_.ok());
    fs::create_directories(dir_ / "rocm/lib");
    fs::create_directories(dir_ / "bin");
    paths_.rocm_roots = {(dir_ / "rocm").string()};
    paths_.program_dirs = {(dir_ / "bin").string()};
    paths_.system_roots.clear();
    paths_.loader_path = false;
  }
  // Each test of a table begins with nothing.
  void Empty() {
    for (const char* name : {"rocm/lib", "bin"}) {
      fs::remove_all(dir_ / name);
      fs::create_directories(dir_ / name);
    }
  }
  std::string Place(const char* file, const std::string& name) {
    const fs::path to = dir_ / name;
    fs::copy_file(file, to, fs::copy_options::overwrite_existing);
    return to.string();
  }
  std::string PlaceLibrary(const std::string& name) {
    return Place(TL_FAKE_HIPRTC, absl::StrCat("rocm/lib/", name));
  }
  void PlaceClang() {
    Place(TL_FAKE_HIPRTC, "bin/clang-19");
    Place(TL_FAKE_HIPRTC, "bin/ld.lld-19");
    for (const char* name : {"bin/clang-19", "bin/ld.lld-19"}) {
      fs::permissions(dir_ / name, fs::perms::owner_exec, fs::perm_options::add);
    }
  }

  const TemporaryDirectory dir_{"tl-hiprtc-test-"};
  SearchPaths paths_;
};

// ---- Which compiler ----

using WhichHipCompiler = Installed;

TEST_F(WhichHipCompiler, ByFilesAndTheirNames) {
  const struct {
    std::vector<std::string> libraries;
    bool clang;
    const char* target;
    const char* wish;
    const char* taken;  // how the identity begins
  } rows[] = {
      {{"libamdhip64.so.5.2.21153"}, true, "gfx90a", "", "hiprtc 5.2.21153: "},
      {{"libamdhip64.so.5.2.21153"}, true, "gfx90a", "clang", "clang-19 "},
      {{"libamdhip64.so.5.2.21153"}, false, "gfx90a", "", "hiprtc 5.2.21153: "},
      // What the version does not know is clang's, unless the caller insists.
      {{"libamdhip64.so.5.2.21153"}, true, "gfx942", "", "clang-19 "},
      {{"libamdhip64.so.5.2.21153"}, true, "gfx1100", "", "clang-19 "},
      {{"libamdhip64.so.5.2.21153"}, true, "gfx1100", "hiprtc", "hiprtc 5.2.21153: "},
      {{"libamdhip64.so.5.5.50500"}, true, "gfx1100", "", "hiprtc 5.5.50500: "},
      {{"libhiprtc.so.5.7.50700"}, true, "gfx942", "", "clang-19 "},
      {{"libhiprtc.so.6.0.60000"}, true, "gfx942", "", "hiprtc 6.0.60000: "},
      {{"libhiprtc.so.10.0.1"}, true, "gfx942", "", "hiprtc 10.0.1: "},
      // Of several the newest; a library of its own before the part of another.
      {{"libhiprtc.so.6.9.0", "libhiprtc.so.6.10.0"}, true, "gfx90a", "", "hiprtc 6.10.0: "},
      {{"libamdhip64.so.6.2.0", "libhiprtc.so.6.1.0"}, true, "gfx90a", "", "hiprtc 6.1.0: "},
      {{"libamdhip64.so.5.2.1", "libhiprtc.so.6.0.0"}, true, "gfx942", "", "hiprtc 6.0.0: "},
      // Later versions of that one have no compiler in them.
      {{"libamdhip64.so.7.0.0"}, true, "gfx90a", "", "clang-19 "},
      {{"libhiprtc-builtins.so.6.0.0"}, true, "gfx90a", "", "clang-19 "},
      {{"libhiprtc.so.unknown"}, true, "gfx90a", "", "clang-19 "},
      {{}, true, "gfx90a", "", "clang-19 "},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(absl::StrCat(row.libraries.empty() ? "none" : row.libraries[0], " ", row.target,
                              " ", row.wish));
    Empty();
    for (const std::string& name : row.libraries) PlaceLibrary(name);
    if (row.clang) PlaceClang();
    paths_.hip_compiler = row.wish;
    const auto compiler = ChooseHipCompiler(paths_, *FindHipTarget(row.target));
    ASSERT_TRUE(compiler.ok()) << compiler.status();
    EXPECT_THAT(HipCompilerIdentity(*compiler), StartsWith(row.taken));
    const auto backend = MakeHipBackend(paths_, nullptr);
    EXPECT_EQ(*backend->CompilerIdentity(*FindHipTarget(row.target)),
              HipCompilerIdentity(*compiler));
  }
}

TEST_F(WhichHipCompiler, NoneIsToldWithWhatWouldDo) {
  const struct {
    const char* library;
    const char* wish;
    absl::StatusCode code;
    std::vector<std::string> words;
  } rows[] = {
      {"",
       "",
       absl::StatusCode::kNotFound,
       {"no HIPRTC compiles for gfx1100: no libhiprtc.so.* or libamdhip64.so.* was found in ",
        "/rocm/lib, ", "the HIPRTC of ROCm 5.5 or later does",
        "no clang-17 to clang-22 was found"}},
      {"libamdhip64.so.5.2.21153",
       "",
       absl::StatusCode::kNotFound,
       {"HIPRTC 5.2.21153 (", "libamdhip64.so.5.2.21153) does not know it",
        "the HIPRTC of ROCm 5.5 or later does", "no clang-17"}},
      {"", "hiprtc", absl::StatusCode::kNotFound, {"no HIPRTC compiles for gfx1100"}},
      {"libhiprtc.so.6.0.0", "clang", absl::StatusCode::kNotFound, {"no clang-17"}},
      {"",
       "gcc",
       absl::StatusCode::kInvalidArgument,
       {"TL_HIP_COMPILER is 'gcc'; it may be hiprtc or clang"}},
  };
  for (const auto& row : rows) {
    Empty();
    if (*row.library) PlaceLibrary(row.library);
    paths_.hip_compiler = row.wish;
    const Status status = ChooseHipCompiler(paths_, *FindHipTarget("gfx1100")).status();
    EXPECT_EQ(status.code(), row.code);
    for (const std::string& words : row.words) EXPECT_THAT(status.message(), HasSubstr(words));
  }
}

TEST_F(WhichHipCompiler, TextUnderALibrarysNameIsNone) {
  std::ofstream(dir_ / "rocm/lib/libhiprtc.so.6.0.0") << "INPUT(somewhere)";
  fs::create_symlink("/nowhere/libhiprtc.so.6.1.0", dir_ / "rocm/lib/libhiprtc.so.6.1.0");
  EXPECT_THAT(FindHiprtc(paths_).found, IsEmpty());
}

TEST_F(WhichHipCompiler, LinksAreOneLibraryWithItsWholeVersion) {
  PlaceLibrary("libhiprtc.so.6.1.40091");
  fs::create_symlink("libhiprtc.so.6.1.40091", dir_ / "rocm/lib/libhiprtc.so.6");
  fs::create_symlink("libhiprtc.so.6", dir_ / "rocm/lib/libhiprtc.so.6.1");
  const HiprtcSearch search = FindHiprtc(paths_);
  ASSERT_THAT(search.found, SizeIs(1));
  EXPECT_EQ(search.found[0].version, "6.1.40091");
}

TEST_F(WhichHipCompiler, EveryPartIsInItsIdentity) {
  const auto identity = [&](const char* wish) {
    paths_.hip_compiler = wish;
    return HipCompilerIdentity(*ChooseHipCompiler(paths_, *FindHipTarget("gfx90a")));
  };
  PlaceClang();
  PlaceLibrary("libhiprtc.so.6.0.0");
  PlaceLibrary("libamd_comgr.so.2.4.0");
  const std::string clang = identity("clang"), hiprtc = identity("hiprtc");
  EXPECT_THAT(clang, AllOf(StartsWith("clang-19 build-id "), HasSubstr(", ld.lld-19 build-id ")));
  EXPECT_THAT(hiprtc, AllOf(StartsWith("hiprtc 6.0.0: libhiprtc.so.6.0.0 build-id "),
                            HasSubstr(", libamd_comgr.so.2.4.0 build-id ")));
  Place(TL_FAKE_HIPRTC_OTHER, "bin/ld.lld-19");
  EXPECT_NE(identity("clang"), clang) << "another linker";
  EXPECT_EQ(identity("hiprtc"), hiprtc);
  Place(TL_FAKE_HIPRTC_OTHER, "rocm/lib/libamd_comgr.so.2.4.0");
  EXPECT_NE(identity("hiprtc"), hiprtc) << "another library of the compiler's";
}

// The distribution's programs are small and their libraries large.
TEST_F(WhichHipCompiler, LibrariesOfTheRealOneCount) {
  SearchPaths real;
  real.program_dirs = {"/usr/bin"};
  real.hip_compiler = "clang";
  const auto clang = ChooseHipCompiler(real, *FindHipTarget("gfx942"));
  if (!clang.ok()) GTEST_SKIP() << clang.status().message();
  EXPECT_THAT(HipCompilerIdentity(*clang), AllOf(HasSubstr("libclang-cpp.so."),
                                                 HasSubstr("libLLVM"), Not(HasSubstr("unknown"))));
}

// ---- Compiling ----

class Compiling : public Installed {
 protected:
  void SetUp() override {
    Installed::SetUp();
    library_ = PlaceLibrary("libhiprtc.so.6.0.0");
    paths_.hip_compiler = "hiprtc";
  }

  StatusOr<HipCode> Compile(const std::string& behaviour, const char* target = "gfx90a") {
    const Variable fake("FAKE_HIPRTC", behaviour);
    const Target found = *FindHipTarget(target);
    TL_ASSIGN_OR_RETURN(const HipCompiler compiler, ChooseHipCompiler(paths_, found));
    return CompileHip(
        compiler, [&](const CompileJob& job) { return CompileInWorker(job, options_); }, "source",
        found);
  }

  CompileWorkerOptions options_{.program = kWorker, .library_dir = "", .limit = absl::Seconds(30)};
  std::string library_;
};

TEST_F(Compiling, BytesAndOptionsComeAndGo) {
  for (const char* behaviour : {"", "print"}) {
    const auto code = Compile(behaviour);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->object, StartsWith("\177ELF 6 bytes of source, options -std=c++17 -O3 "));
    EXPECT_THAT(code->object, HasSubstr("--offload-arch=gfx90a"));
    EXPECT_THAT(code->log, IsEmpty());
  }
}

TEST_F(Compiling, FailuresCostTheWorkerAlone) {
  const struct {
    const char* behaviour;
    absl::StatusCode code;
    int64_t native_code;
    const char* message;
    const char* log;
  } rows[] = {
      {"abort", absl::StatusCode::kAborted, SIGABRT,
       "the worker process died of signal 6 (Aborted)", "munmap_chunk(): invalid pointer"},
      {"segv", absl::StatusCode::kAborted, SIGSEGV, "died of signal 11 (Segmentation fault)", ""},
      {"exit", absl::StatusCode::kAborted, 7, "the worker process ended with code 7", ""},
      {"nonsense", absl::StatusCode::kAborted, 0, "the worker process ", ""},
      {"hang", absl::StatusCode::kDeadlineExceeded, 0, "it did not end within 1s", ""},
      {"spin", absl::StatusCode::kDeadlineExceeded, 0, "it did not end within 1s", ""},
      {"error", absl::StatusCode::kInternal, 6, "HIPRTC_ERROR_COMPILATION",
       "kernel.hip:3:7: error: no such thing\n1 error generated when compiling."},
      {"refuse", absl::StatusCode::kInternal, 3, "HIPRTC_ERROR_INVALID_INPUT", ""},
      {"nothing", absl::StatusCode::kInternal, 0, "reports success and returns no code object", ""},
      {"text", absl::StatusCode::kInternal, 0, "reports success and returns no code object", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.behaviour);
    options_.limit = absl::Seconds(absl::StrContains(row.message, "within 1s") ? 1 : 30);
    const Status status = Compile(row.behaviour).status();
    EXPECT_EQ(status.code(), row.code) << status;
    EXPECT_THAT(
        status.message(),
        AllOf(StartsWith(absl::StrCat("HIPRTC 6.0.0 (", library_, "), compiling for gfx90a: ")),
              HasSubstr(row.message)));
    const ErrorDetail detail = DetailOf(status);
    EXPECT_EQ(detail.domain, Domain::kHip);
    EXPECT_EQ(detail.native_code, row.native_code);
    EXPECT_EQ(detail.log, row.log);
    options_.limit = absl::Seconds(30);
    EXPECT_TRUE(Compile("").ok()) << "the next one";
  }
}

TEST_F(Compiling, ADeathIsToldWithWhatWouldWork) {
  fs::remove(library_);
  PlaceLibrary("libhiprtc.so.5.2.21153");
  const Status unknown = Compile("abort", "gfx1100").status();
  EXPECT_THAT(
      unknown.message(),
      HasSubstr("what compiles for gfx1100: the HIPRTC of ROCm 5.5 or later, or clang-17 or "
                "later with lld (Debian: clang-19, lld-19), which TL_HIP_COMPILER=clang "
                "asks for"));
  EXPECT_EQ(DetailOf(unknown).reason, Reason::kUnsupported);
  EXPECT_EQ(DetailOf(Compile("abort", "gfx90a").status()).reason, Reason::kNone);
}

TEST_F(Compiling, WhatADyingOneLeavesOnDiskGoesWithIt) {
  const Status status = Compile("leave").status();
  const std::string log = DetailOf(status).log;
  ASSERT_THAT(log, StartsWith("left "));
  EXPECT_FALSE(fs::exists(log.substr(5))) << log;
}

TEST_F(Compiling, WithoutTheFunctionsOrTheWorker) {
  Place(TL_FAKE_HIPRTC_EMPTY, "rocm/lib/libhiprtc.so.6.0.0");
  const Status empty = Compile("").status();
  EXPECT_EQ(DetailOf(empty).reason, Reason::kMissingLibrary);
  EXPECT_THAT(empty.message(), AllOf(HasSubstr("undefined symbol: hiprtcCreateProgram"),
                                     HasSubstr("TL_HIP_COMPILER=clang compiles without it")));

  const struct {
    const char* worker;
    absl::StatusCode code;
    const char* message;
  } rows[] = {
      {"/nowhere/tl-worker", absl::StatusCode::kNotFound,
       "the helper program tl-worker, which runs what may take its process down, is not at "
       "/nowhere/tl-worker; install it there; TL_HIP_COMPILER=clang compiles without it"},
      {"/bin/true", absl::StatusCode::kAborted, "the worker process ended with code 0"},
  };
  PlaceLibrary("libhiprtc.so.6.0.0");
  for (const auto& row : rows) {
    options_.program = row.worker;
    const Status status = Compile("").status();
    EXPECT_EQ(status.code(), row.code);
    EXPECT_THAT(status.message(), HasSubstr(row.message));
  }
}

// ---- In a context ----

class HiprtcInContext : public Installed {
 protected:
  void SetUp() override {
    Installed::SetUp();
    PlaceLibrary("libhiprtc.so.6.0.0");
    rocm_.emplace("TL_ROCM_PATH", paths_.rocm_roots[0]);
    ContextOptions options;
    options.cache_dir = (dir_ / "cache").string();
    context_ = *Context::Create(std::move(options));
  }
  StatusOr<std::shared_ptr<Kernel>> Compile(const char* behaviour, const char* target = "gfx90a") {
    const Variable fake("FAKE_HIPRTC", behaviour);
    CompileRequest request;
    request.family = "vector_add";
    request.target = target;
    return context_->Compile(request);
  }

  std::optional<Variable> rocm_;
  std::shared_ptr<Context> context_;
};

TEST_F(HiprtcInContext, OutlivesItsCompilerAndKeepsNothingOfIt) {
  const Status status = Compile("abort").status();
  EXPECT_THAT(status.message(), HasSubstr("died of signal 6 (Aborted)"));
  EXPECT_EQ(context_->Stats().compiles, 0);
  EXPECT_TRUE(Compile("abort", "cpu").ok());
  const auto kernel = Compile("");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Artifact& artifact = (*kernel)->program().artifact();
  EXPECT_THAT(artifact.binary, StartsWith("\177ELF "));
  EXPECT_THAT(artifact.compiler, StartsWith("hiprtc 6.0.0: libhiprtc.so.6.0.0 build-id "));
  // The next one needs no compiler.
  context_ = nullptr;
  ContextOptions options;
  options.cache_dir = (dir_ / "cache").string();
  options.own_builds_only = true;
  context_ = *Context::Create(std::move(options));
  EXPECT_TRUE(Compile("abort").ok());
}

// ---- The real one ----

class RealHiprtc : public ::testing::Test {
 protected:
  void SetUp() override {
    const HiprtcSearch search = FindHiprtc({});
    if (search.found.empty()) GTEST_SKIP() << "no HIPRTC is installed (Debian: libamdhip64-5)";
    library_ = search.found[0];
    ContextOptions options;
    options.cache_mode = CacheMode::kMemory;
    const Variable wish("TL_HIP_COMPILER", "hiprtc");
    context_ = *Context::Create(std::move(options));
  }
  StatusOr<std::shared_ptr<Kernel>> Compile(
      std::string_view family, std::string_view target,
      std::vector<std::pair<std::string_view, std::string_view>> params = {}) {
    CompileRequest request;
    request.family = family;
    request.target = target;
    request.params = std::move(params);
    return context_->Compile(request);
  }

  HiprtcLibrary library_;
  std::shared_ptr<Context> context_;
};

TEST_F(RealHiprtc, EveryFamilyCompiles) {
  std::vector<std::string> refused;
  for (const FamilySource& family : BuiltinFamilies()) {
    SCOPED_TRACE(family.name);
    const auto kernel = Compile(family.name, "gfx90a");
    if (kernel.ok()) {
      const Program& program = (*kernel)->program();
      EXPECT_THAT(program.artifact().compiler, StartsWith("hiprtc "));
      const auto facts = ReadCodeObject(program.artifact().binary, program.entries());
      EXPECT_THAT(facts, SizeIs(program.entries().size()));
      EXPECT_THAT(facts, Each(Field(&EntryResources::stack_bytes, 0)));
    } else {
      // Before any compiler sees it, or it is the compiler's failure.
      EXPECT_EQ(DetailOf(kernel.status()).reason, Reason::kLimit)
          << kernel.status() << DetailOf(kernel.status()).log;
      refused.emplace_back(family.name);
    }
  }
  EXPECT_THAT(refused, ElementsAre("mla_decode")) << "needs more shared memory than there is";
}

TEST_F(RealHiprtc, WhatItDoesNotKnowKillsTheWorkerAlone) {
  if (library_.rocm != RocmVersion{5, 2}) GTEST_SKIP() << Describe(library_) << " may know it";
  const Status status = Compile("vector_add", "gfx1100").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // Its own memory management sees to the end.
  EXPECT_THAT(status.message(), HasSubstr("the worker process "));
#else
  EXPECT_THAT(status.message(), HasSubstr("died of signal 6 (Aborted)"));
  EXPECT_THAT(DetailOf(status).log, HasSubstr("munmap_chunk(): invalid pointer"));
#endif
  const auto gfx940 = CompileInWorker({library_.path,
                                       "extern \"C\" __attribute__((global)) void k() {}",
                                       {"--offload-arch=gfx940"}},
                                      {.program = kWorker});
  EXPECT_EQ(gfx940.status().code(), absl::StatusCode::kAborted) << gfx940.status();
  EXPECT_TRUE(Compile("vector_add", "gfx90a").ok());
}

TEST_F(RealHiprtc, ErrorsComeWithTheirPlaces) {
  const auto broken =
      CompileInWorker({library_.path, "nonsense", {"--offload-arch=gfx90a"}}, {.program = kWorker});
  EXPECT_EQ(broken.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(DetailOf(broken.status()).log,
              AllOf(HasSubstr("kernel.hip:1:1: error: "), Not(HasSubstr("/"))));
}

}  // namespace
}  // namespace tl
