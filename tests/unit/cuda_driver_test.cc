// The driver's side of the CUDA backend on a driver that needs no GPU.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/backend.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace tl {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kBinary =
    "\x7f"
    "ELF … Cuda compilation tools, release 13.0, V13.0.88";

const std::vector<Entry>& Entries() {
  static const auto& entries = *new std::vector<Entry>{
      {.symbol = "tl_kernel_0", .threads = 256, .groups = 1, .shared_bytes = 100000},
      {.symbol = "tl_kernel_1", .threads = 64, .groups = 1, .shared_bytes = 0}};
  return entries;
}

class FakeDriverTest : public ::testing::Test {
 protected:
  FakeDriverTest() {
    library_ = dlopen(TL_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    reset_ = Function<void()>("fake_cuda_reset");
    current_ = Function<int()>("fake_cuda_current_device");
    set_current_ = Function<void(int)>("fake_cuda_set_current_device");
    state_ = Function<FakeCuda*()>("fake_cuda")();
    reset_();
    SearchPaths paths;
    paths.cuda_driver = TL_FAKE_CUDA;
    backend_ = MakeCudaBackend(paths);
  }
  ~FakeDriverTest() override {
    backend_.reset();
    if (!state_->deinitialized) {
      // Everything was given back, and no thread's context was changed.
      EXPECT_EQ(state_->modules + state_->streams + state_->events + state_->graphs, 0);
      EXPECT_EQ(state_->allocations, 0);
      EXPECT_EQ(state_->retained[0], 0);
      EXPECT_EQ(state_->retained[1], 0);
      EXPECT_EQ(state_->contexts_pushed, 0);
    }
    reset_();
    dlclose(library_);
  }

  template <typename F>
  F* Function(const char* name) {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  StatusOr<std::unique_ptr<LoadedKernel>> Load(int ordinal, std::string_view binary = kBinary) {
    return backend_->Load(binary, Entries(), Module(), ordinal);
  }
  // Launches the two entries one after the other, with a driver of this version.
  void LaunchBoth(const std::vector<Entry>& entries, int version, int64_t blocks) {
    reset_();
    state_->version = version;
    SearchPaths paths;
    paths.cuda_driver = TL_FAKE_CUDA;
    const std::unique_ptr<Backend> backend = MakeCudaBackend(paths);
    const auto kernel = backend->Load(kBinary, entries, Module(), 0);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    int64_t argument = 1;
    void* params[] = {&argument};
    for (int entry : {0, 1}) {
      ASSERT_TRUE((*kernel)->Launch(entry, blocks, {params, 1, nullptr}).ok());
    }
    ASSERT_EQ(state_->num_launches, 2);
  }

  void* library_ = nullptr;
  void (*reset_)() = nullptr;
  int (*current_)() = nullptr;
  void (*set_current_)(int) = nullptr;
  FakeCuda* state_ = nullptr;
  std::unique_ptr<Backend> backend_;
};

TEST_F(FakeDriverTest, EachDeviceHasItsOwnTarget) {
  const auto devices = backend_->Devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].name, "Fake H200");
  EXPECT_EQ((*devices)[0].target.name, "sm_90a");
  EXPECT_EQ((*devices)[0].units, 132);
  EXPECT_EQ((*devices)[0].memory_bytes, int64_t{1} << 33);
  EXPECT_EQ((*devices)[0].driver_version, 12040);
  EXPECT_EQ((*devices)[1].name, "Fake A100");
  EXPECT_EQ((*devices)[1].target.name, "sm_80");
  EXPECT_EQ((*devices)[1].ordinal, 1);
  // Listing creates no context.
  EXPECT_EQ(state_->retained[0], 0);
}

TEST_F(FakeDriverTest, NoDriverNoDevicesNoError) {
  SearchPaths paths;
  paths.cuda_driver = "/nowhere/libcuda.so.1";
  const auto backend = MakeCudaBackend(paths);
  ASSERT_TRUE(backend->Devices().ok());
  EXPECT_TRUE(backend->Devices()->empty());
  for (const Status& s :
       {backend->Load(kBinary, Entries(), Module(), 0).status(), backend->OpenSession(0).status(),
        backend->CheckNotCapturing(0, nullptr)}) {
    EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(DetailOf(s).reason, Reason::kNoDevice);
    EXPECT_THAT(std::string(s.message()), HasSubstr("/nowhere/libcuda.so.1"));
  }
  // Names of targets need no driver.
  EXPECT_TRUE(backend->FindTarget("H200").ok());
}

TEST_F(FakeDriverTest, DriverWithoutDevices) {
  state_->init_result = 100;
  ASSERT_TRUE(backend_->Devices().ok());
  EXPECT_TRUE(backend_->Devices()->empty());
  EXPECT_EQ(DetailOf(Load(0).status()).reason, Reason::kNoDevice);
  EXPECT_EQ(DetailOf(Load(0).status()).native_code, 100);
  // They may appear later.
  state_->init_result = 0;
  EXPECT_EQ(backend_->Devices()->size(), 2u);
}

TEST_F(FakeDriverTest, BrokenDriverIsAnError) {
  state_->init_result = 999;
  const Status s = backend_->Devices().status();
  EXPECT_EQ(DetailOf(s).domain, Domain::kCuda);
  EXPECT_EQ(DetailOf(s).native_code, 999);
  EXPECT_THAT(std::string(s.message()), HasSubstr("the driver's own words"));
}

TEST_F(FakeDriverTest, LaunchesOnTheGivenStreamAndDevice) {
  for (int ordinal : {0, 1}) {
    const auto kernel = Load(ordinal);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(state_->max_dynamic_shared, 100000);
    EXPECT_THAT((*kernel)->Facts(), HasSubstr("\"registers\": 42"));
    int64_t argument = 77 + ordinal;
    void* params[] = {&argument};
    state_->num_launches = 0;
    set_current_(0);  // a thread that has never used the device
    ASSERT_TRUE((*kernel)->Launch(1, 12, {params, 1, nullptr}).ok());
    EXPECT_EQ(current_(), 0) << "no context is left behind";
    set_current_(2 - ordinal);  // one that uses the other device
    ASSERT_TRUE((*kernel)->Launch(0, 2147483647, {params, 1, nullptr}).ok());
    EXPECT_EQ(current_(), 2 - ordinal);
    set_current_(1 + ordinal);
    const int pushes = state_->pushes;
    ASSERT_TRUE((*kernel)->Launch(0, 3, {params, 1, nullptr}).ok());
    EXPECT_EQ(state_->pushes, pushes) << "the context is current already";
    ASSERT_EQ(state_->num_launches, 3);
    EXPECT_STREQ(state_->launches[0].symbol, "tl_kernel_1");
    EXPECT_EQ(state_->launches[0].grid_x, 12u);
    EXPECT_EQ(state_->launches[0].block_x, 64u);
    EXPECT_EQ(state_->launches[0].shared_bytes, 0u);
    EXPECT_EQ(state_->launches[1].grid_x, 2147483647u);
    EXPECT_EQ(state_->launches[1].shared_bytes, 100000u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(state_->launches[i].device, ordinal);
      EXPECT_EQ(state_->launches[i].first_param, static_cast<uint64_t>(argument));
    }
    set_current_(0);
  }
}

TEST_F(FakeDriverTest, StreamReachesTheDriver) {
  const auto kernel = Load(0);
  const auto session = backend_->OpenSession(0);
  ASSERT_TRUE(kernel.ok() && session.ok());
  int64_t argument = 0;
  void* params[] = {&argument};
  ASSERT_TRUE((*kernel)->Launch(0, 1, {params, 1, (*session)->stream()}).ok());
  EXPECT_NE((*session)->stream(), nullptr);
  EXPECT_EQ(state_->launches[0].stream, (*session)->stream());
}

TEST_F(FakeDriverTest, ImpossibleGridsAreRefused) {
  const auto kernel = Load(0);
  ASSERT_TRUE(kernel.ok());
  for (int64_t blocks : {int64_t{0}, int64_t{-1}, int64_t{1} << 31, int64_t{1} << 40}) {
    EXPECT_EQ((*kernel)->Launch(0, blocks, {}).code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(state_->num_launches, 0);
}

TEST_F(FakeDriverTest, KernelsThatWaitThemselvesMayStartEarly) {
  std::vector<Entry> entries = Entries();
  entries[1].early = true;
  const struct {
    int version;
    std::vector<int> early;
  } cases[] = {{12040, {0, 1}}, {12030, {0, 1}}, {12020, {0, 0}}};
  for (const auto& c : cases) {
    ASSERT_NO_FATAL_FAILURE(LaunchBoth(entries, c.version, 5));
    for (int i : {0, 1}) {
      EXPECT_EQ(state_->launches[i].early, c.early[i]) << c.version;
      EXPECT_EQ(state_->launches[i].grid_x, 5u);
      EXPECT_EQ(state_->launches[i].block_x, static_cast<unsigned>(entries[i].threads));
      EXPECT_EQ(state_->launches[i].shared_bytes, static_cast<unsigned>(entries[i].shared_bytes));
    }
  }
}

TEST_F(FakeDriverTest, BlocksRunInClusters) {
  std::vector<Entry> entries = Entries();
  entries[1].cluster = 2;
  const struct {
    bool persistent, early;
    int version;
    int64_t blocks;
    unsigned grid;
  } cases[] = {{false, false, 12040, 6, 6},       {false, true, 12040, 6, 6},
               {false, false, 12000, 6, 6},       {false, true, 12000, 6, 6},
               {true, false, 12040, 6, 6},        {true, true, 12040, 100000, 130},
               {true, false, 12040, 100000, 130}, {false, true, 12040, 100000, 100000}};
  for (const auto& c : cases) {
    entries[1].persistent = c.persistent;
    entries[1].early = c.early;
    ASSERT_NO_FATAL_FAILURE(LaunchBoth(entries, c.version, c.blocks));
    EXPECT_EQ(state_->launches[0].cluster, 1u);
    EXPECT_EQ(state_->launches[1].cluster, 2u);
    EXPECT_EQ(state_->launches[1].grid_x, c.grid);
    EXPECT_EQ(state_->launches[1].early, c.early && c.version >= 12030 ? 1 : 0);
  }
}

TEST_F(FakeDriverTest, RejectedBinaryNamesBothVersions) {
  for (int result : {200, 209, 218, 222}) {
    state_->load_result = result;
    const Status s = Load(0).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailOf(s).reason, Reason::kBinaryRejected);
    EXPECT_EQ(DetailOf(s).native_code, result);
    EXPECT_THAT(std::string(s.message()), HasSubstr("CUDA 12.4"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("CUDA 13.0"));
    EXPECT_THAT(std::string(s.message()), HasSubstr("Fake H200"));
  }
  state_->load_result = 0;
  EXPECT_EQ(DetailOf(Load(0, "no binary at all").status()).reason, Reason::kBinaryRejected);
}

TEST_F(FakeDriverTest, MissingEntryAndMissingDevice) {
  std::vector<Entry> entries = {{.symbol = "other"}};
  EXPECT_EQ(DetailOf(backend_->Load(kBinary, entries, Module(), 0).status()).native_code, 500);
  for (int ordinal : {-1, 2, 100}) {
    EXPECT_EQ(DetailOf(Load(ordinal).status()).reason, Reason::kNoDevice);
    EXPECT_EQ(DetailOf(backend_->OpenSession(ordinal).status()).reason, Reason::kNoDevice);
  }
}

TEST_F(FakeDriverTest, CaptureIsNoticed) {
  EXPECT_TRUE(backend_->CheckNotCapturing(0, nullptr).ok());
  for (int capturing : {1, 2}) {
    state_->capturing = capturing;
    const Status s = backend_->CheckNotCapturing(0, nullptr);
    EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(DetailOf(s).reason, Reason::kNotReady);
  }
  // The driver's own refusal has the same code and reason.
  EXPECT_EQ(DetailOf(Load(0).status()).reason, Reason::kNotReady);
}

TEST_F(FakeDriverTest, LaunchErrorsCarryTheDriversCode) {
  const auto kernel = Load(0);
  ASSERT_TRUE(kernel.ok());
  const std::pair<int, absl::StatusCode> cases[] = {
      {700, absl::StatusCode::kInternal},         {701, absl::StatusCode::kResourceExhausted},
      {400, absl::StatusCode::kInvalidArgument},  {4, absl::StatusCode::kFailedPrecondition},
      {702, absl::StatusCode::kDeadlineExceeded}, {900, absl::StatusCode::kUnavailable},
      {801, absl::StatusCode::kUnimplemented}};
  for (const auto& [result, code] : cases) {
    state_->launch_result = result;
    const Status s = (*kernel)->Launch(0, 1, {});
    EXPECT_EQ(s.code(), code) << result;
    EXPECT_EQ(DetailOf(s).native_code, result);
    EXPECT_EQ(DetailOf(s).domain, Domain::kCuda);
  }
}

// By the name of the function that was called.
TEST_F(FakeDriverTest, LaunchErrorsNameTheCall) {
  std::vector<Entry> entries(3, Entries()[0]);
  entries[1].early = true;
  entries[2].cluster = 2;
  const auto kernel = backend_->Load(kBinary, entries, Module(), 0);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  state_->launch_result = 700;
  const char* const calls[] = {"cuLaunchKernel: ", "cuLaunchKernelEx: ", "cuLaunchKernelEx: "};
  for (int entry : {0, 1, 2}) {
    const Status s = (*kernel)->Launch(entry, 2, {});
    EXPECT_THAT(std::string(s.message()), ::testing::StartsWith(calls[entry]));
  }
}

TEST_F(FakeDriverTest, DriverThatIsGoneIsTolerated) {
  auto kernel = Load(0);
  auto session = backend_->OpenSession(1);
  ASSERT_TRUE(kernel.ok() && session.ok());
  state_->deinitialized = 1;
  EXPECT_EQ((*kernel)->Launch(0, 1, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf((*session)->Allocate(5).status()).native_code, 4);
  (*session)->Free(&session);
  kernel->reset();
  session->reset();
  backend_.reset();
}

TEST_F(FakeDriverTest, KernelOutlivesItsBackend) {
  auto kernel = Load(1);
  ASSERT_TRUE(kernel.ok());
  backend_.reset();
  int64_t argument = 0;
  void* params[] = {&argument};
  EXPECT_TRUE((*kernel)->Launch(0, 1, {params, 1, nullptr}).ok());
}

TEST_F(FakeDriverTest, SessionMemory) {
  auto session = backend_->OpenSession(1);
  ASSERT_TRUE(session.ok());
  for (size_t bytes : {0, 1, 1000, 1 << 20}) {
    auto p = (*session)->Allocate(bytes);
    ASSERT_TRUE(p.ok()) << p.status();
    std::vector<uint8_t> in(bytes, 7), out(bytes, 0);
    EXPECT_TRUE((*session)->CopyIn(*p, in.data(), bytes).ok());
    EXPECT_TRUE((*session)->CopyOut(out.data(), *p, bytes).ok());
    EXPECT_EQ(in, out);
    EXPECT_TRUE((*session)->Fill(*p, 9, bytes).ok());
    EXPECT_TRUE((*session)->Synchronize().ok());
    EXPECT_TRUE((*session)->CopyOut(out.data(), *p, bytes).ok());
    EXPECT_EQ(out, std::vector<uint8_t>(bytes, 9));
    (*session)->Free(*p);
  }
  EXPECT_EQ((*session)->Allocate(size_t{1} << 41).status().code(),
            absl::StatusCode::kResourceExhausted);
  (*session)->Free(nullptr);
}

class LaunchOnSession : public DeviceSession::Enqueue {
 public:
  LaunchOnSession(LoadedKernel& kernel, void* stream) : kernel_(kernel), stream_(stream) {}
  Status operator()(int iteration) override {
    if (iteration == fail_at) return absl::InternalError("no more");
    iterations.push_back(iteration);
    int64_t argument = iteration;
    void* params[] = {&argument};
    return kernel_.Launch(0, 1, {params, 1, stream_});
  }
  std::vector<int> iterations;
  int fail_at = -1;

 private:
  LoadedKernel& kernel_;
  void* stream_;
};

TEST_F(FakeDriverTest, TimesGraphsOrPlainLaunches) {
  auto kernel = Load(0);
  auto session = backend_->OpenSession(0);
  ASSERT_TRUE(kernel.ok() && session.ok());
  for (bool fail : {false, true}) {
    state_->graphs_fail = fail;
    for (int count : {1, 2, 10}) {
      LaunchOnSession enqueue(**kernel, (*session)->stream());
      const auto time = (*session)->Time(enqueue, count);
      ASSERT_TRUE(time.ok()) << time.status();
      EXPECT_NEAR(*time, count * 1000.0, 1) << count;  // a launch takes a microsecond here
      EXPECT_EQ(enqueue.iterations.size(), static_cast<size_t>(count));
    }
  }
  LaunchOnSession enqueue(**kernel, (*session)->stream());
  enqueue.fail_at = 3;
  EXPECT_EQ((*session)->Time(enqueue, 10).status().message(), "no more");
  // The failure has ended the capture.
  EXPECT_TRUE((*session)->Synchronize().ok());
}

TEST_F(FakeDriverTest, ManyThreads) {
  const auto kernel = Load(0);
  ASSERT_TRUE(kernel.ok());
  std::vector<std::thread> threads;
  std::vector<int> left(24, -1);
  for (size_t t = 0; t < left.size(); ++t) {
    threads.emplace_back([&, t] {
      int64_t argument = static_cast<int64_t>(t);
      void* params[] = {&argument};
      for (int i = 0; i < 20; ++i) {
        if (!(*kernel)->Launch(0, 1, {params, 1, nullptr}).ok()) return;
      }
      if (!backend_->Devices().ok() || !Load(static_cast<int>(t) % 2).ok()) return;
      left[t] = current_();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(left, ::testing::Each(0));
  EXPECT_EQ(state_->num_launches, 24 * 20);
}

}  // namespace
}  // namespace tl
