// Tests that need NVRTC: skipped where there is none.
#ifndef TILEJIT_TESTS_UNIT_NVRTC_TESTING_H_
#define TILEJIT_TESTS_UNIT_NVRTC_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/backend.h"
#include "backends/cuda/cuda_backend.h"
#include "tests/unit/cuda_testing.h"

namespace tl::testing {

// The fixture `Base`, with the CUDA backend as `backend_`.
template <typename Base = ::testing::Test>
class WithNvrtc : public Base {
 protected:
  void SetUp() override {
    backend_ = MakeCudaBackend(TestPaths());
    const StatusOr<std::string> identity = backend_->CompilerIdentity({});
    if (!identity.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << identity.status().message();
  }

  std::unique_ptr<Backend> backend_;
};

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_NVRTC_TESTING_H_
