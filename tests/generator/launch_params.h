// A launch's arguments as entries take them.
#ifndef TILEJIT_TESTS_GENERATOR_LAUNCH_PARAMS_H_
#define TILEJIT_TESTS_GENERATOR_LAUNCH_PARAMS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/inputs.h"
#include "ir/host_eval.h"
#include "ir/module.h"

namespace tl::generator {

class LaunchArguments {
 public:
  LaunchArguments(const Module& module, const reference::GeneratedInputs& inputs)
      : LaunchArguments(module, inputs.arguments, Pointers(inputs.arguments)) {}
  // With other storage for the operands and workspaces.
  LaunchArguments(const Module& module, const reference::Arguments& a, std::vector<void*> pointers)
      : pointers_(std::move(pointers)) {
    ints_ = a.dims;
    ints_.insert(ints_.end(), a.strides.begin(), a.strides.end());
    const size_t first = ints_.size();
    for (const ScalarValue& s : a.scalars) {
      ints_.push_back(s.i);
      floats_.push_back(static_cast<float>(s.f));
      doubles_.push_back(s.f);
    }
    for (void*& p : pointers_) params_.push_back(&p);
    for (size_t i = 0; i < first; ++i) params_.push_back(&ints_[i]);
    for (size_t i = 0; i < a.scalars.size(); ++i) {
      const ScalarType t = module.var(module.scalars[i]).type;
      params_.push_back(t == ScalarType::kF32   ? static_cast<void*>(&floats_[i])
                        : t == ScalarType::kF64 ? static_cast<void*>(&doubles_[i])
                                                : static_cast<void*>(&ints_[first + i]));
    }
  }
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  LaunchParams params() {
    return {.params = params_.data(),
            .num_params = static_cast<int>(params_.size()),
            .stream = nullptr};
  }

 private:
  static std::vector<void*> Pointers(const reference::Arguments& a) {
    std::vector<void*> pointers = a.operands;
    pointers.insert(pointers.end(), a.workspaces.begin(), a.workspaces.end());
    return pointers;
  }

  std::vector<void*> pointers_;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<void*> params_;
};

// Of a launch of a lowered module.
inline StatusOr<int64_t> NumBlocks(const Module& module, const Launch& launch,
                                   const HostArgs& args) {
  int64_t blocks = 1;
  for (const GridAxis& axis : launch.axes) {
    TL_ASSIGN_OR_RETURN(const int64_t n, EvalHost(module, axis.extent, args));
    blocks *= std::max<int64_t>(n, 0);
  }
  return blocks;
}

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_LAUNCH_PARAMS_H_
