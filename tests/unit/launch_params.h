// The launches of a lowered program, for tests that call a backend's kernels themselves.
#ifndef TILEJIT_TESTS_UNIT_LAUNCH_PARAMS_H_
#define TILEJIT_TESTS_UNIT_LAUNCH_PARAMS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "backends/backend.h"
#include "backends/reference/inputs.h"
#include "ir/host_eval.h"
#include "ir/module.h"

namespace tl::testing {

inline StatusOr<int64_t> NumBlocks(const Module& module, const tl::Launch& launch,
                                   const HostArgs& args) {
  int64_t blocks = 1;
  for (const GridAxis& axis : launch.axes) {
    TL_ASSIGN_OR_RETURN(const int64_t n, EvalHost(module, axis.extent, args));
    blocks *= std::max<int64_t>(n, 0);
  }
  return blocks;
}

// The array of pointers that a launch takes.
class Params {
 public:
  Params(const Module& module, std::vector<void*> pointers, const HostArgs& args)
      : pointers_(std::move(pointers)) {
    for (int64_t d : args.dims) ints_.push_back(d);
    for (int64_t s : args.strides) ints_.push_back(s);
    const size_t first_scalar = ints_.size();
    floats_.resize(args.scalars.size());
    doubles_.resize(args.scalars.size());
    for (const ScalarValue& s : args.scalars) ints_.push_back(s.i);
    for (void*& p : pointers_) params_.push_back(&p);
    for (size_t i = 0; i < first_scalar; ++i) params_.push_back(&ints_[i]);
    for (size_t i = 0; i < args.scalars.size(); ++i) {
      floats_[i] = static_cast<float>(args.scalars[i].f);
      doubles_[i] = args.scalars[i].f;
      const ScalarType t = module.var(module.scalars[i]).type;
      params_.push_back(t == ScalarType::kF32   ? static_cast<void*>(&floats_[i])
                        : t == ScalarType::kF64 ? static_cast<void*>(&doubles_[i])
                                                : &ints_[first_scalar + i]);
    }
  }
  Params(const Params&) = delete;

  // Those of one launch's boxes, behind what all launches take. `describe`: an error where there is
  // no map.
  Status SetBoxes(const Module& module, const tl::Launch& launch, const HostArgs& args,
                  absl::FunctionRef<Status(const TensorMapRecipe&, TensorMap&)> describe) {
    if (common_ == 0) common_ = params_.size();
    params_.resize(common_);
    maps_.resize(launch.boxes.size());
    usable_.resize(launch.boxes.size());
    for (size_t i = 0; i < launch.boxes.size(); ++i) {
      TL_ASSIGN_OR_RETURN(const TensorMapRecipe recipe, RecipeOf(module, launch.boxes[i], args));
      usable_[i] = describe(recipe, maps_[i]).ok() ? 1 : 0;
      params_.push_back(&maps_[i]);
      params_.push_back(&usable_[i]);
    }
    return absl::OkStatus();
  }
  void** data() { return params_.data(); }
  int size() const { return static_cast<int>(params_.size()); }

 private:
  StatusOr<TensorMapRecipe> RecipeOf(const Module& module, const TensorBox& box,
                                     const HostArgs& args) const {
    const auto tensor = static_cast<size_t>(box.tensor);
    const size_t operands = module.operands.size();
    const Buffer& b = module.buffer(tensor < operands ? module.operands[tensor]
                                                      : module.workspaces[tensor - operands]);
    TensorMapRecipe recipe;
    recipe.data = pointers_[tensor];
    recipe.dtype = b.dtype;
    recipe.swizzle = box.row_bytes;
    for (int d = b.rank(); d-- > 0;) {
      TL_ASSIGN_OR_RETURN(const int64_t extent, EvalHost(module, b.shape[d], args));
      TL_ASSIGN_OR_RETURN(const int64_t stride, EvalHost(module, b.strides[d], args));
      recipe.dims.push_back(extent);
      recipe.box.push_back(box.extents[static_cast<size_t>(d)]);
      if (d + 1 < b.rank())
        recipe.strides.push_back(stride * static_cast<int64_t>(SizeOf(b.dtype)));
    }
    return recipe;
  }

  std::vector<void*> pointers_;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  std::vector<void*> params_;
  size_t common_ = 0;
  std::deque<TensorMap> maps_;
  std::deque<int64_t> usable_;
};

// Where the operands and workspaces of generated inputs lie, in the order that entries take them.
inline std::vector<void*> PointersOf(const reference::Arguments& a) {
  std::vector<void*> pointers = a.operands;
  pointers.insert(pointers.end(), a.workspaces.begin(), a.workspaces.end());
  return pointers;
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_LAUNCH_PARAMS_H_
