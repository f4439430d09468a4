#include "backends/reference/machine.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"

namespace tl::reference {
namespace {

constexpr int64_t kMaxBlocks = int64_t{1} << 48;

Status WrongCount(std::string_view what, size_t given, size_t expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(given, " ", what, " given, ", expected, " expected"));
}

bool Written(const Buffer& b) { return b.role != BufferRole::kIn; }

}  // namespace

StatusOr<std::unique_ptr<Machine>> Machine::Make(const Module& module, Mode mode,
                                                 const Arguments& arguments) {
  if (module.level != Level::kTile) {
    return absl::InternalError("the reference interpreter runs programs of level Tile");
  }
  std::unique_ptr<Machine> m(new Machine(module, mode));
  TL_RETURN_IF_ERROR(m->CheckCounts(arguments));
  m->args_ = arguments.host();
  m->SetRegisters(arguments);
  TL_RETURN_IF_ERROR(m->MakeTensors(arguments));
  TL_RETURN_IF_ERROR(m->PlaceWorkspaces(arguments));
  TL_ASSIGN_OR_RETURN(m->lags_, FindLagLoops(module));
  m->plans_.resize(module.launches.size());
  return m;
}

Status Machine::CheckCounts(const Arguments& a) const {
  const Module& m = *module_;
  if (a.dims.size() != m.dims.size()) return WrongCount("dims", a.dims.size(), m.dims.size());
  if (a.strides.size() != m.strides.size()) {
    return WrongCount("strides", a.strides.size(), m.strides.size());
  }
  if (a.scalars.size() != m.scalars.size()) {
    return WrongCount("scalars", a.scalars.size(), m.scalars.size());
  }
  if (a.operands.size() != m.operands.size()) {
    return WrongCount("operands", a.operands.size(), m.operands.size());
  }
  if (!a.workspaces.empty() && a.workspaces.size() != m.workspaces.size()) {
    return WrongCount("workspaces", a.workspaces.size(), m.workspaces.size());
  }
  for (size_t i = 0; i < a.dims.size(); ++i) {
    if (a.dims[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dim '", m.var(m.dims[i]).name, "' is negative (", a.dims[i], ")"));
    }
  }
  return absl::OkStatus();
}

void Machine::SetRegisters(const Arguments& a) {
  const Module& m = *module_;
  registers_.resize(m.vars.size());
  for (size_t i = 0; i < a.dims.size(); ++i) registers_[m.dims[i]] = IntOf(a.dims[i]);
  for (size_t i = 0; i < a.strides.size(); ++i) registers_[m.strides[i]] = IntOf(a.strides[i]);
  for (size_t i = 0; i < a.scalars.size(); ++i) {
    const Var& var = m.var(m.scalars[i]);
    // What arrives at a kernel is rounded to the declared type: no error of anybody's.
    Value v =
        IsFloat(var.type) ? FloatOf(RoundTo(var.dtype, a.scalars[i].f)) : IntOf(a.scalars[i].i);
    if (var.type == ScalarType::kInt) v.c.i = WrapTo(var.dtype, v.c.i);
    if (var.type == ScalarType::kBool) v.c.i = v.c.i != 0;
    registers_[m.scalars[i]] = v;
  }
}

Status Machine::MakeTensors(const Arguments& a) {
  const Module& m = *module_;
  tensors_.resize(m.buffers.size());
  for (BufferId id = 0; id < static_cast<int>(m.buffers.size()); ++id) {
    if (m.buffer(id).scope != Scope::kGlobal) continue;
    TL_ASSIGN_OR_RETURN(tensors_[id], Tensor::Make(m, id, args_));
    if (exact() && Written(m.buffer(id))) TL_RETURN_IF_ERROR(tensors_[id].AddShadow());
  }
  for (size_t i = 0; i < m.operands.size(); ++i) {
    Tensor& t = tensors_[m.operands[i]];
    const bool needed = !exact() || t.buffer().role != BufferRole::kOut;
    if (a.operands[i] == nullptr && needed && t.size() > 0) {
      return absl::InvalidArgumentError(absl::StrCat("operand '", t.buffer().name, "' is null"));
    }
    t.SetMemory(a.operands[i]);
  }
  return absl::OkStatus();
}

// Undefined at launch: all ones, NaN in every float type.
Status Machine::PlaceWorkspaces(const Arguments& a) {
  if (exact()) return absl::OkStatus();
  for (size_t i = 0; i < module_->workspaces.size(); ++i) {
    Tensor& t = tensors_[module_->workspaces[i]];
    if (!a.workspaces.empty()) {
      if (a.workspaces[i] == nullptr && t.size() > 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("workspace '", t.buffer().name, "' is null"));
      }
      t.SetMemory(a.workspaces[i]);
      continue;
    }
    own_workspaces_.emplace_back(static_cast<size_t>(t.bytes()) / 8 + 1, ~uint64_t{0});
    t.SetMemory(own_workspaces_.back().data());
  }
  return absl::OkStatus();
}

const LagLoop* Machine::FindLags(const For* loop) const {
  if (lags_.empty()) return nullptr;
  const auto it = lags_.find(loop);
  return it == lags_.end() ? nullptr : &it->second;
}

Status Machine::EnsurePlan(int l) {
  const Launch& launch = module_->launches[l];
  if (!launch.split) return absl::OkStatus();
  BlockState block;
  Agent agent(this, &block);
  const auto eval = [&](const ExprRef& e, int64_t item) {
    return agent.EvalUniform(e, launch.split->item, item).c.i;
  };
  const int64_t items = eval(launch.split->items, 0);
  const int64_t parts = eval(launch.split->parts, 0);
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < items && block.status.ok(); ++i) {
    counts.push_back(eval(launch.split->count, i));
  }
  TL_RETURN_IF_ERROR(block.status);
  StatusOr<SplitPlan> plan = SplitPlan::Make(counts, parts);
  if (!plan.ok()) return SemanticError(launch.span, plan.status().message());
  plans_[l] = *std::move(plan);
  return absl::OkStatus();
}

StatusOr<Grid> Machine::PrepareLaunch(int l) {
  const Launch& launch = module_->launches[l];
  Grid grid;
  for (const GridAxis& axis : launch.axes) {
    StatusOr<int64_t> extent = EvalHost(*module_, axis.extent, args_);
    if (!extent.ok()) {
      return SemanticError(launch.span,
                           absl::StrCat("extent of axis '", module_->var(axis.var).name,
                                        "': ", extent.status().message()));
    }
    grid.extents.push_back(*extent);
  }
  if (launch.split) {
    TL_RETURN_IF_ERROR(EnsurePlan(l));
    grid.extents.push_back(plans_[l]->parts());
  }
  grid.blocks = 1;
  for (int64_t extent : grid.extents) {
    if (extent <= 0) {
      grid.blocks = 0;
      return grid;
    }
    if (__builtin_mul_overflow(grid.blocks, extent, &grid.blocks) || grid.blocks > kMaxBlocks) {
      return SemanticError(launch.span, "the grid has more than 2^48 blocks");
    }
  }
  return grid;
}

}  // namespace tl::reference
