#include "passes/partial_sums.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "ir/visit.h"

namespace tl {
namespace {

// What happens to one reducer between its allocation and its `finish`, and behind that.
class Finder {
 public:
  Finder(const Module& module, BufferId reducer) : m_(module), reducer_(reducer) {}

  void Use(const Stmt& s) {
    // Under a condition, or in a loop: it would be complete on some ways only.
    if (Finishes(s)) possible_ = false;
    if (const Reduce* reduce = std::get_if<Reduce>(&s.node)) return Sum(*reduce);
    if (const Fill* fill = std::get_if<Fill>(&s.node)) {
      const FloatLit* value = As<FloatLit>(fill->value);
      const bool zero = (value && value->value == 0) || IsInt(fill->value, 0);
      possible_ = possible_ && (fill->dst.buffer != reducer_ || zero);
      return;
    }
    // Parts may be scaled, and nothing else.
    if (const Store* store = std::get_if<Store>(&s.node)) {
      possible_ = possible_ && (store->buffer != reducer_ || store->op == StoreOp::kMul);
    }
    VisitRegions(s, [&](const Region& r, bool) { possible_ = possible_ && r.buffer != reducer_; });
    VisitStmtExprs(s, [&](const ExprRef& e) { possible_ = possible_ && !Reads(e); });
  }

  // Behind the `finish` it is complete, and neither added to nor finished once more.
  void UseFinished(const Stmt& s) {
    const Reduce* reduce = std::get_if<Reduce>(&s.node);
    if (Finishes(s) || (reduce && reduce->dst.buffer == reducer_)) possible_ = false;
  }

  bool Finishes(const Stmt& s) const {
    const Finish* finish = std::get_if<Finish>(&s.node);
    return finish && finish->reducer == reducer_;
  }

  // The exchanges that complete it; none: each sum must be complete at once.
  std::optional<std::vector<int>> lanes() const { return possible_ ? lanes_ : std::nullopt; }

 private:
  void Sum(const Reduce& reduce) {
    if (reduce.dst.buffer != reducer_) return;
    const FragmentLayout* from = m_.buffer(reduce.src.buffer).layout.get();
    const FragmentLayout* to = m_.buffer(reducer_).layout.get();
    if (!from || !to || WarpCountAlong(*from, reduce.dim) != 1 ||
        *from->Project(reduce.dim) != *to) {
      possible_ = false;
      return;
    }
    std::vector<int> lanes = LanesAlong(*from, reduce.dim);
    possible_ = possible_ && (!lanes_ || *lanes_ == lanes);
    lanes_ = std::move(lanes);
  }

  bool Reads(const ExprRef& e) const {
    return AnyNode(e, [&](const ExprRef& node) {
      const Load* load = As<Load>(node);
      return load && load->buffer == reducer_;
    });
  }

  const Module& m_;
  const BufferId reducer_;
  bool possible_ = true;
  std::optional<std::vector<int>> lanes_;
};

bool IsSum(const Buffer& b) {
  const bool wide = b.dtype == DType::kF32 || b.dtype == DType::kF64;
  return b.role == BufferRole::kReducer && b.reduce_op == ReduceOp::kSum && wide && b.layout;
}

// Those that are allocated and finished in this very block.
void FindIn(const Module& m, const Block& block, PartialSums& found) {
  for (size_t i = 0; i < block.size(); ++i) {
    VisitBlocks(*block[i], [&](const Block& b) { FindIn(m, b, found); });
    const Alloc* alloc = As<Alloc>(block[i]);
    if (!alloc || !IsSum(m.buffer(alloc->buffer))) continue;
    Finder finder(m, alloc->buffer);
    size_t end = i + 1;
    for (; end < block.size() && !finder.Finishes(*block[end]); ++end) {
      VisitStmts({block[end]}, [&](const StmtRef& s) { finder.Use(*s); });
    }
    for (size_t behind = end + 1; behind < block.size(); ++behind) {
      VisitStmts({block[behind]}, [&](const StmtRef& s) { finder.UseFinished(*s); });
    }
    const auto lanes = finder.lanes();
    if (end < block.size() && lanes) found[alloc->buffer] = *lanes;
  }
}

}  // namespace

std::vector<int> LanesAlong(const FragmentLayout& layout, int dim) {
  std::vector<int> masks;
  int64_t weight = 1;
  const auto digits = *layout.DimDigits(LayoutAxis::kLane);
  for (const FragmentLayout::DimDigit& digit : digits) {
    for (int64_t mask = weight; digit.dim == dim && mask < weight * digit.radix; mask *= 2) {
      masks.push_back(static_cast<int>(mask));
    }
    weight *= digit.radix;
  }
  return masks;
}

int64_t WarpCountAlong(const FragmentLayout& layout, int dim) {
  int64_t count = 1;
  const auto digits = *layout.DimDigits(LayoutAxis::kWarp);
  for (const FragmentLayout::DimDigit& digit : digits) count *= digit.dim == dim ? digit.radix : 1;
  return count;
}

PartialSums FindPartialSums(const Module& module, const Launch& launch) {
  PartialSums found;
  FindIn(module, launch.body, found);
  return found;
}

}  // namespace tl
