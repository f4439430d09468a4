// The default layout: the best of all ways to deal the threads out to the dimensions.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/int_math.h"
#include "layout/fragment_layout.h"

namespace tl {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMaxLanesAlongLast = 32;
// Neighbouring lanes touch at least this much of a row that has it: memory comes in such sectors.
constexpr int64_t kSectorBytes = 32;

// Threads: of one dimension, or those that are left.
struct Share {
  int64_t groups = 1, warps = 1, lanes = 1;
  int64_t all() const { return groups * warps * lanes; }
};

Share operator/(const Share& a, const Share& b) {
  return {a.groups / b.groups, a.warps / b.warps, a.lanes / b.lanes};
}

struct Deal {
  int64_t vector = 1;
  std::vector<Share> shares;  // by dim
  int64_t slots = 1, padded = 1;

  // Smaller is better. Registers count most; then reductions along the last dim should stay within
  // warps, and neighbouring lanes should touch neighbouring memory.
  auto Rank() const {
    const Share& last = shares.back();
    return std::tuple(slots, padded, -vector, last.groups * last.warps, -last.lanes);
  }
};

class Search {
 public:
  Search(const std::vector<int64_t>& extents, int64_t element_bytes, Share threads)
      : extents_(extents), sector_(CeilDiv(kSectorBytes, element_bytes)), all_(threads) {
    elements_before_.push_back(1);
    for (int64_t e : extents) elements_before_.push_back(elements_before_.back() * e);
  }

  void Try(int64_t vector) {
    Deal deal;
    deal.vector = vector;
    deal.shares.resize(extents_.size());
    Visit(static_cast<int>(extents_.size()) - 1, all_, deal);
  }

  const Deal& best() const { return best_; }

 private:
  int last() const { return static_cast<int>(extents_.size()) - 1; }

  // What may go to `dim`. Along the last dim warps only where there are fewer rows than warps.
  Share Most(int dim, Share left) const {
    if (dim != last()) return left;
    if (elements_before_[dim] >= left.groups * left.warps) left.groups = left.warps = 1;
    left.lanes = std::min(kMaxLanesAlongLast, left.lanes);
    return left;
  }

  // Deals threads to dimension `dim` and then to those before it. Of equals the first is kept:
  // inner dimensions take what they can use, lanes before warps.
  void Visit(int dim, const Share& left, Deal& deal) {
    if (dim < 0) {
      best_ = deal;
      return;
    }
    const Share most = Most(dim, left);
    for (int64_t lanes = most.lanes; lanes >= 1; lanes /= 2) {
      if (lanes < most.lanes && SplitsSectors(dim, lanes, deal)) break;
      for (int64_t warps = most.warps; warps >= 1; --warps) {
        if (left.warps % warps != 0) continue;
        for (int64_t groups = most.groups; groups >= 1; --groups) {
          if (left.groups % groups == 0) Take(dim, left, {groups, warps, lanes}, deal);
        }
      }
    }
  }

  void Take(int dim, const Share& left, const Share& share, Deal& deal) {
    const int64_t vector = dim == last() ? deal.vector : 1;
    const int64_t units = CeilDiv(extents_[dim], vector);
    const int64_t steps = CeilDiv(units, share.all());
    if (IsWasteful(units, steps, share)) return;
    const int64_t slots = deal.slots, padded = deal.padded;
    deal.shares[dim] = share;
    deal.slots *= steps * vector;
    deal.padded *= steps * share.all() * vector;
    const Share rest = left / share;
    if (MayBeBest(dim, rest, deal)) Visit(dim - 1, rest, deal);
    deal.slots = slots;
    deal.padded = padded;
  }

  bool SplitsSectors(int dim, int64_t lanes, const Deal& deal) const {
    return dim == last() && extents_[dim] >= sector_ && lanes * deal.vector < sector_;
  }

  // With the dimensions before `dim` dealt out as well as could be.
  bool MayBeBest(int dim, const Share& left, Deal deal) const {
    if (best_.shares.empty()) return true;
    deal.slots *= CeilDiv(elements_before_[dim], left.all());
    deal.padded *= elements_before_[dim];
    return deal.Rank() < best_.Rank();
  }

  // As few steps would do with fewer threads, and less padding.
  static bool IsWasteful(int64_t units, int64_t steps, const Share& share) {
    const int64_t all = share.all();
    return (share.lanes > 1 && CeilDiv(units, all / 2) == steps) ||
           (share.warps > 1 && CeilDiv(units, all / share.warps) == steps) ||
           (share.groups > 1 && CeilDiv(units, all / share.groups) == steps);
  }

  const std::vector<int64_t>& extents_;
  const int64_t sector_;  // in elements
  const Share all_;
  std::vector<int64_t> elements_before_;  // of each dim: the product of the extents before it
  Deal best_;
};

int64_t LargestPowerOfTwoDividing(int64_t value, int64_t limit) {
  int64_t power = 1;
  while (power * 2 <= limit && value % (power * 2) == 0) power *= 2;
  return power;
}

FragmentLayout Build(const std::vector<int64_t>& extents, const Deal& deal, Share left) {
  const int rank = static_cast<int>(extents.size());
  std::vector<int64_t> padded(rank);
  FragmentLayout::Axes axes;
  axes.slot.push_back({deal.vector, 1});
  int64_t inner = 1;  // padded elements behind the dim
  for (int d = rank - 1; d >= 0; --d) {
    const Share& s = deal.shares[d];
    int64_t done = d == rank - 1 ? deal.vector : 1;
    for (const auto& [axis, threads] :
         {std::pair(&axes.lane, s.lanes), std::pair(&axes.warp, s.warps),
          std::pair(&axes.group, s.groups)}) {
      axis->push_back({threads, done * inner});
      done *= threads;
    }
    const int64_t steps = CeilDiv(extents[d], done);
    axes.slot.push_back({steps, done * inner});
    padded[d] = steps * done;
    inner *= padded[d];
    left = left / s;
  }
  // Threads that are left over hold the same as others.
  axes.group.push_back({left.groups, 0});
  axes.warp.push_back({left.warps, 0});
  axes.lane.push_back({left.lanes, 0});
  return FragmentLayout(extents, std::move(padded), std::move(axes));
}

}  // namespace

FragmentLayout BlockedLayout(const std::vector<int64_t>& extents, int64_t element_bytes, int warps,
                             int warp_size, int groups) {
  const Share threads{groups, warps, warp_size};
  Search search(extents, element_bytes, threads);
  const int64_t most = std::max<int64_t>(1, kVectorBytes / element_bytes);
  for (int64_t v = LargestPowerOfTwoDividing(extents.back(), most); v >= 1; v /= 2) search.Try(v);
  return Build(extents, search.best(), threads);
}

}  // namespace tl
