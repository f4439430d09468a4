// In which iterations of a loop is a condition known?
//
// Comparisons of what is linear in the loop's index with what the loop does not change hold up to
// some index, or from one on; `and`, `or` and `not` of them hold in ranges made of these. The index
// may come through values defined in the loop. Index arithmetic is taken not to overflow, as in
// interval.h.
#ifndef TILEJIT_PASSES_INDEX_CONDITIONS_H_
#define TILEJIT_PASSES_INDEX_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/module.h"
#include "passes/varying.h"

namespace tl {

// A place between two iterations.
struct Cut {
  // Index of the iteration behind it (upwards): from the loop's begin to its end, and its begin
  // where the loop has no iterations. Of values from outside of the loop.
  ExprRef at;
  // How many iterations from the loop's ends it lies at most, where that is known.
  std::optional<int64_t> from_begin, from_end;
};

// Iterations `from` ... `to`; no cut: from the first, to the last.
struct IndexRange {
  std::optional<Cut> from, to;

  // All iterations but a known number.
  bool IsMost() const;
  // No more than a known number of iterations.
  bool IsFew() const;
  // A least number of iterations outside, of a range that IsMost.
  int64_t Outside() const;
};

IndexRange Intersection(const IndexRange& a, const IndexRange& b);

class IndexConditions {
 public:
  // `begin`, `end`: the loop's, as they may be read in front of it.
  IndexConditions(const Module& module, const Varying& varying, const For& loop, ExprRef begin,
                  ExprRef end);

  // A range in which `cond` is `value`; none: there is none that can be told. `why` tells, where it
  // is empty and the condition depends on the index.
  std::optional<IndexRange> Known(const ExprRef& cond, bool value, std::string& why) const;

 private:
  // factor * index + sum of (factor * term) + constant
  struct Linear {
    int64_t index = 0;
    std::vector<std::pair<ExprRef, int64_t>> terms;  // each once, no factor is 0
    int64_t constant = 0;
  };

  static ExprRef ValueOf(const Linear& sum);  // of its terms
  static void Add(Linear& to, const Linear& other, int64_t factor);
  static bool InRange(const Linear& sum);

  void NoteChanges();
  std::optional<Linear> LinearOf(const ExprRef& e, std::string& why) const;
  std::optional<Linear> LinearOfBinary(const ExprRef& e, std::string& why) const;
  std::optional<Linear> Term(const ExprRef& e, std::string& why) const;

  std::optional<IndexRange> KnownComparison(const Binary& compare, bool value,
                                            std::string& why) const;
  // Where index * factor + terms + constant < 0, or not.
  std::optional<IndexRange> BelowZero(const Linear& difference, bool value) const;
  ExprRef PlaceOf(const Linear& bound, int64_t factor) const;
  Cut CutAt(const Linear& bound, int64_t factor) const;

  const Module& module_;
  const Varying& varying_;
  const For& loop_;
  const ExprRef begin_, end_;
  std::optional<Linear> linear_begin_, linear_end_;
  // Made in the loop: all, and those among them of which it is known how.
  absl::flat_hash_set<VarId> changing_;
  absl::flat_hash_map<VarId, Linear> values_;
  absl::flat_hash_map<VarId, ExprRef> conditions_;  // that take none of the others
};

}  // namespace tl

#endif  // TILEJIT_PASSES_INDEX_CONDITIONS_H_
