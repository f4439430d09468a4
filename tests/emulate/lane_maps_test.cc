// What the emulator takes for the instructions of a warp, against what a GPU did: lane_maps.txt,
// written by lane_maps_gpu_test.
#include "tests/emulate/lane_maps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "backends/cuda/dialect.h"
#include "backends/emulate/emulate.h"

namespace tl {
namespace {

TEST(LaneMaps, AsOnTheHardware) {
  std::ifstream file(TL_SOURCE_DIR "/tests/emulate/lane_maps.txt");
  if (!file) GTEST_SKIP() << "SKIP, no lane_maps.txt";
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  const auto probes = testing::LaneProbes();
  auto program =
      EmulatedProgram::Build(testing::ProbeSource(CudaPrimitives(), probes), TL_HOST_COMPILER);
  ASSERT_TRUE(program.ok()) << program.status() << DetailOf(program.status()).log;
  const auto run = [&](int entry,
                       const std::vector<uint32_t>& in) -> StatusOr<std::vector<uint32_t>> {
    std::vector<uint32_t> out(testing::kLanes * testing::kResults);
    const uint32_t* from = in.data();
    uint32_t* to = out.data();
    void* params[] = {&from, &to};
    TL_RETURN_IF_ERROR((*program)->Run(entry, 1, params, EmulateOptions{}));
    return out;
  };
  const StatusOr<std::string> text = testing::LaneMapText(probes, run);
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<std::string> lines = absl::StrSplit(*text, '\n');
  const std::vector<std::string> golden = absl::StrSplit(expected, '\n');
  ASSERT_EQ(lines.size(), golden.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], golden[i]);
}

}  // namespace
}  // namespace tl
