// Many threads on one context and several: one compile a program, right results, no order of
// release that matters.
#include <atomic>
#include <barrier>
#include <thread>

#include "tests/abi/abi_testing.h"

namespace {

constexpr int kThreads = 24;
constexpr int kPrograms = 6;

template <typename Body>
void InThreads(Body body) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Compiles, launches and releases program number `i`.
bool UseProgram(tl_context* context, int32_t device, int i) {
  // Every other caller says the same in other words.
  const std::string source = border::AddProgram(i) + (i % 2 ? "# odd\n" : "");
  tl_compile_options options = border::SourceOptions(source, nullptr);
  options.device = device;
  tl_kernel* kernel = nullptr;
  if (tl_compile(context, &options, &kernel) != TL_OK) return false;
  const bool right = border::RunsRight(kernel, device, i, 777);
  tl_kernel_release(kernel);
  return right;
}

void OneCompileEach(const char* backend) {
  const border::Context context = families::MakeContext();
  const int32_t device = families::FindDevice(context.get(), backend);
  if (device < 0) GTEST_SKIP() << "no device of " << backend;
  std::atomic<int> wrong{0};
  // All want the same first, then each begins elsewhere.
  InThreads([&](int t) {
    if (!UseProgram(context.get(), device, 0)) ++wrong;
    for (int i = 0; i < 2 * kPrograms; ++i) {
      if (!UseProgram(context.get(), device, (t + i) % kPrograms)) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  const tl_cache_stats stats = border::Stats(context.get());
  EXPECT_EQ(stats.compiles, static_cast<uint64_t>(kPrograms));
  EXPECT_EQ(stats.misses, static_cast<uint64_t>(kPrograms));
  EXPECT_GE(stats.memory_hits + stats.waits + stats.compiles,
            static_cast<uint64_t>(kThreads * (2 * kPrograms + 1)));
}

TEST(Threads, OneCompileEachOnReference) { OneCompileEach("reference"); }
TEST(Threads, OneCompileEachOnCpu) { OneCompileEach("cpu"); }

TEST(Threads, ContextsOfTheirOwn) {
  std::atomic<int> wrong{0};
  InThreads([&](int t) {
    const border::Context context = families::MakeContext();
    const int32_t device = families::FindDevice(context.get(), "reference");
    if (!UseProgram(context.get(), device, t % kPrograms)) ++wrong;
    if (border::Stats(context.get()).compiles != 1) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

// One kernel handle in many threads, each an owner; the context's handle is gone long before.
TEST(Threads, SharedKernel) {
  for (const char* backend : {"reference", "cpu"}) {
    border::Context context = families::MakeContext();
    const int32_t device = families::FindDevice(context.get(), backend);
    if (device < 0) continue;
    border::Kernel kernel = border::CompileFor(context.get(), border::AddProgram(5), backend);
    ASSERT_TRUE(kernel);
    context.reset();
    tl_kernel* shared = kernel.get();
    for (int t = 0; t < kThreads; ++t) ASSERT_EQ(tl_kernel_retain(shared), TL_OK);
    kernel.reset();
    std::atomic<int> wrong{0};
    InThreads([&](int t) {
      if (!border::RunsRight(shared, device, 5, 100 + t)) ++wrong;
      if (border::Text(shared, t % 2 ? TL_TEXT_IR : TL_TEXT_REPORT).empty()) ++wrong;
      tl_kernel_release(shared);
    });
    EXPECT_EQ(wrong, 0) << backend;
  }
}

// Errors of one thread are no other's.
TEST(Threads, LastErrors) {
  const border::Context context = families::MakeContext();
  std::atomic<int> wrong{0};
  InThreads([&](int t) {
    const std::string name = "family" + std::to_string(t);
    tl_compile_options options = border::Sized<tl_compile_options>();
    options.family = name.c_str();
    tl_kernel* kernel = nullptr;
    for (int i = 0; i < 100; ++i) {
      if (tl_compile(context.get(), &options, &kernel) != TL_NOT_FOUND) ++wrong;
      if (border::LastMessage().find("'" + name + "'") == std::string::npos) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// A program that fails to compile fails for all, and is not remembered as anything else.
TEST(Threads, FailingCompiles) {
  const border::Context context = families::MakeContext();
  const std::string source =
      "tl 1.0\nkernel k(N: dim) {\n out Y: tensor<f32>[N]\n launch {\n x = "
      "alloc_shared<f32>[1048576]\n clear x copy x -> Y[0]\n }\n}\n";
  std::atomic<int> wrong{0};
  InThreads([&](int) {
    const tl_compile_options options = border::SourceOptions(source, "sm_80");
    tl_kernel* kernel = nullptr;
    if (tl_compile(context.get(), &options, &kernel) != TL_RESOURCE_EXHAUSTED || kernel) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(border::Stats(context.get()).compiles, 0u);
}

}  // namespace
