// Programs on a real GPU against the reference interpreter. Skips where there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/cuda_programs.h"

namespace tl {
namespace {

using testing::CudaCase;
using testing::Lowered;

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    backend_ = MakeCudaBackend(testing::TestPaths());
    const auto devices = backend_->Devices();
    ASSERT_TRUE(devices.ok()) << devices.status();
    if (devices->empty()) GTEST_SKIP() << "SKIP, no CUDA device";
    device_ = devices->front();
    const auto compiler = backend_->CompilerIdentity(device_.target);
    if (!compiler.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << compiler.status().message();
    auto session = backend_->OpenSession(device_.ordinal);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  StatusOr<std::unique_ptr<LoadedKernel>> Load(const Lowered& program, const Target& target) {
    TL_ASSIGN_OR_RETURN(const Built built, backend_->Build(program.generated, target));
    return backend_->Load(built.binary, program.generated.entries, program.thread, device_.ordinal);
  }

  // Runs on copies of the host's memory, guards included, and brings them back.
  Status Run(const Lowered& program, LoadedKernel& kernel,
             const reference::GeneratedInputs& inputs) {
    std::vector<const reference::GuardedMemory*> memories;
    for (const auto& m : inputs.operands) memories.push_back(&m);
    for (const auto& m : inputs.workspaces) memories.push_back(&m);
    std::vector<void*> blocks, pointers;
    for (const reference::GuardedMemory* m : memories) {
      TL_ASSIGN_OR_RETURN(void* p, session_->Allocate(m->whole_bytes()));
      blocks.push_back(p);
      pointers.push_back(static_cast<char*>(p) + reference::GuardedMemory::kGuard);
      TL_RETURN_IF_ERROR(session_->CopyIn(p, m->whole(), m->whole_bytes()));
    }
    const HostArgs args = inputs.arguments.host();
    testing::Params params(program.thread, std::move(pointers), args);
    for (size_t i = 0; i < program.thread.launches.size(); ++i) {
      TL_ASSIGN_OR_RETURN(const int64_t grid,
                          testing::NumBlocks(program.thread, program.thread.launches[i], args));
      if (grid == 0) continue;
      TL_RETURN_IF_ERROR(params.SetBoxes(program.thread, program.thread.launches[i], args,
                                         [&](const TensorMapRecipe& recipe, TensorMap& map) {
                                           return kernel.Describe(recipe, map);
                                         }));
      TL_RETURN_IF_ERROR(kernel.Launch(static_cast<int>(i), grid,
                                       {params.data(), params.size(), session_->stream()}));
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      TL_RETURN_IF_ERROR(session_->CopyOut(const_cast<uint8_t*>(memories[i]->whole()), blocks[i],
                                           memories[i]->whole_bytes()));
      session_->Free(blocks[i]);
    }
    return absl::OkStatus();
  }

  void Check(const CudaCase& c, const Target& target) {
    SCOPED_TRACE(c.name + " " + target.name);
    const auto program = testing::LowerText(c.text, c.values, target);
    ASSERT_TRUE(program.ok()) << program.status();
    const auto kernel = Load(*program, target);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << DetailOf(kernel.status()).log;
    for (const std::vector<int64_t>& dims : c.dims) {
      SCOPED_TRACE(::testing::PrintToString(dims));
      auto inputs = reference::MakeInputs(program->tile, dims, c.strides, std::nullopt, 1);
      ASSERT_TRUE(inputs.ok()) << inputs.status();
      const auto exact = reference::RunExact(program->tile, inputs->arguments);
      ASSERT_TRUE(exact.ok()) << exact.status();
      const Status run = Run(*program, **kernel, *inputs);
      ASSERT_TRUE(run.ok()) << run;
      if (!testing::ExpectExact(*program, *inputs, *exact)) {
        GTEST_FAIL() << testing::KernelText(program->generated);
      }
    }
  }

  std::unique_ptr<Backend> backend_;
  DeviceInfo device_;
  std::unique_ptr<DeviceSession> session_;
};

TEST_F(CudaDeviceTest, SmallPrograms) {
  for (const CudaCase& c : testing::SmallPrograms()) Check(c, device_.target);
}

TEST_F(CudaDeviceTest, Families) {
  for (const CudaCase& c : testing::FamilyPrograms()) Check(c, device_.target);
}

// Conversions have two implementations; the bit arithmetic is what older architectures get. A
// device runs the binaries of its own major capability only, so the older form is forced by the
// source.
TEST_F(CudaDeviceTest, SoftwareConversions) {
  for (const CudaCase& c : testing::SmallPrograms()) {
    if (c.name != "conversions") continue;
    auto program = testing::LowerText(c.text, c.values, device_.target);
    ASSERT_TRUE(program.ok());
    std::string& source = program->generated.source;
    for (const char* guard : {"#if __CUDA_ARCH__ >= 800", "#if __CUDA_ARCH__ >= 890"}) {
      const size_t at = source.find(guard);
      ASSERT_NE(at, std::string::npos);
      source.replace(at, std::strlen(guard), "#if 0");
    }
    const auto kernel = Load(*program, device_.target);
    ASSERT_TRUE(kernel.ok()) << kernel.status() << DetailOf(kernel.status()).log;
    auto inputs = reference::MakeInputs(program->tile, c.dims[0], {}, std::nullopt, 2);
    ASSERT_TRUE(inputs.ok());
    const auto exact = reference::RunExact(program->tile, inputs->arguments);
    ASSERT_TRUE(Run(*program, **kernel, *inputs).ok());
    EXPECT_TRUE(testing::ExpectExact(*program, *inputs, *exact));
  }
}

TEST_F(CudaDeviceTest, CopiesOfMoreThanTwoGigabytes) {
  const size_t bytes = (size_t{2} << 30) + 12345;
  const auto p = session_->Allocate(bytes);
  if (!p.ok()) GTEST_SKIP() << "SKIP, not enough device memory";
  std::vector<char> host(bytes, 1);
  host.back() = 42;
  ASSERT_TRUE(session_->CopyIn(*p, host.data(), bytes).ok());
  ASSERT_TRUE(session_->Fill(*p, 7, 10).ok());
  host.assign(bytes, 0);
  ASSERT_TRUE(session_->CopyOut(host.data(), *p, bytes).ok());
  EXPECT_EQ(host.front(), 7);
  EXPECT_EQ(host[11], 1);
  EXPECT_EQ(host.back(), 42);
  session_->Free(*p);
}

class Enqueue : public DeviceSession::Enqueue {
 public:
  Enqueue(LoadedKernel& kernel, int64_t blocks, LaunchParams params)
      : kernel_(kernel), blocks_(blocks), params_(params) {}
  Status operator()(int) override { return kernel_.Launch(0, blocks_, params_); }

 private:
  LoadedKernel& kernel_;
  int64_t blocks_;
  LaunchParams params_;
};

TEST_F(CudaDeviceTest, TimesOneAndManyLaunches) {
  const int64_t n = 1 << 24;
  const auto program = testing::LowerText(testing::FamilyText("vector_add"), {}, device_.target);
  ASSERT_TRUE(program.ok());
  const auto kernel = Load(*program, device_.target);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<void*> pointers;
  for (int i = 0; i < 3; ++i) pointers.push_back(*session_->Allocate(n * 4));
  const std::vector<void*> blocks = pointers;
  const std::vector<int64_t> dims = {n};
  const HostArgs args{dims, {}, {}};
  testing::Params params(program->thread, pointers, args);
  Enqueue enqueue(**kernel, *testing::NumBlocks(program->thread, program->thread.launches[0], args),
                  {params.data(), params.size(), session_->stream()});
  const auto warm = session_->Time(enqueue, 1);
  ASSERT_TRUE(warm.ok()) << warm.status();
  const auto one = session_->Time(enqueue, 1);
  const auto twenty = session_->Time(enqueue, 20);
  ASSERT_TRUE(one.ok() && twenty.ok()) << twenty.status();
  const double each = *twenty / 20;
  RecordProperty("nanoseconds", std::to_string(each));
  std::printf("vector_add of 2^24 f32: %.1f us, %.0f GB/s\n", each / 1e3, 12.0 * n / each);
  EXPECT_GT(each, 1e3);
  EXPECT_LT(each, *one * 1.5);
  for (void* p : blocks) session_->Free(p);
}

TEST_F(CudaDeviceTest, ForeignBinaryIsRejected) {
  // A device never runs binaries of another major capability.
  const Target other = *backend_->FindTarget(device_.target.name == "sm_75" ? "sm_80" : "sm_75");
  const CudaCase c = testing::FamilyPrograms()[0];
  const auto program = testing::LowerText(c.text, c.values, other);
  ASSERT_TRUE(program.ok());
  const Status s = Load(*program, other).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_EQ(DetailOf(s).reason, Reason::kBinaryRejected);
}

TEST_F(CudaDeviceTest, NothingIsCaptured) {
  EXPECT_TRUE(backend_->CheckNotCapturing(device_.ordinal, session_->stream()).ok());
  EXPECT_TRUE(backend_->CheckNotCapturing(device_.ordinal, nullptr).ok());
}

}  // namespace
}  // namespace tl
