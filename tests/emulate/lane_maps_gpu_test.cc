// The probes of lane_maps.h on a GPU (of capability 8.9 or more, which has all of them), against
// lane_maps.txt. With TL_LANE_MAPS=FILE the result is also written there, to become lane_maps.txt.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/emulate/lane_maps.h"
#include "tests/unit/cuda_testing.h"

namespace tl {
namespace {

TEST(LaneMapsGpu, AsWrittenDown) {
  const auto backend = MakeCudaBackend(testing::TestPaths());
  const auto devices = backend->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) GTEST_SKIP() << "SKIP, no CUDA device";
  const DeviceInfo& device = devices->front();
  if (ArchNumber(device.target) < 89) GTEST_SKIP() << "SKIP, no fp8 instructions";
  const auto probes = testing::LaneProbes();
  const Generated source = testing::ProbeSource(CudaPrimitives(), probes);
  const auto built = backend->Build(source, device.target);
  if (DetailOf(built.status()).reason == Reason::kMissingLibrary) GTEST_SKIP() << "SKIP, no NVRTC";
  ASSERT_TRUE(built.ok()) << built.status() << DetailOf(built.status()).log;
  const auto kernel = backend->Load(built->binary, source.entries, Module(), device.ordinal);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto session = backend->OpenSession(device.ordinal);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto run = [&](int entry,
                       const std::vector<uint32_t>& in) -> StatusOr<std::vector<uint32_t>> {
    std::vector<uint32_t> out(testing::kLanes * testing::kResults);
    TL_ASSIGN_OR_RETURN(void* from, (*session)->Allocate(in.size() * 4));
    TL_ASSIGN_OR_RETURN(void* to, (*session)->Allocate(out.size() * 4));
    TL_RETURN_IF_ERROR((*session)->CopyIn(from, in.data(), in.size() * 4));
    void* params[] = {&from, &to};
    TL_RETURN_IF_ERROR((*kernel)->Launch(entry, 1, {params, 2, (*session)->stream()}));
    TL_RETURN_IF_ERROR((*session)->CopyOut(out.data(), to, out.size() * 4));
    (*session)->Free(from);
    (*session)->Free(to);
    return out;
  };
  const StatusOr<std::string> text = testing::LaneMapText(probes, run);
  ASSERT_TRUE(text.ok()) << text.status();
  if (const char* path = std::getenv("TL_LANE_MAPS")) std::ofstream(path) << *text;
  std::ifstream file(TL_SOURCE_DIR "/tests/emulate/lane_maps.txt");
  if (!file) GTEST_SKIP() << "SKIP, no lane_maps.txt to compare with";
  EXPECT_EQ(*text, std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace
}  // namespace tl
