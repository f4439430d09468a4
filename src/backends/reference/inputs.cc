#include "backends/reference/inputs.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"
#include "backends/reference/arith.h"
#include "backends/reference/random.h"
#include "backends/reference/tensor.h"
#include "base/thread_pool.h"

namespace tl::reference {
namespace {

constexpr uint8_t kGuardByte = 0xa5;
constexpr int64_t kDrawnAtOnce = 1 << 15;  // elements

// An init clause with its arguments' values.
struct Recipe {
  InitKind kind = InitKind::kUniform;
  double a = -1, b = 1;    // floats
  int64_t ia = 0, ib = 8;  // ints, inclusive
};

Recipe DefaultRecipe(DType t) {
  Recipe r;
  if (t == DType::kBool) r.ib = 1;
  return r;
}

// The value of an init clause's argument: an expression of dims, strides and scalars.
class ArgumentEvaluator {
 public:
  ArgumentEvaluator(const Module& module, const HostArgs& args) : module_(module), args_(args) {}

  StatusOr<Value> Eval(const ExprRef& e, ScalarType* type) {
    *type = e->type;
    if (!IsFloat(e->type)) {
      TL_ASSIGN_OR_RETURN(const int64_t v, EvalHost(module_, e, args_));
      return IntOf(v);
    }
    if (const auto* lit = As<FloatLit>(e)) return FloatOf(lit->value);
    if (const auto* ref = As<VarRef>(e)) return EvalScalar(e, ref->var);
    ScalarType t;
    if (const auto* unary = As<Unary>(e)) {
      TL_ASSIGN_OR_RETURN(const Value a, Eval(unary->arg, &t));
      return arith_.Unary(unary->op, t, a);
    }
    if (const auto* binary = As<Binary>(e)) {
      TL_ASSIGN_OR_RETURN(const Value a, Eval(binary->lhs, &t));
      TL_ASSIGN_OR_RETURN(const Value b, Eval(binary->rhs, &t));
      return arith_.Binary(binary->op, t, a, b);
    }
    if (const auto* cast = As<Cast>(e)) {
      TL_ASSIGN_OR_RETURN(const Value a, Eval(cast->arg, &t));
      return arith_.Convert(cast->to, t, a);
    }
    if (const auto* call = As<Call>(e)) {
      TL_ASSIGN_OR_RETURN(const Value a, Eval(call->args[0], &t));
      Value b;
      if (call->args.size() > 1) {
        TL_ASSIGN_OR_RETURN(b, Eval(call->args[1], &t));
      }
      return arith_.Call(call->fn, t, a, b);
    }
    return SemanticError(e->span, "an init clause takes numbers, dims and scalars");
  }

 private:
  StatusOr<Value> EvalScalar(const ExprRef& e, VarId var) {
    const auto it = std::find(module_.scalars.begin(), module_.scalars.end(), var);
    const size_t i = static_cast<size_t>(it - module_.scalars.begin());
    if (i < args_.scalars.size()) return FloatOf(args_.scalars[i].f);
    return SemanticError(e->span, absl::StrCat("'", module_.var(var).name, "' is not known yet"));
  }

  const Module& module_;
  HostArgs args_;
  Arith arith_{Mode::kRounded};
};

StatusOr<Recipe> RecipeOf(const Module& module, const HostArgs& args, const InitClause* clause,
                          DType t) {
  Recipe r = DefaultRecipe(t);
  if (clause == nullptr) return r;
  r.kind = clause->kind;
  ArgumentEvaluator evaluator(module, args);
  double* floats[] = {&r.a, &r.b};
  int64_t* ints[] = {&r.ia, &r.ib};
  for (size_t i = 0; i < clause->args.size() && i < 2; ++i) {
    ScalarType type;
    TL_ASSIGN_OR_RETURN(const Value v, evaluator.Eval(clause->args[i], &type));
    *floats[i] = IsFloat(type) ? v.c.f : static_cast<double>(v.c.i);
    *ints[i] = IsFloat(type) ? TruncateTo(DType::kI64, v.c.f) : v.c.i;
  }
  if (r.kind == InitKind::kUniform && (IsFloat(t) ? !(r.a <= r.b) : r.ia > r.ib)) {
    return SemanticError(clause->span, "uniform(lo, hi): lo is above hi");
  }
  return r;
}

// Element i of a tensor whose elements are drawn one by one; storing it rounds.
Cell Draw(const Recipe& r, DType t, const RandomStream& random, uint64_t i) {
  const bool is_float = IsFloat(t);
  double f = 0;
  switch (r.kind) {
    case InitKind::kConstant:
      if (!is_float) return Cell{.i = WrapTo(t, r.ia)};
      f = r.a;
      break;
    case InitKind::kNormal:
      f = r.a + r.b * random.Normal(i);
      if (!is_float) return Cell{.i = TruncateTo(t, std::nearbyint(f))};
      break;
    default:
      if (!is_float) {
        const uint64_t span = static_cast<uint64_t>(r.ib) - static_cast<uint64_t>(r.ia) + 1;
        const uint64_t step = span == 0 ? random.Bits(i) : random.Below(i, span);
        return Cell{.i = WrapTo(t, static_cast<int64_t>(static_cast<uint64_t>(r.ia) + step))};
      }
      f = r.a + (r.b - r.a) * random.Unit(i);
      break;
  }
  return Cell{.f = f};
}

// A row-major enumeration of the tensor in rows along its last dim.
template <typename Fn>
void ForEachTensorRow(const Tensor& t, Fn fn) {
  const int rank = t.rank();
  Index outer{};
  for (int d = 0; d < rank; ++d) outer[d] = t.extent(d);
  const int64_t n = rank == 0 ? 1 : t.extent(rank - 1);
  if (n == 0) return;  // however many rows
  uint64_t row = 0;
  ForEachCoordinate(std::max(rank - 1, 0), outer, [&](const Index& at) { fn(at, n, row++); });
}

class TensorFiller {
 public:
  TensorFiller(Tensor* tensor, const Recipe& recipe, Span span, const RandomStream& random)
      : tensor_(tensor), recipe_(recipe), span_(span), random_(random) {}

  Status Fill() {
    switch (recipe_.kind) {
      case InitKind::kOffsets:
        ForEachTensorRow(*tensor_,
                         [&](const Index& at, int64_t n, uint64_t row) { Offsets(at, n, row); });
        return absl::OkStatus();
      case InitKind::kPermutation:
        ForEachTensorRow(*tensor_, [&](const Index& at, int64_t n, uint64_t row) {
          row_.resize(static_cast<size_t>(n));
          for (int64_t i = 0; i < n; ++i) row_[i].i = i;
          Shuffle(n, n, row * static_cast<uint64_t>(n));
          Put(at, n);
        });
        return absl::OkStatus();
      case InitKind::kPages:
        return Pages();
      default:
        EachByItself();
        return absl::OkStatus();
    }
  }

 private:
  void Put(const Index& at, int64_t n) { PutRow(at, n, row_); }
  void PutRow(const Index& at, int64_t n, std::vector<Cell>& row) {
    TileView view;
    view.cell = row.data();
    view.rank = 1;
    view.stride[0] = 1;
    tensor_->WriteRun(at, std::max(tensor_->rank() - 1, 0), n, view);
  }

  // Where every element has a place of its own, on all processors: most of the time that a check or
  // a benchmark of millions of elements takes is spent here.
  void EachByItself() {
    int64_t count = 1;
    for (int d = 0; d < tensor_->rank(); ++d) {
      if (tensor_->extent(d) == 0) return;  // however many the other dims have
      count *= tensor_->extent(d);
    }
    const auto draw = [&](int64_t begin, int64_t end) { DrawRange(begin, end); };
    if (count <= kDrawnAtOnce || !tensor_->PlacesDiffer()) return draw(0, count);
    ThreadPool().ParallelFor(count, kDrawnAtOnce, draw);
  }

  // Elements begin..end of a row-major enumeration, a run within a row at a time.
  void DrawRange(int64_t begin, int64_t end) {
    const DType t = tensor_->buffer().dtype;
    const int last = tensor_->rank() - 1;
    std::vector<Cell> run;
    while (begin < end) {
      Index at{};
      int64_t rest = begin;
      for (int d = last; d >= 0; rest /= tensor_->extent(d--)) at[d] = rest % tensor_->extent(d);
      const int64_t in_row = last < 0 ? 1 : tensor_->extent(last) - at[last];
      const int64_t n = std::min({end - begin, in_row, kDrawnAtOnce});
      run.resize(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        run[i] = Draw(recipe_, t, random_, static_cast<uint64_t>(begin + i));
      PutRow(at, n, run);
      begin += n;
    }
  }

  // Sorted, from 0 to the total.
  void Offsets(const Index& at, int64_t n, uint64_t row) {
    const uint64_t total = static_cast<uint64_t>(std::max<int64_t>(recipe_.ia, 0));
    row_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      row_[i].i = static_cast<int64_t>(
          random_.Below(row * static_cast<uint64_t>(n) + static_cast<uint64_t>(i), total + 1));
    }
    if (n > 0) row_[0].i = 0;
    if (n > 1) row_[n - 1].i = static_cast<int64_t>(total);
    std::sort(row_.begin(), row_.end(), [](Cell x, Cell y) { return x.i < y.i; });
    Put(at, n);
  }

  // The first `count` of row_'s n elements become a random choice of them, in random order.
  void Shuffle(int64_t count, int64_t n, uint64_t stream) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t left = static_cast<uint64_t>(n - i);
      const int64_t j =
          i + static_cast<int64_t>(random_.Below(stream + static_cast<uint64_t>(i), left));
      std::swap(row_[i], row_[j]);
    }
  }

  Status Pages() {
    int64_t count = 1;
    for (int d = 0; d < tensor_->rank(); ++d) count *= tensor_->extent(d);
    const int64_t n = recipe_.ia;
    if (n < count) {
      return SemanticError(
          span_, absl::StrCat("pages(", n, "): tensor '", tensor_->buffer().name, "' has ", count,
                              " elements, more than there are pages"));
    }
    row_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) row_[i].i = i;
    Shuffle(count, n, 0);
    const std::vector<Cell> pages = std::move(row_);
    ForEachTensorRow(*tensor_, [&](const Index& at, int64_t len, uint64_t row) {
      const auto first = pages.begin() + static_cast<int64_t>(row) * len;
      row_.assign(first, first + len);
      Put(at, len);
    });
    return absl::OkStatus();
  }

  Tensor* tensor_;
  Recipe recipe_;
  Span span_;
  RandomStream random_;
  std::vector<Cell> row_;
};

const InitClause* ClauseOf(const Module& module, BufferId buffer, VarId scalar) {
  for (const InitClause& c : module.inits) {
    if ((buffer != kNoId && c.buffer == buffer) || (scalar != kNoId && c.scalar == scalar))
      return &c;
  }
  return nullptr;
}

// Streams of random numbers: operands count from 0, scalars from here.
constexpr uint64_t kScalarStream = 1 << 20;

Status MakeScalars(const Module& module, uint64_t seed, Arguments* a) {
  for (size_t i = 0; i < module.scalars.size(); ++i) {
    const Var& var = module.var(module.scalars[i]);
    const InitClause* clause = ClauseOf(module, kNoId, module.scalars[i]);
    TL_ASSIGN_OR_RETURN(const Recipe r, RecipeOf(module, a->host(), clause, var.dtype));
    const Cell c = Draw(r, var.dtype, RandomStream(seed, kScalarStream + i), 0);
    a->scalars.push_back(IsFloat(var.dtype) ? ScalarValue(RoundTo(var.dtype, c.f))
                                            : ScalarValue(c.i));
  }
  return absl::OkStatus();
}

Status MakeOperand(const Module& module, size_t number, uint64_t seed, GeneratedInputs* out) {
  const BufferId id = module.operands[number];
  const Buffer& b = module.buffer(id);
  const HostArgs args = out->arguments.host();
  TL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(module, id, args));
  TL_ASSIGN_OR_RETURN(GuardedMemory memory, GuardedMemory::Make(tensor.bytes()));
  tensor.SetMemory(memory.data());
  if (b.role != BufferRole::kOut) {
    const InitClause* clause = ClauseOf(module, id, kNoId);
    TL_ASSIGN_OR_RETURN(const Recipe r, RecipeOf(module, args, clause, b.dtype));
    const Span span = clause ? clause->span : b.span;
    TL_RETURN_IF_ERROR(TensorFiller(&tensor, r, span, RandomStream(seed, number)).Fill());
  }
  out->arguments.operands.push_back(memory.data());
  out->operands.push_back(std::move(memory));
  return absl::OkStatus();
}

}  // namespace

void GuardedMemory::Free::operator()(uint8_t* p) const { std::free(p); }

StatusOr<GuardedMemory> GuardedMemory::Make(int64_t bytes) {
  GuardedMemory m;
  const size_t size = static_cast<size_t>((bytes + 2 * kGuard + 255) / 256 * 256);
  m.block_.reset(static_cast<uint8_t*>(std::aligned_alloc(256, size)));
  if (m.block_ == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  m.data_ = m.block_.get() + kGuard;
  m.bytes_ = bytes;
  std::memset(m.block_.get(), kGuardByte, kGuard);
  std::memset(m.data_, 0xff, static_cast<size_t>(bytes));
  std::memset(m.data_ + bytes, kGuardByte, kGuard);
  return m;
}

bool GuardedMemory::Intact(int64_t* offset) const { return IntactCopy(whole(), bytes_, offset); }

bool GuardedMemory::IntactCopy(const uint8_t* whole, int64_t bytes, int64_t* offset) {
  for (int64_t i = -kGuard; i < bytes + kGuard; ++i) {
    if (i == 0) i = bytes;
    if (whole[kGuard + i] == kGuardByte) continue;
    *offset = i;
    return false;
  }
  return true;
}

Status GeneratedInputs::CheckGuards(const Module& module) const {
  const auto check = [&](const GuardedMemory& m, BufferId id) -> Status {
    int64_t offset;
    if (m.Intact(&offset)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("'", module.buffer(id).name, "': byte ", offset, " of ",
                                            m.bytes(), " was written, outside the tensor"));
  };
  for (size_t i = 0; i < operands.size(); ++i) {
    TL_RETURN_IF_ERROR(check(operands[i], module.operands[i]));
  }
  for (size_t i = 0; i < workspaces.size(); ++i) {
    TL_RETURN_IF_ERROR(check(workspaces[i], module.workspaces[i]));
  }
  return absl::OkStatus();
}

StatusOr<GeneratedInputs> MakeInputs(const Module& module, std::vector<int64_t> dims,
                                     std::vector<int64_t> strides,
                                     std::optional<std::vector<ScalarValue>> scalars,
                                     uint64_t seed) {
  if (dims.size() != module.dims.size() || strides.size() != module.strides.size()) {
    return absl::InvalidArgumentError(absl::StrCat(dims.size(), " dims and ", strides.size(),
                                                   " strides given, ", module.dims.size(), " and ",
                                                   module.strides.size(), " expected"));
  }
  GeneratedInputs out;
  out.arguments.dims = std::move(dims);
  out.arguments.strides = std::move(strides);
  if (scalars) {
    out.arguments.scalars = *std::move(scalars);
  } else {
    TL_RETURN_IF_ERROR(MakeScalars(module, seed, &out.arguments));
  }
  for (size_t i = 0; i < module.operands.size(); ++i) {
    TL_RETURN_IF_ERROR(MakeOperand(module, i, seed, &out));
  }
  for (BufferId id : module.workspaces) {
    TL_ASSIGN_OR_RETURN(const Tensor t, Tensor::Make(module, id, out.arguments.host()));
    TL_ASSIGN_OR_RETURN(GuardedMemory memory, GuardedMemory::Make(t.bytes()));
    out.arguments.workspaces.push_back(memory.data());
    out.workspaces.push_back(std::move(memory));
  }
  return out;
}

}  // namespace tl::reference
