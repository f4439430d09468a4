// State and helpers shared by the files that expand tile operations (lower_*.cc). Not part of the
// room's interface; see lower_tiles.h for the pass.
//
// Two shapes of code come out, chosen by one fact of the target. Where many threads share a block
// (`flat`), an operation is one ThreadFor over all elements of its result, coordinates decoded from
// the flat index. Where one thread runs a block, it is a nest of serial loops around a ThreadFor
// over the last dimension, which a compiler can vectorise.
#ifndef TILEJIT_PASSES_LOWERING_H_
#define TILEJIT_PASSES_LOWERING_H_

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"
#include "passes/bulk_stores.h"
#include "passes/divisor.h"
#include "passes/interval.h"
#include "passes/partial_sums.h"

namespace tl {

using Coords = std::vector<ExprRef>;

ExprRef Add(ExprRef a, ExprRef b);
ExprRef Sub(ExprRef a, ExprRef b);
ExprRef Mul(ExprRef a, ExprRef b);
ExprRef Div(ExprRef a, int64_t b);
ExprRef Mod(ExprRef a, int64_t b);
ExprRef Min(ExprRef a, ExprRef b);
ExprRef Max(ExprRef a, ExprRef b);
ExprRef Less(ExprRef a, ExprRef b);
ExprRef And(ExprRef a, ExprRef b);
// 0, 0.0 or false.
ExprRef Zero(ScalarType type);
// The element type that holds every value of a compute type.
DType WideDType(ScalarType type);
// What a reduction of elements of `dtype` starts from, in their compute type.
ExprRef IdentityOf(ReduceOp op, DType dtype);
// `v` as a value of `to`'s compute type, rounded to `to` where the compute type changes (a store
// rounds anyhow). A number becomes a bool by != 0.
ExprRef ConvertTo(DType to, const ExprRef& v);
// `v` as an element of `to` holds it, also where the compute type stays: atomics combine elements.
ExprRef ElementValue(DType to, const ExprRef& v);
std::vector<int64_t> Without(const std::vector<int64_t>& extents, int dim);

class Lowering {
 public:
  Lowering(Module& module, const Target& target, const Launch& launch, bool may_stage = true);

  // ---- What is being lowered

  Module& module() { return m_; }
  const Buffer& buffer(BufferId id) const { return m_.buffers[id]; }
  bool flat() const { return target_.simt; }
  // Several threads run one block: statements must be shared out and ordered.
  bool cooperative() const { return cooperative_; }
  const Target& target() const { return target_; }
  const Launch& launch() const { return launch_; }
  // Of this block along an axis whose clusters have several.
  ExprRef PlaceInCluster(int axis) const;
  const BulkStores& stores() const { return stores_; }
  // Threads that a team will have, roughly; for choosing how finely to cut work.
  int64_t team_size() const;
  Intervals& intervals() { return intervals_; }

  // Index of such a box among the launch's.
  int Box(TensorBox box);
  ExprRef IsUsable(int box) const { return Read(boxes_[box].usable); }
  const std::vector<TensorBox>& boxes() const { return boxes_; }

  // Asynchronous copies of a planned loop are issued in the middle of the loop's first product:
  // there other warps keep the matrix units busy.
  void Defer(std::function<void()> emit) { deferred_ = std::move(emit); }
  bool has_deferred() const { return deferred_ != nullptr; }
  void EmitDeferred() {
    if (const std::function<void()> emit = std::exchange(deferred_, nullptr)) emit();
  }

  // Statements made from now on carry the place of `s`.
  void At(const Stmt& s) { span_ = s.span, id_ = s.id; }
  // A line for the report, once: a statement may be lowered several times.
  void Note(std::string_view what, std::string_view text);

  // `on g`: statements inside are shared out over one group, whose fragments are private.
  void EnterGroup(VarId group) { group_ = group; }
  void LeaveGroup() { group_ = kNoId; }
  // Where this group's copy of a private tile begins, in elements.
  ExprRef GroupOffset(BufferId tile) const;
  bool in_group() const { return group_ != kNoId; }
  // Statements inside are the producers'.
  void EnterProducer();
  void LeaveProducer() { in_producer_ = false; }
  Team team() const {
    return in_producer_ ? Team::kProducer : in_group() ? Team::kGroup : Team::kBlock;
  }
  void MakePrivate(BufferId tile) { private_.insert(tile); }
  const absl::flat_hash_set<BufferId>& private_tiles() const { return private_; }

  // ---- Making statements

  void Emit(const StmtRef& s) { out_->push_back(s); }
  template <typename T>
  void Emit(T node) {
    out_->push_back(MakeStmt(std::move(node), span_, id_));
  }
  // What `make` emits.
  Block Capture(absl::FunctionRef<void()> make);

  // A name for `value`; literals and names stay as they are.
  ExprRef Named(std::string_view name, ExprRef value);
  // The same for every thread and fixed from here on: names what reads memory or mutable variables.
  ExprRef Fixed(std::string_view name, ExprRef value);
  // A mutable variable that starts with `init`.
  VarId Mutable(std::string_view name, DType dtype, ExprRef init);
  ExprRef Read(VarId var) const;
  void Set(VarId var, ExprRef value) { Emit(Assign{var, std::move(value)}); }
  void EmitIf(const ExprRef& cond, absl::FunctionRef<void()> body);
  void EmitIfElse(const ExprRef& cond, absl::FunctionRef<void()> yes, absl::FunctionRef<void()> no);
  // for name = begin; name < end
  void Serial(std::string_view name, ExprRef begin, ExprRef end,
              absl::FunctionRef<void(const ExprRef&)> body, bool down = false);
  void Threads(std::string_view name, ExprRef extent, absl::FunctionRef<void(const ExprRef&)> body);
  // `body` once for every coordinate below `extents`, in the target's shape.
  void ForEach(const std::vector<int64_t>& extents, absl::FunctionRef<void(const Coords&)> body);
  // The same with given variables.
  void ForEachVar(const std::vector<VarId>& vars, const std::vector<int64_t>& extents,
                  absl::FunctionRef<void()> body);
  // A tile that lives as long as its uses in the current block.
  BufferId Scratch(std::string_view name, DType dtype, std::vector<int64_t> extents);

  // ---- Fragments in registers (see layout/fragment_layout.h)

  // The exchanges between lanes that complete a reducer at its `finish`; null: it is complete at
  // all times.
  const std::vector<int>* LanesOf(BufferId reducer) const;
  // Null: the tile lies in shared memory, or is no fragment.
  const FragmentLayout* LayoutOf(BufferId id) const { return buffer(id).layout.get(); }
  // This thread's places, and the warp's number. Defined once, where the launch starts.
  void NameThread();
  bool has_registers() const { return lane_ != nullptr; }
  int warps() const { return static_cast<int>(team_size() / target_.warp_size); }
  // May tiles pass through shared memory on their way out?
  bool may_stage() const { return may_stage_; }
  const ExprRef& lane() const { return lane_; }
  // Among those of the team.
  const ExprRef& warp() const {
    return in_producer_ ? producer_warp_ : in_group() ? group_warp_ : warp_;
  }
  // A value that depends on the thread's place alone, computed where the launch starts and kept.
  ExprRef Pinned(std::string_view name, ExprRef value);
  // Statements that run once, where the launch starts.
  void AtStart(absl::FunctionRef<void()> make);
  // Puts those and the pinned values into the launch's complete body.
  void InsertAtStart(Block& body) const;
  // Registers of a thread.
  BufferId LocalArray(std::string_view name, DType dtype, int64_t count);
  // name = 0 ... count-1, unrolled.
  void Slots(std::string_view name, int64_t count, absl::FunctionRef<void(const ExprRef&)> body);

  // One element that the thread holds.
  struct Element {
    ExprRef slot;
    Coords at;
    ExprRef real;      // lies inside the tile, not in its padding
    Coords from_slot;  // what the slot contributes to `at`; the rest is OfThread
  };
  // Coordinates of the thread's first element, as expressions of its place.
  Coords OfThread(const FragmentLayout& layout) const;
  // `body` for the first of every `step` neighbouring slots.
  void ForEachElement(const FragmentLayout& layout, int64_t step,
                      absl::FunctionRef<void(const Element&)> body);
  // Of the threads that hold the same elements, the first; of those along one axis.
  ExprRef IsOwner(const FragmentLayout& layout);
  ExprRef IsFirst(const FragmentLayout& layout, LayoutAxis axis);
  // Slot of the projection of `layout` to the dims `kept` that holds what `slot` holds.
  static ExprRef SlotOf(const FragmentLayout& layout, const std::vector<int>& kept,
                        const ExprRef& slot);
  // A `parallel` dealt out by `layout`: fragments indexed by `vars` are found in registers. Of
  // several threads with the same element all run the body, but only one changes memory; where they
  // need not all run (`all_holders`: it writes their registers), only that one does.
  void ForEachMapped(const FragmentLayout& layout, const std::vector<VarId>& vars, bool all_holders,
                     absl::FunctionRef<void()> body);
  // What changes memory, in such a loop.
  void EmitOnce(absl::FunctionRef<void()> body);

  // ---- Channels

  // A channel's ring where groups of one block hand over by mbarriers: element s of `mbarriers`
  // says that slot s is full, element depth + s that it is free.
  struct Ring {
    // Slot of a group's next message, and the parity of the phase in which it fills. Mutable.
    struct Position {
      VarId slot, parity;
    };
    BufferId mbarriers;
    int64_t depth;
    Position sender, receiver;
  };
  absl::flat_hash_map<BufferId, Ring>& rings() { return rings_; }

  // `var` < `limit`, always.
  void SetLimit(VarId var, ExprRef limit) { limits_[var] = std::move(limit); }

  // A number that divides every value of `e`.
  int64_t DivisorOf(const ExprRef& e) const;

  // ---- Expressions and addresses

  // Level Tile to level Thread: indices become flat offsets. Where all threads of the team need the
  // value, and might find different ones (see ByOneThread), it is that of the first.
  ExprRef Lowered(const ExprRef& e);
  // What `body` lowers is evaluated by each thread for itself.
  void Apart(absl::FunctionRef<void()> body);
  // Offsets lowered and fixed: evaluated once, before the operation changes anything.
  Region Prepared(const Region& r);
  ExprRef Offset(BufferId buffer, const Coords& index) const;
  ExprRef LoadAt(BufferId buffer, const Coords& index) const;
  void StoreAt(BufferId buffer, const Coords& index, const ExprRef& value);
  // Of prepared regions.
  static Coords Index(const Region& r, const Coords& c);
  ExprRef LoadAt(const Region& r, const Coords& c) const { return LoadAt(r.buffer, Index(r, c)); }
  void StoreAt(const Region& r, const Coords& c, const ExprRef& value) {
    StoreAt(r.buffer, Index(r, c), value);
  }
  bool IsGlobal(const Region& r) const { return buffer(r.buffer).scope == Scope::kGlobal; }
  Region Whole(BufferId tile) const;
  // Same elements in the same order, given the same buffer.
  static bool SameWindow(const Region& a, const Region& b);
  // Is the element at `index` of a tensor inside it? Tests that always hold are left out, and that
  // of dimension `skip`.
  ExprRef Inside(BufferId tensor, const Coords& index, int skip = -1) const;

 private:
  // Decoding of the flat index that is in force: coordinates of a full tile of these extents have
  // this offset.
  struct Decode {
    std::vector<int64_t> extents;
    std::vector<VarId> vars;
    VarId flat = kNoId;
  };
  bool IsDecoded(const Buffer& b, const Coords& index) const;
  ExprRef NewLet(std::string_view name, ExprRef value);
  // Other blocks may write between two threads' loads from a tensor that the launch writes. A value
  // that steers the team (a condition, a bound) is then loaded by its first thread, which tells the
  // others.
  bool MayDiffer(const ExprRef& value) const;
  ExprRef ByOneThread(const ExprRef& value);
  ExprRef SlotOfIndex(BufferId tile, const Coords& index) const;

  Module& m_;
  const Target& target_;
  const Launch& launch_;
  bool cooperative_;
  const bool may_stage_;
  const BulkStores stores_;
  const PartialSums partial_sums_;
  Block* out_ = nullptr;
  Span span_;
  int id_ = 0;
  VarId group_ = kNoId;
  Decode decode_;
  Intervals intervals_;
  absl::flat_hash_set<BufferId> private_;
  absl::flat_hash_set<BufferId> written_;  // tensors that the launch writes
  bool apart_ = false;                     // each thread for itself

  std::vector<TensorBox> boxes_;
  std::function<void()> deferred_;
  Block at_start_;
  size_t start_ = 0;  // index in the launch's body
  ExprRef lane_, warp_, group_warp_, producer_warp_;
  bool in_producer_ = false;
  // The `parallel` in registers that is in force.
  struct Mapped {
    const FragmentLayout* layout = nullptr;
    std::vector<VarId> vars;
    ExprRef slot, owner;
  };
  Mapped mapped_;
  Divisors divisors_;  // of names
  absl::flat_hash_map<VarId, ExprRef> limits_;
  absl::flat_hash_map<BufferId, Ring> rings_;
};

// Copies with a fragment in registers on one side or both; false: there is none.
bool CopyRegisters(Lowering& l, const Copy& copy);
// Whole vectors between shared and global memory (or, asynchronously, from global to a ring); false
// where the windows do not permit it. Where they do but for what only the launch knows, `otherwise`
// is the other branch.
bool CopyVectors(Lowering& l, const Copy& copy, absl::FunctionRef<void()> otherwise);
// By boxes: copies that arrive at one mbarrier together. `acquire` (may be null) waits for their
// slot: a statement for whoever fills it.
void CopyBoxes(Lowering& l, const std::vector<Copy>& copies, const StmtRef& acquire);
// `why` not; if there is a reason, the report has it.
bool MayLeaveInBoxes(Lowering& l, const Region& tensor, std::string_view why);
// Of a whole tile in panels to a tensor, where nothing keeps it from that (BulkStores::WhyNot).
void StoreBoxes(Lowering& l, const Copy& copy);
// A copy where boxes cannot serve.
void CopyWithoutBoxes(Lowering& l, const Copy& copy);
// A line for the report about one side in global memory.
void NoteCopy(Lowering& l, const Region& tensor, bool from, std::string_view how);
std::string Evicted(Eviction evict);  // ", evicted first" for it; normally nothing
// Gemm and reduce on registers; false where the tiles are not there.
bool GemmRegisters(Lowering& l, const Gemm& gemm);
// Its part for instructions of four warps.
void GemmInPlace(Lowering& l, const Gemm& gemm);
bool ReduceRegisters(Lowering& l, const Reduce& reduce);
void FinishReducer(Lowering& l, BufferId reducer);
// Where both tiles lie so, cumsum runs on registers: threads that come one after the other hold
// elements along `dim` that do, and each thread neighbours.
bool RunsInOrder(const FragmentLayout& layout, int dim);
bool CumSumRegisters(Lowering& l, const CumSum& cumsum);
// Type in which a reduction keeps its running value.
DType RunningType(const Lowering& l, const Reduce& r);
// Bounds of one tensor element, `rows` (may be null) included. `skip`: buffer dim that is not
// tested, with `rows` left out if that is the dim it limits.
ExprRef InsideWindow(const Lowering& l, const Region& r, const Coords& c, const ExprRef& rows,
                     int skip = -1);
// Combination of two values of a reduction.
ExprRef Combine(ReduceOp op, const ExprRef& acc, const ExprRef& x);

// One function per group of operations.
void LowerCopy(Lowering& l, const Copy& copy);
// With regions and rows that are fixed.
Copy PreparedCopy(Lowering& l, const Copy& copy);
// Each element by a thread.
void CopyElements(Lowering& l, const Copy& prepared);
void LowerAtomic(Lowering& l, const Atomic& atomic);
void LowerFill(Lowering& l, const Fill& fill);
void LowerGemm(Lowering& l, const Gemm& gemm);
void LowerReduce(Lowering& l, const Reduce& reduce);
void LowerArgMax(Lowering& l, const ArgMax& argmax);
void LowerCumSum(Lowering& l, const CumSum& cumsum);
void LowerParallel(Lowering& l, const Parallel& parallel);
// A statement of a parallel body, or an element statement between tile operations.
void LowerElementStmt(Lowering& l, const StmtRef& s);
// Send and recv; UNIMPLEMENTED where the target has no channels.
Status LowerSend(Lowering& l, const Send& send, Span span);
Status LowerRecv(Lowering& l, const Recv& recv, Span span);

}  // namespace tl

#endif  // TILEJIT_PASSES_LOWERING_H_
