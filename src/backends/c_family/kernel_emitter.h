// One launch of a lowered program as one C function.
#ifndef TILEJIT_BACKENDS_C_FAMILY_KERNEL_EMITTER_H_
#define TILEJIT_BACKENDS_C_FAMILY_KERNEL_EMITTER_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "backends/c_family/dialect.h"
#include "backends/c_family/expr_text.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// What needs functions of its own in the source.
struct WarpgroupParts {
  std::set<WarpgroupProduct> products;
  std::vector<WarpgroupSums> sums;
};

class KernelEmitter {
 public:
  // `threads` per group. Adds what this kernel needs to `parts`.
  KernelEmitter(const Module& module, const Launch& launch, int threads, const Target& target,
                const Dialect& dialect, WarpgroupParts& parts);
  // The whole function, named `symbol`.
  StatusOr<std::string> Emit(std::string_view symbol);

 private:
  void NameParameters();
  std::string Signature(std::string_view symbol) const;
  // Views of the tiles in the arena, in the order of their first appearance.
  void DeclareTiles();
  // Variables that are assigned without having been introduced by a Let.
  void DeclareMutables();
  void DeclareIndices();
  // For each array of whose sum the thread sees the end only.
  void DeclareSums();
  void DeclareIndex(VarId var, std::string_view name, std::string text, int64_t count);
  std::string Declare(VarId var, CType type, Range range);

  Status EmitBlock(const Block& block);
  Status EmitStmt(const Stmt& stmt);
  Status EmitLet(const Let& s);
  Status EmitAssign(const Assign& s);
  Status EmitAlloc(const Alloc& s);
  Status EmitStore(const Store& s);
  Status EmitAtomic(const AtomicElement& s);
  Status EmitFor(const For& s);
  Status EmitThreadFor(const ThreadFor& s);
  Status EmitSlotFor(const SlotFor& s);
  Status EmitVectorMove(const VectorMove& s);
  Status EmitAsyncMove(const AsyncMove& s);
  Status EmitLoadMatrix(const LoadMatrix& s);
  Status EmitStoreMatrix(const StoreMatrix& s);
  Status EmitMma(const Mma& s);
  Status EmitWgmma(const Wgmma& s);
  Status EmitWgmmaSync(const WgmmaSync& s);
  StatusOr<std::string> InPlace(const MatrixInPlace& m) const;
  Status EmitLaneExchange(const LaneExchange& s);
  Status EmitMbarrier(const Mbarrier& s);
  StatusOr<std::string> BoxPlaces(const std::vector<ExprRef>& at) const;
  Status EmitBulkLoad(const BulkLoad& s);
  Status EmitBulkStore(const BulkStore& s);
  void EmitBulkSync(const BulkSync& s);
  Status EmitIf(const If& s);
  Status EmitOnFirstThread(const OnFirstThread& s);
  Status EmitOnProducer(const OnProducer& s);
  void EmitBarrier(Team team);
  StatusOr<Text> Rounded(VarId var, const ExprRef& value) const;

  // "&l0[v1 * 4]".
  StatusOr<std::string> Address(BufferId buffer, const ExprRef& offset) const;

  void Line(std::string_view text);
  // Opens "head {", emits the block, closes it.
  Status Braces(std::string_view head, const Block& block);

  int group_threads() const { return threads_ * launch_.groups; }  // of all groups
  int block_threads() const { return group_threads() + launch_.producers; }
  int team_threads(Team t) const {
    return t == Team::kProducer ? launch_.producers
           : t == Team::kBlock  ? group_threads()
                                : threads_;
  }
  std::string_view team_thread(Team t) const;

  const Module& module_;
  const Launch& launch_;
  const int threads_;
  const Target& target_;
  const Dialect& dialect_;
  WarpgroupParts& parts_;
  absl::flat_hash_map<BufferId, WarpgroupSums> sums_;
  Names names_;
  ExprEmitter exprs_;
  std::string out_;
  int depth_ = 0;
  bool fallback_ = false;  // within what runs where a test of alignment fails
  int num_vars_ = 0;
  int num_locals_ = 0;
};

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_KERNEL_EMITTER_H_
