// The compiler module and the two loaders: bad input is a status, cached objects need no compiler,
// and everything may happen on many threads at once.
#include <dlfcn.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <cmath>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/emit_llvm.h"
#include "backends/cpu/maths.h"
#include "backends/cpu/module/interface.h"
#include "backends/cpu/object_loader.h"
#include "backends/cpu/processor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/cpu_testing.h"

namespace tl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// y[i] = x[i] * 2 + exp(x[i]); a memset and a libm call make external symbols.
Module Program(int64_t count = 1000) {
  testing::ThreadProgram p;
  const BufferId x = p.Tensor(DType::kF32, BufferRole::kIn, count);
  const BufferId y = p.Tensor(DType::kF32, BufferRole::kOut, count);
  const BufferId t = p.Tile(DType::kF32, 256, 0);
  Launch launch = p.NewLaunch();
  launch.arena_bytes = 1024;
  const ExprRef zero = MakeFloat(0, ScalarType::kF32);
  launch.body.push_back(
      p.Threads(MakeInt(256), [&](const ExprRef& i) -> Block { return {p.Store(t, i, zero)}; }));
  launch.body.push_back(p.Threads(MakeInt(count), [&](const ExprRef& i) -> Block {
    const ExprRef v = p.Load(x, i);
    const ExprRef at = MakeBinary(BinaryOp::kMod, i, MakeInt(256));
    const ExprRef two = MakeFloat(2, ScalarType::kF32);
    ExprRef sum =
        MakeBinary(BinaryOp::kAdd, MakeBinary(BinaryOp::kMul, v, two), MakeCall(MathFn::kSin, {v}));
    return {p.Store(y, i, MakeBinary(BinaryOp::kAdd, sum, p.Load(t, at)))};
  }));
  p.module().launches.push_back(launch);
  return p.module();
}

void ExpectRight(LoadedKernel& kernel, int64_t count = 1000) {
  std::vector<float> x(count), y(count);
  for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(i % 17) - 8;
  const Status s = testing::Launch(kernel, 1, {x.data(), y.data()});
  ASSERT_TRUE(s.ok()) << s;
  for (int64_t i = 0; i < count; ++i) ASSERT_FLOAT_EQ(y[i], x[i] * 2 + std::sin(x[i]));
}

// The module by itself.
struct Library {
  void* handle = dlopen(TL_BINARY_DIR "/lib/libtilejit_cpu.so", RTLD_NOW | RTLD_LOCAL);
  decltype(&tl_cpu_version) version = Find<decltype(version)>("tl_cpu_version");
  decltype(&tl_cpu_compiler) compiler = Find<decltype(compiler)>("tl_cpu_compiler");
  decltype(&tl_cpu_compile) compile = Find<decltype(compile)>("tl_cpu_compile");
  decltype(&tl_cpu_load) load = Find<decltype(load)>("tl_cpu_load");
  decltype(&tl_cpu_symbol) symbol = Find<decltype(symbol)>("tl_cpu_symbol");
  decltype(&tl_cpu_unload) unload = Find<decltype(unload)>("tl_cpu_unload");
  decltype(&tl_cpu_free) free = Find<decltype(free)>("tl_cpu_free");
  decltype(&tl_cpu_host) host = Find<decltype(host)>("tl_cpu_host");

  template <typename T>
  T Find(const char* name) const {
    return reinterpret_cast<T>(dlsym(handle, name));
  }
  // The log of a failure, or "" and the object.
  std::string Compile(const std::string& ir, std::string* object = nullptr,
                      const char* cpu = "x86-64-v3") const {
    tl_cpu_compile_options options = {sizeof(options), 3, 1, 0, 0};
    tl_cpu_bytes bytes, log;
    const int failed = compile(ir.data(), ir.size(), cpu, "", &options, &bytes, nullptr, &log);
    std::string message(log.data ? log.data : "", log.size);
    if (object) object->assign(bytes.data ? bytes.data : "", bytes.size);
    free(&bytes);
    free(&log);
    EXPECT_EQ(failed != 0, !message.empty());
    return message;
  }
};

const Library& Module_() {
  static const Library& library = *new Library;
  return library;
}

constexpr char kAnswer[] = "define i32 @answer(i32 %x) {\n  %y = add i32 %x, 1\n  ret i32 %y\n}\n";

TEST(CpuModule, CompilesLoadsAndUnloads) {
  const Library& m = Module_();
  ASSERT_NE(m.handle, nullptr) << dlerror();
  EXPECT_EQ(m.version(), uint32_t{TL_CPU_INTERFACE_VERSION});
  EXPECT_TRUE(absl::StartsWith(m.compiler(), "LLVM 19."));
  std::string object;
  ASSERT_EQ(m.Compile(kAnswer, &object), "");
  for (int i = 0; i < 50; ++i) {
    tl_cpu_image* image = nullptr;
    tl_cpu_bytes log;
    ASSERT_EQ(m.load(object.data(), object.size(), nullptr, nullptr, &image, &log), 0);
    const auto answer = reinterpret_cast<int (*)(int)>(m.symbol(image, "answer"));
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer(41), 42);
    EXPECT_EQ(m.symbol(image, "other"), nullptr);
    m.unload(image);
  }
  tl_cpu_bytes cpu, features;
  EXPECT_EQ(m.host(&cpu, &features), 0);
  EXPECT_GT(cpu.size, 0u);
  m.free(&cpu);
  m.free(&features);
}

TEST(CpuModule, BadInputIsAMessage) {
  const Library& m = Module_();
  EXPECT_THAT(m.Compile("define i32 @f( {"), HasSubstr("error"));
  EXPECT_THAT(m.Compile(std::string("define i32 @f() { ret i32 0 }\0more", 34)), Not(""));
  EXPECT_THAT(m.Compile("\x7f\xff\xfe"), Not(""));
  // Parses, but two definitions of one value, a missing terminator, a wrong type.
  EXPECT_THAT(m.Compile("define i32 @f(i32 %x) {\n %x = add i32 1, 2\n ret i32 %x\n}"), Not(""));
  EXPECT_THAT(m.Compile("define i32 @f(i32 %x) {\n ret i64 0\n}"), Not(""));
  EXPECT_THAT(m.Compile("define void @f() {\n call void @llvm.memset.p0.i64()\n ret void\n}"),
              Not(""));
#if defined(__SANITIZE_ADDRESS__)
  const __lsan::ScopedDisabler leaks_are_known;  // see guard.h
#endif
  // Correct, but cannot be selected: LLVM's own way would be to end the process.
  EXPECT_THAT(m.Compile("declare <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(<16 x float>, <16 x "
                        "float>, i16)\n"
                        "define <16 x float> @f(<16 x float> %x) {\n"
                        " %y = call <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(<16 x float> %x, "
                        "<16 x float> %x, i16 -1)\n ret <16 x float> %y\n}",
                        nullptr, "x86-64"),
              HasSubstr("LLVM"));
  // And it still works.
  EXPECT_EQ(m.Compile(kAnswer), "");
  tl_cpu_image* image = nullptr;
  tl_cpu_bytes log;
  EXPECT_NE(m.load("no object", 9, nullptr, nullptr, &image, &log), 0);
  EXPECT_GT(log.size, 0u);
  m.free(&log);
  std::string object;
  ASSERT_EQ(m.Compile("declare i32 @unknown_to_all()\ndefine i32 @f() {\n %x = call i32 "
                      "@unknown_to_all()\n ret i32 %x\n}",
                      &object),
            "");
  EXPECT_NE(m.load(object.data(), object.size(), nullptr, nullptr, &image, &log), 0);
  EXPECT_THAT(std::string(log.data, log.size), HasSubstr("unknown_to_all"));
  m.free(&log);
}

TEST(CpuModule, BothLoadersRunAKernel) {
  const auto compiled = testing::Compile(Program());
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  const std::string& object = compiled->built.binary;
  // LLVM's.
  const Library& m = Module_();
  tl_cpu_image* image = nullptr;
  tl_cpu_bytes log;
  ASSERT_EQ(m.load(
                object.data(), object.size(),
                [](void*, const char* name) { return cpu::LibraryFunction(name); }, nullptr, &image,
                &log),
            0)
      << std::string(log.data, log.size);
  EXPECT_NE(m.symbol(image, compiled->generated.entries[0].symbol.c_str()), nullptr);
  m.unload(image);
  // Ours.
  const auto loaded = cpu::LoadObject(object, cpu::LibraryFunction);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_NE((*loaded)->Symbol(cpu::EntrySymbol(0)), nullptr);
  EXPECT_EQ((*loaded)->Symbol("tl_kernel_0"), nullptr) << "only entries are visible";
  const auto unresolved =
      cpu::LoadObject(object, [](std::string_view) -> void* { return nullptr; });
  EXPECT_EQ(unresolved.status().code(), absl::StatusCode::kNotFound);
}

TEST(CpuBackend, CachedObjectsLoadWithoutTheModule) {
  const Module module = Program();
  const auto compiled = testing::Compile(module);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  SearchPaths nowhere;
  nowhere.library_dir = "/nonexistent";
  const auto backend = MakeCpuBackend(nowhere, 1);
  const auto kernel = backend->Load(compiled->built.binary, compiled->generated.entries, module, 0);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  ExpectRight(**kernel);
}

TEST(CpuBackend, IdentityAndMissingModule) {
  const auto identity = testing::Cpu().CompilerIdentity({});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_THAT(*identity, HasSubstr("LLVM 19."));
  const auto compiled = testing::Compile(Program());
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->built.compiler, *identity);
  EXPECT_FALSE(testing::Cpu().CodegenIdentity().empty());
}

TEST(CpuBackend, Targets) {
  const auto cpu = testing::Cpu().FindTarget("cpu");
  ASSERT_TRUE(cpu.ok());
  EXPECT_EQ(cpu->backend, "cpu");
  EXPECT_TRUE(cpu->channels);
  EXPECT_FALSE(cpu->simt);
  EXPECT_TRUE(absl::StartsWith(cpu->identity, "cpu:x86-64"));
  for (const std::string& name : testing::Cpu().TargetNames()) {
    EXPECT_TRUE(testing::Cpu().FindTarget(name).ok()) << name;
  }
  for (const char* name : {"", "sm_90a", "cpu:", "cpu:z80", "CPU", "cpu:x86-64-v9"}) {
    EXPECT_EQ(testing::Cpu().FindTarget(name).status().code(), absl::StatusCode::kNotFound) << name;
  }
  const auto devices = testing::Cpu().Devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_FALSE((*devices)[0].name.empty());
  EXPECT_GT((*devices)[0].units, 0);
  EXPECT_GT((*devices)[0].memory_bytes, 0);
  EXPECT_FALSE(testing::Cpu().OpenSession(1).ok());
}

TEST(CpuBackend, CodeForABetterProcessorIsRefused) {
  const auto needed = cpu::ParseProcessor("x86-64-v4:+avx512fp16");
  const auto host = cpu::ParseProcessor("x86-64-v3:");
  ASSERT_TRUE(needed.ok() && host.ok());
  EXPECT_EQ(cpu::Missing(*needed, *host), "x86-64-v4");
  EXPECT_EQ(cpu::Missing(*needed, *cpu::ParseProcessor("x86-64-v4:")), "avx512fp16");
  EXPECT_EQ(cpu::Missing(*host, *needed), "");
  EXPECT_FALSE(cpu::ParseProcessor("pentium:").ok());
  EXPECT_FALSE(cpu::ParseProcessor("x86-64").ok());
  // An object that says so does not load.
  auto text = cpu::EmitLlvm(Program(), {.f16c = true}, "x86-64-v4:+no_such_feature");
  ASSERT_TRUE(text.ok());
  std::string object;
  ASSERT_EQ(Module_().Compile(*text, &object), "");
  const std::vector<Entry> entries = {{.symbol = cpu::EntrySymbol(0)}};
  const auto kernel = testing::Cpu().Load(object, entries, Program(), 0);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(kernel.status().message()), HasSubstr("no_such_feature"));
  EXPECT_EQ(DetailOf(kernel.status()).reason, Reason::kBinaryRejected);
}

TEST(CpuBackend, OtherLevelsAreCompiledToo) {
  for (const std::string& name : testing::Cpu().TargetNames()) {
    const auto compiled = testing::Compile(Program(), name);
    EXPECT_TRUE(compiled.ok()) << name << " " << compiled.status();
  }
}

TEST(CpuBackend, FormsForPeople) {
  const auto target = testing::Cpu().FindTarget("cpu:x86-64-v3");
  testing::Elementwise e{{DType::kBF16}, {}, 1000};
  e.outputs.push_back(
      {DType::kF32, [](const std::vector<ExprRef>& x) { return MakeCall(MathFn::kExp, {x[0]}); }});
  const auto generated = testing::Cpu().Generate(e.Build(), *target, {});
  ASSERT_TRUE(generated.ok());
  const auto form = [&](std::string_view name) {
    return testing::Cpu().Disassemble(*generated, "", *target, name);
  };
  EXPECT_THAT(*form("asm"), HasSubstr("tl_kernel_0_range:"));
  EXPECT_THAT(*form("asm"), HasSubstr("ymm")) << "vectorised";
  EXPECT_THAT(*form("llvm"), HasSubstr("define i32 @tl_kernel_0_range"));
  EXPECT_THAT(*form("llvm-opt"), HasSubstr("x float>"));
  EXPECT_EQ(form("ptx").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuBackend, RefusesWhatItCannotLaunch) {
  auto kernel = testing::CompileAndLoad(Program());
  ASSERT_TRUE(kernel.ok());
  int stream;
  EXPECT_EQ((*kernel)->Launch(0, 1, {nullptr, 0, &stream}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE((*kernel)->Launch(1, 1, {}).ok());
  EXPECT_FALSE((*kernel)->Launch(0, 0, {}).ok());
  Module tile = Program();
  tile.level = Level::kTile;
  EXPECT_EQ(testing::Compile(tile).status().code(), absl::StatusCode::kInternal);
}

// Loading checks everything it reads: a damaged object is refused or loaded, and never more.
TEST(CpuLoader, DamagedObjects) {
  const auto compiled = testing::Compile(Program());
  ASSERT_TRUE(compiled.ok());
  const std::string& object = compiled->built.binary;
  for (size_t n = 0; n < object.size(); n += 7) {
    cpu::LoadObject(object.substr(0, n), cpu::LibraryFunction).IgnoreError();
  }
  EXPECT_FALSE(cpu::LoadObject("", cpu::LibraryFunction).ok());
  EXPECT_FALSE(cpu::LoadObject(object.substr(0, 100), cpu::LibraryFunction).ok());
  for (size_t at = 0; at < object.size(); ++at) {
    for (int bit : {0, 3, 7}) {
      std::string copy = object;
      copy[at] ^= static_cast<char>(1 << bit);
      cpu::LoadObject(copy, cpu::LibraryFunction).IgnoreError();
    }
  }
  std::mt19937 rng(1);
  for (int round = 0; round < 3000; ++round) {
    std::string copy = object;
    for (int i = 0; i < 8; ++i) copy[rng() % copy.size()] = static_cast<char>(rng());
    cpu::LoadObject(copy, cpu::LibraryFunction).IgnoreError();
  }
}

TEST(CpuBackend, ManyThreadsCompileAndLaunchAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 3; ++round) {
        const int64_t count = 500 + 100 * t + round;
        auto kernel = testing::CompileAndLoad(Program(count));
        ASSERT_TRUE(kernel.ok()) << kernel.status();
        for (int i = 0; i < 20; ++i) ExpectRight(**kernel, count);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(CpuBackend, OneKernelOnManyThreads) {
  auto kernel = testing::CompileAndLoad(Program());
  ASSERT_TRUE(kernel.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&kernel] {
      for (int i = 0; i < 200; ++i) ExpectRight(**kernel);
    });
  }
  for (std::thread& t : threads) t.join();
}

// ---- The text

TEST(CpuEmitter, NamesDoNotMatter) {
  Module a = Program(), b = Program();
  for (Buffer& buffer : b.buffers) buffer.name = "other_" + buffer.name;
  for (Var& var : b.vars) var.name = "other_" + var.name;
  b.name = "another";
  EXPECT_EQ(*cpu::EmitLlvm(a, {}, "p:"), *cpu::EmitLlvm(b, {}, "p:"));
}

TEST(CpuEmitter, OverlappingTilesShareAnAliasScope) {
  testing::ThreadProgram p;
  const BufferId a = p.Tile(DType::kF32, 16, 0), b = p.Tile(DType::kF32, 16, 32);
  const BufferId c = p.Tile(DType::kF32, 16, 64);
  Launch launch = p.NewLaunch();
  launch.body.push_back(p.Threads(MakeInt(16), [&](const ExprRef& i) -> Block {
    return {p.Store(a, i, MakeBinary(BinaryOp::kAdd, p.Load(b, i), p.Load(c, i)))};
  }));
  p.module().launches.push_back(launch);
  const std::string text = *cpu::EmitLlvm(p.module(), {}, "p:");
  // a overlaps b, b overlaps c: a and c are each other's only stranger, b has none.
  EXPECT_THAT(text, HasSubstr("!noalias"));
  const size_t load_b = text.find("load float");
  const std::string line = text.substr(load_b, text.find('\n', load_b) - load_b);
  EXPECT_THAT(line, Not(HasSubstr("!noalias"))) << line;
}

TEST(CpuEmitter, WhatALevelMayNotHoldIsInternal) {
  testing::ThreadProgram p;
  Launch launch = p.NewLaunch();
  launch.body.push_back(MakeStmt(Fill{{}, MakeInt(0)}));
  p.module().launches.push_back(launch);
  EXPECT_EQ(cpu::EmitLlvm(p.module(), {}, "p:").status().code(), absl::StatusCode::kInternal);
  p.module().launches[0].body = {MakeStmt(
      Let{p.Var(ScalarType::kInt, VarRole::kLet), p.Read(p.Var(ScalarType::kInt, VarRole::kLet))})};
  EXPECT_EQ(cpu::EmitLlvm(p.module(), {}, "p:").status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tl
