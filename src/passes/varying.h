// Which values may differ between the threads of a team, so that conditions and bounds of loops
// made of the others are the same for all of them.
#ifndef TILEJIT_PASSES_VARYING_H_
#define TILEJIT_PASSES_VARYING_H_

#include "absl/container/flat_hash_set.h"
#include "ir/module.h"

namespace tl {

// Variables and local arrays of a launch at level Thread.
class Varying {
 public:
  Varying(const Module& module, const Launch& launch);

  bool Has(const ExprRef& e) const;

 private:
  size_t size() const { return vars_.size() + arrays_.size(); }
  // `apart`: not all threads of the team come here, or not with the same values.
  void Walk(const Block& block, bool apart);
  void NoteResults(const Stmt& s);

  const Module& module_;
  absl::flat_hash_set<VarId> vars_;
  absl::flat_hash_set<BufferId> arrays_;
  // Tensors: other blocks may write between two threads' loads.
  absl::flat_hash_set<BufferId> written_;
};

}  // namespace tl

#endif  // TILEJIT_PASSES_VARYING_H_
