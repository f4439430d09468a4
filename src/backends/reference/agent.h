// The interpreter of one thread block: an Agent runs statements, alone for the whole block or,
// inside `on g`, one per group.
//
// Failures are sticky: Fail records the first one in the block's state, every Exec returns false
// from then on, and expressions yield nothing of use. This keeps the inner paths free of StatusOr.
#ifndef TILEJIT_BACKENDS_REFERENCE_AGENT_H_
#define TILEJIT_BACKENDS_REFERENCE_AGENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/reference/machine.h"
#include "backends/reference/tile.h"
#include "backends/reference/value.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::reference {

class Baton;

struct Channel {
  std::deque<Elements> messages;
  int sender = kNoId, receiver = kNoId;  // groups, once known
  Span span;
};

// What the agents of one block share. Kept by a worker from block to block for its memory.
struct BlockState {
  Status status;
  std::vector<std::unique_ptr<Tile>> tiles;        // by BufferId
  std::vector<std::unique_ptr<Channel>> channels;  // by BufferId
  // Shared tiles that some group has entered during the present `on g`.
  std::vector<bool> entered;
  int64_t work = 0;       // multiply-adds and elements so far
  int64_t parallels = 0;  // `parallel` statements so far
};

class Agent {
 public:
  Agent(Machine* machine, BlockState* block);

  // Runs launch `l` at one point of its grid.
  void RunBlock(int l, const std::vector<int64_t>& point);
  // A value outside all blocks, such as the counts of a split.
  Value EvalUniform(const ExprRef& e, VarId var, int64_t value);

 private:
  struct Snapshot {
    std::vector<Value> vars;
    std::vector<Elements> tiles;
  };
  struct LagState {
    const LagSite* site;
    std::deque<Snapshot> waiting;
  };
  // Where stores stand whose condition could, within the error bound, have come out the other way.
  enum class Doubt : uint8_t { kNone, kTaken, kNotTaken };

  bool failed() const { return !block_->status.ok(); }
  void Fail(const Span& span, std::string_view message);
  const Buffer& buffer(BufferId id) const { return machine_->module().buffer(id); }
  bool exact() const { return exact_; }
  std::string Quoted(BufferId id) const;

  // ---- eval.cc
  Value Eval(const Expr& e);
  Value Eval(const ExprRef& e) { return Eval(*e); }
  Value EvalBinary(const Expr& e, const Binary& binary);
  Value EvalSelect(const Select& select);
  Value EvalLoad(const Expr& e, const Load& load);
  Value EvalParts(const Expr& e, const PartsBound& parts);
  // An int or bool that control or addresses depend on: must be defined.
  int64_t EvalInt(const ExprRef& e, std::string_view what);
  // False (and failed) when the index is undefined or outside. Sets *uncertain when it stems from a
  // float closer to a step than its error.
  bool EvalIndex(const std::vector<ExprRef>& index, BufferId id, std::string_view action,
                 const Span& span, Index* out, bool* uncertain);
  Value WidenByOther(Value chosen, const Value& other, ScalarType type) const;

  // ---- agent.cc
  bool Run(const Block& body);
  bool Exec(const Stmt& s);
  bool Exec(const Stmt& s, const Let& let);
  bool Exec(const Stmt& s, const Assign& assign);
  bool Exec(const Stmt& s, const Alloc& alloc);
  bool Exec(const Stmt& s, const Fill& fill);
  bool Exec(const Stmt& s, const If& branch);
  bool Exec(const Stmt& s, const For& loop);
  bool Exec(const Stmt& s, const Finish& finish);
  bool Exec(const Stmt& s, const InTurn& turn);
  template <typename T>
  bool Exec(const Stmt& s, const T&) {
    return NotTileLevel(s);
  }
  bool NotTileLevel(const Stmt& s);
  bool SkipsPart(const For& loop, int64_t slot);
  bool RunSplit(const Launch& launch, int l, int64_t run);
  bool CheckChannelsEmpty();

  // ---- elements.cc: inside `parallel`
  bool Exec(const Stmt& s, const Parallel& parallel);
  bool Exec(const Stmt& s, const Store& store);
  bool Exec(const Stmt& s, const AtomicElement& atomic);
  bool ExecDoubtful(const If& branch, bool taken);
  bool StoreTo(const Stmt& s, const Store& store, Tile* tile, int64_t at, Value value);
  Value Combine(StoreOp op, DType t, const Value& old, const Value& value) const;
  bool CheckRace(const Tile& tile, int64_t at, const Span& span, std::string_view action);
  Value Updated(const Value& old, const Value& updated, ScalarType type) const;
  void AtomicAt(const Stmt& s, AtomicOp op, Tensor* tensor, int64_t offset, const Value& value);

  // ---- regions.cc
  Tile* FindTile(BufferId id, const Span& span);
  // A window into a tile.
  bool View(const Region& region, const Span& span, TileView* view);
  // The same for reading: a reducer must be finished.
  bool ReadView(const Region& region, const Span& span, TileView* view);
  bool CheckReadable(BufferId id, const Span& span);
  bool EvalOffsets(const Region& region, const Span& span, Index* offset);
  bool CheckDefinedOutput(BufferId dst, const TileView& row, int64_t n, const Span& span);

  // ---- copy.cc
  bool Exec(const Stmt& s, const Copy& copy);
  bool Exec(const Stmt& s, const Atomic& atomic);
  bool CopyIn(const Stmt& s, const Copy& copy, const TileView& dst);
  bool CopyTile(const Copy& copy, const TileView& src, const TileView& dst);
  bool CopyOut(const Stmt& s, const Copy& copy, const TileView& src);
  void ConvertRow(DType from, const TileView& row, DType to, int64_t n) const;

  // ---- gemm.cc, reduce.cc
  bool Exec(const Stmt& s, const Gemm& gemm);
  bool Exec(const Stmt& s, const Reduce& reduce);
  bool Exec(const Stmt& s, const ArgMax& argmax);
  bool Exec(const Stmt& s, const CumSum& cumsum);

  // ---- lag.cc
  bool Exec(const Stmt& s, const Lag& lag);
  bool RunLagged(const LagSite& site, Snapshot snapshot);
  Snapshot TakeSnapshot(const LagSite& site);
  void SwapTiles(const LagSite& site, Snapshot* snapshot);
  bool DrainLags(const LagLoop& loop, int64_t trips);

  // ---- groups.cc
  bool Exec(const Stmt& s, const OnGroup& on);
  bool Exec(const Stmt& s, const Send& send);
  bool Exec(const Stmt& s, const Recv& recv);
  bool MergeVars(const Stmt& s, const std::vector<std::unique_ptr<Agent>>& agents);
  Channel* FindChannel(BufferId id, const Span& span);

  Machine* machine_;
  BlockState* block_;
  Arith arith_;
  bool exact_;
  std::vector<Value> vars_;                       // by VarId
  std::set<VarId> assigned_;                      // mutable variables made so far
  std::vector<Tile*> tiles_;                      // by BufferId, null out of scope
  std::vector<std::unique_ptr<Tile>> own_tiles_;  // private to a group
  std::unordered_map<const Lag*, LagState> lags_;

  int group_ = kNoId;  // inside `on g`
  Baton* baton_ = nullptr;

  uint64_t parallel_ = 0;   // number of the present `parallel`, 0: none
  uint64_t iteration_ = 0;  // within it
  Doubt doubt_ = Doubt::kNone;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_AGENT_H_
