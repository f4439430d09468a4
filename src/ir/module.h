// A bound tile program: parameters are constants, names are resolved, types are checked.
//
// One Module type serves every level of lowering; verify.h says which statements may appear at
// which. The text form of the language lives in syntax.h; bind.h makes a Module of it and unparse.h
// turns a Module back into text.
#ifndef TILEJIT_IR_MODULE_H_
#define TILEJIT_IR_MODULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/expr.h"
#include "layout/fragment_layout.h"
#include "layout/shared_layout.h"

namespace tl {

enum class Level : uint8_t {
  kTile,      // what the author wrote, parameters bound
  kSelected,  // besides: matrix instructions and the order of shared tiles are chosen
  kPlanned,   // besides: pipelined loops are rings, asynchronous copies and waits
  kMapped,    // besides: fragments that live in registers have layouts
  kThread,    // statements of one thread: flat loads and stores, near-target instructions, barriers
};

// ---- Variables -------------------------------------------------------------------------------

enum class VarRole : uint8_t {
  kDim,      // dynamic dim, an argument of the launch
  kStride,   // dynamic stride, an argument of the launch, in elements
  kScalar,   // runtime scalar argument
  kGrid,     // index of a grid axis, or a variable of a split axis
  kLoop,     // loop or element index
  kLet,      // assigned once per entry of its scope
  kMutable,  // alloc_var: assigned many times, one value per thread block
  kGroup,    // g of `on g in n`
  kThread,   // level Thread: a special index of the launch (block, thread, group, group_thread)
};

struct Var {
  std::string name;
  ScalarType type;
  VarRole role;
  DType dtype;  // kScalar, kMutable: declared type; values are rounded to it when stored
  Span span;
};

// ---- Buffers ---------------------------------------------------------------------------------

enum class Scope : uint8_t {
  kGlobal,    // tensor in device memory
  kShared,    // tile shared by the block
  kFragment,  // tile in the registers of the block (or of one group inside `on g`)
  kLocal,     // small array private to each thread (to each iteration inside `parallel`)
  kChannel,   // FIFO of tiles between groups
};

enum class BufferRole : uint8_t {
  kIn,
  kOut,
  kInOut,
  kWorkspace,
  kTile,
  kReducer,
  kMbarriers,  // level Thread: one mbarrier an element, theirs from the launch's start to its end
};

enum class ReduceOp : uint8_t { kSum, kMax, kMin, kAbsMax, kProd, kAny, kAll };
// Value a reduction starts from: 0, -inf (lowest int), +inf, 0, 1, false, true.
double Identity(ReduceOp op, DType t);

struct Buffer {
  std::string name;
  Span span;
  Scope scope = Scope::kGlobal;
  BufferRole role = BufferRole::kTile;
  DType dtype = DType::kF32;

  // Tiles: extents. Channels: extents of one message.
  std::vector<int64_t> extents;

  // Global tensors: extents and strides (both in elements, one per dim) as expressions of dims,
  // dynamic strides and literals. Contiguous tensors have the product expressions here.
  std::vector<ExprRef> shape;
  std::vector<ExprRef> strides;
  // `prepacked[r, c]`: the last two dims are stored as row-major tiles of r×c, the tiles row-major,
  // edges padded; empty otherwise. See TensorOffset in address.h.
  std::vector<int64_t> packed;
  bool is_const = false;  // no earlier kernel in the stream writes it
  // Workspaces: the operand whose elements it holds too where it is not empty, at the same
  // coordinates, so that boxes may come from here. Rows may be longer.
  BufferId stands_for = kNoId;

  bool accumulator = false;             // alloc_acc: only gemm, fill and copy touch it
  ReduceOp reduce_op = ReduceOp::kSum;  // role kReducer
  int64_t depth = 1;                    // channels
  int arrivals = 0;                     // role kMbarriers: of a phase; 0: a pass makes them itself
  // Level Thread: byte offset of the tile's storage in its block's arena; -1: not there (kLocal
  // lives in registers or on the stack).
  int64_t arena_offset = -1;
  int64_t boxes = 0;  // annotation `boxes=64`: loaded in boxes of that many columns; 0: unset

  // From level Selected on. Shared tiles: the order within a row, of the last two dims.
  Swizzle swizzle;
  // Matrix instructions (MatrixAtom::form kWgmma) or BulkStores read it where it lies: its rows are
  // in panels.
  bool in_place = false;
  // From level Planned on. Dim 0 counts the slots of a ring, whose waits and barriers the
  // pipeline's plan has placed.
  bool ring = false;
  // Besides: who reads a slot gives it back at an mbarrier, for which who fills it waits.
  bool handed_back = false;
  // From level Mapped on. Fragments in registers; null: the tile lies in shared memory. At level
  // Thread such a tile is a kLocal array of layout->slots() elements.
  std::shared_ptr<const FragmentLayout> layout;

  // Elements of a row that lie together (Swizzle::panel_bytes).
  int64_t PanelElements() const {
    if (swizzle.panel_bytes == 0) return extents.back();
    return swizzle.panel_bytes / static_cast<int64_t>(SizeOf(dtype));
  }
  int rank() const {
    return static_cast<int>(scope == Scope::kGlobal ? shape.size() : extents.size());
  }
  int64_t num_elements() const {  // tiles only
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
  // Of all messages that a channel holds; of other tiles, their own.
  int64_t stored_elements() const {
    return num_elements() * (scope == Scope::kChannel ? depth : 1);
  }
  int64_t stored_bytes() const { return stored_elements() * static_cast<int64_t>(SizeOf(dtype)); }
};

// A tile-shaped window into a buffer. Element c of the window is buffer element
// offset + sum over tile dims i of c[i] along buffer dim dims[i]; every other buffer dim stays at
// its offset. A whole tile has offsets 0 and dims 0,1,2...
struct Region {
  BufferId buffer = kNoId;
  std::vector<ExprRef> offset;   // one per buffer dim, int
  std::vector<int> dims;         // one per tile dim, ascending
  std::vector<int64_t> extents;  // one per tile dim
  Span span;

  int rank() const { return static_cast<int>(extents.size()); }
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
  }
};

// All of a tile.
Region WholeTile(const Buffer& buffer, BufferId id);
// Is the window all of a tile? False for tensors.
bool IsWhole(const Buffer& tile, const Region& window);

// ---- Statements ------------------------------------------------------------------------------

struct Stmt;
using StmtRef = std::shared_ptr<const Stmt>;
using Block = std::vector<StmtRef>;

enum class StoreOp : uint8_t { kSet, kAdd, kSub, kMul, kDiv, kMin, kMax };
// The operator of `x op= value`; not for kSet.
BinaryOp OperatorOf(StoreOp op);
enum class AtomicOp : uint8_t { kAdd, kMax, kMin };
enum class GemmPolicy : uint8_t { kSquare, kFullRow, kFullCol };
// What instructions may round besides the sums of their type: nothing; f32 operands, to tf32; sums
// of 8-bit floats, to 13 bits behind the point (fast accumulation).
enum class GemmPrecision : uint8_t { kExact, kTF32, kFastAccum };
std::string_view Name(GemmPrecision p);  // "exact", "tf32", "fast_accum"
// Which dim of c the rows of a matrix instruction are: c's rows, or (swapped: it computes the
// transpose of c) its columns. Auto: what has been measured to be faster.
enum class GemmOrientation : uint8_t { kAuto, kStraight, kSwapped };
// When the L2 cache gives up what a copy moves: as it sees fit, before all else, or after. A hint,
// which changes no value.
enum class Eviction : uint8_t { kNormal, kFirst, kLast };
std::string_view Name(Eviction e);  // "normal", "first", "last"
enum class LoopKind : uint8_t { kSerial, kUnrolled, kVectorized, kPipelined };

// -- both levels
struct Let {
  VarId var;
  ExprRef value;
  // Level Thread, all threads of a warp: kept in a register, not computed again where it is used.
  bool pinned = false;
};
struct Assign {
  VarId var;
  ExprRef value;
};  // var of role kMutable
// Enters a tile into scope. Its elements are undefined (poisoned) until written; a reducer starts
// at its identity. Executed again, it is undefined again.
struct Alloc {
  BufferId buffer;
};
// One element: inside `parallel`, or of a local array, or (level Thread) anywhere. Index as in
// Load.
struct Store {
  BufferId buffer;
  std::vector<ExprRef> index;
  StoreOp op;
  ExprRef value;
};
struct AtomicElement {
  AtomicOp op;
  BufferId buffer;
  std::vector<ExprRef> index;
  ExprRef value;
};
// for var = begin; var < end; ++var; `down` runs the same values backwards. The number of trips may
// be 0 or negative (no trip).
struct For {
  LoopKind kind;
  VarId var;
  ExprRef begin, end;
  bool down = false;
  int stages = 1;  // kPipelined; 0 and 1: no overlap
  Block body;
  // kSerial, kPipelined: iterations in which conditions on `var` are the exception get loops of
  // their own (passes/partition_loops.h). Changes speed, never values.
  bool partition = false;
};
struct If {
  ExprRef cond;
  Block then_body, else_body;
};
// Where a turn of the group that comes by begins, or ends: what lies between, in one block, is done
// by one group after the other. Made of InTurn by expand_lag, gone with end_turns.
struct Turn {
  bool begins;
  BufferId barriers = kNoId;  // from level Mapped on: an mbarrier for each group
};

// -- level Tile
// dst = src, elementwise (transpose: dst[i,j] = src[j,i]). A global source reads 0 out of bounds, a
// global destination drops out-of-bounds elements. `rows` (may be null) limits tile dim 0 of the
// global side the same way. dtypes convert with rounding.
struct Copy {
  Region src, dst;
  ExprRef rows;
  bool transpose = false;
  // Of the tensor's side. The first passes keep it where the target takes such hints.
  Eviction evict = Eviction::kNormal;
  // From level Planned on: global to a ring; may still be under way until an AsyncWait for the
  // group it belongs to and a barrier.
  bool async = false;
  // Besides: by boxes (BulkLoad) where the launch permits it. One arrival at this mbarrier, whose
  // phase ends when the elements are there for everyone.
  BufferId barriers = kNoId;
  ExprRef barrier;
  // Besides: bit i is set where the blocks of a cluster copy the same along axis i of the launch.
  // Then each of them loads its share of the rows for all of them.
  unsigned together = 0;
};
struct Fill {
  Region dst;
  ExprRef value;
};  // `clear` is fill 0; a reducer takes any value
inline constexpr int kNoAtom = -1;
// c (+)= op(a) * op(b); op transposes where asked. c's dtype is the accumulator: f32, f64 or i32.
struct Gemm {
  Region a, b, c;
  bool transpose_a = false, transpose_b = false, clear = false;
  GemmPolicy policy = GemmPolicy::kSquare;
  GemmPrecision precision = GemmPrecision::kExact;
  GemmOrientation orientation = GemmOrientation::kAuto;
  // From level Selected on: index into Target::matrix_atoms, or kNoAtom (plain arithmetic), whether
  // its rows are c's columns, and how the warps are laid over c.
  int atom = kNoAtom;
  bool swapped = false;
  int warp_rows = 0, warp_cols = 0;
  // From level Planned on, of instructions that run beside the threads: the sum stays with them
  // (see Wgmma), and behind the statement so many of its executions may be under way.
  bool trailing = false;
  int under_way = 0;
};
// dst = op over dim of src (clear), else dst = op(dst, op over dim of src). dst has src's extents
// without dim.
struct Reduce {
  ReduceOp op;
  Region src, dst;
  int dim;
  bool clear = false;
};
// Index of the largest element along dim (first one wins; NaN never wins); dst is an int tile.
struct ArgMax {
  Region src, dst;
  int dim;
};
struct CumSum {
  Region src, dst;
  int dim;
  bool reverse = false;
};  // inclusive; dst may be src
struct Finish {
  BufferId reducer;
};  // afterwards the reducer reads as a fragment
struct Atomic {
  AtomicOp op;
  Region src, dst;
};  // dst global; out-of-bounds elements dropped
// Every combination of the vars, in no particular order: iterations must not depend on each other.
// The body holds Let, Store, AtomicElement, If, serial For, Alloc of locals.
struct Parallel {
  std::vector<VarId> vars;
  std::vector<int64_t> extents;
  Block body;
  // From level Mapped on: which thread runs which iterations, where fragments in registers are
  // used.
  std::shared_ptr<const FragmentLayout> layout;
};
struct OnGroup {
  VarId var;
  int count;
  Block body;
};
// Replays the body as of `distance` iterations ago; see docs/tile-ir.md.
struct Lag {
  int distance;
  Block body;
};
struct InTurn {
  bool enabled;
  Block body;
};
struct Send {
  Region src;
  BufferId channel;
};
struct Recv {
  BufferId channel;
  Region dst;
};

// -- level Thread
enum class Team : uint8_t {
  kBlock,     // all threads of the block but its producers
  kGroup,     // of this thread's group
  kWarp,      // of this thread's warp: OnFirstThread and Barrier only
  kProducer,  // those that run OnProducer
  kEveryone,  // of the block: Barrier only
  kCluster,   // of all blocks of the cluster that have not ended: Barrier only
};
// The team's threads share the iterations 0..extent-1: thread t runs t, t+size, ... A team of one
// thread (CPU) runs all of them; the innermost such loop there is a vector loop: its iterations are
// independent.
struct ThreadFor {
  Team team;
  VarId var;
  ExprRef extent;
  Block body;
};
struct Barrier {
  Team team;
};
// Every thread runs the iterations 0..count-1 over its own registers; they are unrolled, and none
// waits for another thread.
struct SlotFor {
  VarId var;
  int64_t count;
  Block body;
};
// `count` neighbouring elements moved as one access of count * element size = 1, 2, 4, 8 or 16
// bytes, to which both places are aligned. Same dtype on both sides; local, shared or global.
struct VectorMove {
  BufferId dst;
  ExprRef dst_offset;
  BufferId src;
  ExprRef src_offset;
  int count;
  Eviction evict = Eviction::kNormal;  // of the side in global memory
};
// The same from global to shared memory, 4, 8 or 16 bytes, without waiting: the elements are there
// after the AsyncWait for the group that the next AsyncCommit closes, and a barrier. Where `inside`
// does not hold, zeros arrive and nothing is read.
struct AsyncMove {
  BufferId dst;
  ExprRef dst_offset;
  BufferId src;
  ExprRef src_offset;
  int count;
  ExprRef inside;
};
// Copies a box of a tensor to shared memory, without waiting: one thread for all. The box begins at
// element `at` (one index a dim; what lies outside of the tensor arrives as zeros), its extents and
// the order of its rows are those of Launch::boxes[box]. Its bytes count for the running phase of
// the mbarrier (Op::kExpect).
struct BulkLoad {
  int box;
  std::vector<ExprRef> at;
  BufferId dst;
  ExprRef dst_offset;
  BufferId barriers;
  ExprRef barrier;
  // Where it is not null, bit i stands for block i of the cluster: the box arrives at the same
  // place in all whose bits are set, and counts for the same mbarrier in each.
  ExprRef blocks = nullptr;
  Eviction evict = Eviction::kNormal;
};
// The same from shared memory to a tensor; what lies outside of the tensor is dropped. Belongs to
// the group of this thread's that its next BulkSync closes. The launch touches these elements in no
// other way before the thread has waited.
struct BulkStore {
  int box;
  std::vector<ExprRef> at;
  BufferId src;
  ExprRef src_offset;
  Eviction evict = Eviction::kNormal;
};
// What the thread does around its BulkStores.
struct BulkSync {
  enum class Op : uint8_t {
    kCommit,    // closes the group of the stores since the last commit
    kWaitRead,  // until at most `pending` of the newest groups have yet to read shared memory
    kWait,      // until at most `pending` of them have yet to write
  };
  Op op;
  int pending = 0;
};
// Closes the group of this thread's asynchronous copies since the last commit; empty groups count.
struct AsyncCommit {};
// Waits until at most `pending` of this thread's newest groups are under way.
struct AsyncWait {
  int pending;
};
// ldmatrix, by all lanes of a warp: `matrices` (1, 2, 4) matrices of 8 rows of 16 bytes. Lane i
// names the start of row i % 8 of matrix i / 8 (other lanes' offsets are not looked at). Lane i
// gets, of each matrix, the 4 bytes i % 4 of row i / 4, in registers dst[dst_offset],
// dst[dst_offset + 4 bytes], ... `transpose`: of 16-bit elements, elements (2*(i%4), i/4) and
// (2*(i%4)+1, i/4).
struct LoadMatrix {
  BufferId dst;  // local
  ExprRef dst_offset;
  BufferId src;  // shared
  ExprRef src_offset;
  int matrices;
  bool transpose;
};
// stmatrix: the same the other way, of 16-bit elements. Lane i's registers src[src_offset], ... go
// to where LoadMatrix would have them from.
struct StoreMatrix {
  BufferId dst;  // shared
  ExprRef dst_offset;
  BufferId src;  // local
  ExprRef src_offset;
  int matrices;
  bool transpose;
};
// c += a * b by one matrix instruction of a warp; a, b, c are local arrays, offsets in elements.
struct Mma {
  int atom;  // index into Target::matrix_atoms
  BufferId a;
  ExprRef a_offset;
  BufferId b;
  ExprRef b_offset;
  BufferId c;
  ExprRef c_offset;
};
// A matrix that instructions of four warps read where it lies, from element `offset` on: 8 rows at
// a time, each of `row_bytes` (32, 64, 128) whose 16-byte chunks are permuted (PanelsFor); those 8
// rows further along the rows are `stride` bytes away. `depth_first`: its rows run along the
// product's depth, so each holds neighbours of c's rows (columns); the next panel is `leading`
// bytes away.
struct MatrixInPlace {
  BufferId buffer = kNoId;  // shared; or a local array, which the fields below do not describe
  ExprRef offset;
  int row_bytes = 0, leading = 0, stride = 0;
  bool depth_first = false;
  int step = 0;  // bytes from one step of the product's depth to the next
};
// c (+)= a * b by `steps` instructions of four warps, one after the other along the depth, 64 x
// `n`. They run beside the threads, which may touch neither c nor a's registers before they have
// waited.
struct Wgmma {
  int atom;  // index into Target::matrix_atoms
  int n, steps;
  MatrixInPlace a, b;
  BufferId c;  // local
  ExprRef c_offset;
  bool add;  // false: what c held does not count
  // The sum stays with the instructions: from a fence that names c to a wait that does, no thread
  // touches it.
  bool trailing = false;
};
// What four warps do around such instructions. A wait may stand at level Planned.
struct WgmmaSync {
  enum class Op : uint8_t {
    kFence,   // registers are as the instructions that follow shall find them
    kCommit,  // closes the group of the instructions since the last commit
    kWait,    // until at most `pending` of the newest groups are under way
  };
  Op op;
  // The registers that it is about, which the thread has set or will read; kNoId: none.
  BufferId c;
  int pending = 0;
};
// What this thread has written to shared memory is there for instructions that read it in place,
// and for copies of boxes, once a barrier has been passed.
struct ProxyFence {};
// var = `value` of the lane whose number differs in the bits of `mask`; all lanes of a warp.
struct LaneExchange {
  VarId var;
  ExprRef value;
  int mask;
};
// Runs on the first thread of every team only.
struct OnFirstThread {
  Team team;
  Block body;
};
// Blocks until channel `channel` has a free slot / a message for this group, and steps the ring:
// between Acquire and Release the Thread code addresses the slot by `slot` (a fresh var, int).
struct ChannelAcquire {
  BufferId channel;
  bool send;
  VarId slot;
};
struct ChannelRelease {
  BufferId channel;
  bool send;
};
// Runs on the launch's producers (Launch::producers), which do nothing else but what stands before
// it; all other threads go on behind it. In the launch's own body, once. Names may be defined in it
// and behind it.
struct OnProducer {
  Block body;
};
// An mbarrier counts arrivals; as many as it was made for end a phase. Phases are numbered from 0,
// their parity is the number's last bit. What a thread did before it arrived, and what its team did
// before the barrier in front of that, has happened for whoever has waited for the phase.
struct Mbarrier {
  enum class Op : uint8_t {
    kInit,    // `value`: arrivals of a phase
    kArrive,  // no value; level Planned: each warp once
    kExpect,  // arrives; the phase does not end before `value` bytes more have been copied
    kWait,    // until the phase of parity `value` has ended; the one before the first has
  };
  Op op;
  BufferId barriers;  // role kMbarriers
  ExprRef index;
  ExprRef value;
  // kArrive: at the mbarrier of that block of the cluster, which must not have ended; null: of this
  // block.
  ExprRef block = nullptr;
};
// The mbarriers that this thread has made are there for the whole cluster, and for copies of boxes,
// once a barrier of the cluster has been passed.
struct MbarrierFence {};

struct Stmt {
  using Node = std::variant<Let, Assign, Alloc, Store, AtomicElement, For, If, Turn, Copy, Fill,
                            Gemm, Reduce, ArgMax, CumSum, Finish, Atomic, Parallel, OnGroup, Lag,
                            InTurn, Send, Recv, ThreadFor, Barrier, OnFirstThread, ChannelAcquire,
                            ChannelRelease, SlotFor, VectorMove, AsyncMove, AsyncCommit, AsyncWait,
                            LoadMatrix, Mma, Wgmma, WgmmaSync, ProxyFence, LaneExchange, Mbarrier,
                            BulkLoad, OnProducer, MbarrierFence, StoreMatrix, BulkStore, BulkSync>;
  Node node;
  Span span;
  int id = 0;  // number of the statement in program order, from 1; 0: made by a pass
};

template <typename T>
const T* As(const StmtRef& s) {
  return std::get_if<T>(&s->node);
}

template <typename T>
StmtRef MakeStmt(T node, Span span = {}, int id = 0) {
  return std::make_shared<const Stmt>(Stmt{std::move(node), span, id});
}

// ---- Launches --------------------------------------------------------------------------------

struct GridAxis {
  VarId var;
  ExprRef extent;
};

// `segment (item, begin, end, part, whole) in split(item in items: count, parts)`: the
// concatenation of items' count(item) units is cut into `parts` nearly equal runs (run p is units
// [p*total/parts, (p+1)*total/parts)); block p walks the pieces of its run in order. A piece covers
// units [begin, end) of `item`; its workspace slot is part = item + p, unique and below items +
// parts; `whole` says that it is all of the item. Items with count <= 0 have no piece.
struct SplitAxis {
  VarId item, begin, end, part, whole;
  ExprRef items;  // number of items
  ExprRef count;  // of var `item`; may load from global int tensors
  ExprRef parts;  // number of runs, >= 1
};

// Windows of a tensor that bulk copies move, an argument of the entry: how many elements along
// each of its dims, and the bytes of a row of the tile, by which its chunks are permuted
// (PanelsFor).
struct TensorBox {
  int tensor;  // index into Module::operands; behind those count the workspaces
  std::vector<int64_t> extents;
  int row_bytes;
  // 1, or 0 where the tensor of this launch cannot be described: its start or a stride is no
  // multiple of 16 bytes.
  VarId usable = kNoId;
  bool operator==(const TensorBox&) const = default;
};

enum class Order : uint8_t { kRow, kCol, kLongest };
enum class Producer : uint8_t { kAuto, kWarp, kSelf };
// Who works on a tile of a persistent launch: all groups of a block, or one of them while the
// others work on theirs.
enum class Owner : uint8_t { kBlock, kGroup };
// How tiles leave for tensors: by threads, or in boxes where that is possible.
enum class Stores : uint8_t { kAuto, kThreads, kBulk };

struct Launch {
  std::vector<GridAxis> axes;      // axis 0 varies fastest
  std::optional<SplitAxis> split;  // slowest axis: its extent is split->parts
  bool persistent = false;
  Owner owner = Owner::kBlock;
  int groups = 1;
  int threads = 0;  // of a group; 0: the target decides
  int blocks = 1;   // that a multiprocessor holds at once, at least: what registers are shared by
  Order order = Order::kRow;
  int panel = 0;          // `order=row(8)`: tiles per panel; 0: plain
  VarId longest = kNoId;  // order=longest(m)
  Producer producer = Producer::kAuto;
  Stores stores = Stores::kAuto;  // auto: by threads
  // Blocks along each axis that run together; empty: none. The first passes keep it where the
  // target has clusters, and plan_pipelines where it is of use.
  std::vector<int> cluster;
  // From level Planned on: threads behind those of the groups, which run OnProducer; and registers
  // of each of them and of each other thread, where they differ, else 0.
  int producers = 0;
  int producer_registers = 0, registers = 0;
  std::vector<TensorBox> boxes;  // level Thread: of BulkLoads and BulkStores
  int64_t arena_bytes = 0;       // level Thread: shared memory (scratch on a CPU) of one block
  // Level Thread: index of the block in the one-dimensional grid; `axes` are decoded from it by
  // Lets. Of persistent launches it is a Let itself (from expand_persistent on): each of `grid`
  // blocks, of number `resident`, goes through every grid-th one.
  VarId block = kNoId;
  VarId resident = kNoId, grid = kNoId;
  // Of groups that own tiles, a bool (from expand_persistent on): is the present tile this group's?
  VarId owns = kNoId;
  VarId rank = kNoId;          // of the block in its cluster; axis 0 varies fastest
  VarId thread = kNoId;        // index in the block, all groups
  VarId group = kNoId;         // thread / threads-per-group
  VarId group_thread = kNoId;  // thread % threads-per-group
  Block body;
  Span span;

  int cluster_size() const {  // blocks
    int blocks = 1;
    for (int n : cluster) blocks *= n;
    return blocks;
  }
};

// ---- Inputs ----------------------------------------------------------------------------------

// What a valid input holds; checks, benchmarks and tuning generate from it. Default: floats uniform
// in [-1, 1], ints uniform in [0, 8], bools fair.
enum class InitKind : uint8_t {
  kUniform,      // lo, hi; ints inclusive
  kNormal,       // mean, deviation
  kConstant,     // value
  kOffsets,      // total: sorted along the last dim, first 0, last total
  kPermutation,  // of 0..n-1 along the last dim (n = extent)
  kPages,        // n: distinct page numbers below n
};
struct InitClause {
  BufferId buffer = kNoId;  // or
  VarId scalar = kNoId;
  InitKind kind;
  std::vector<ExprRef> args;
  Span span;
};

// ---- Module ----------------------------------------------------------------------------------

struct BoundParam {
  std::string name;
  std::string value;
  bool tuned;
};

struct Module {
  std::string name;
  Level level = Level::kTile;
  std::vector<Var> vars;
  std::vector<Buffer> buffers;

  // The signature, each in declaration order. Dims that were given values at compile time are
  // literals and do not appear.
  std::vector<VarId> dims;
  std::vector<VarId> strides;
  std::vector<VarId> scalars;
  std::vector<BufferId> operands;    // in, out, inout
  std::vector<BufferId> workspaces;  // laid out one after the other, each aligned to 256 bytes

  std::vector<BoundParam> params;  // parameters and tune choices, for reports
  std::vector<InitClause> inits;
  std::vector<Launch> launches;

  // What the passes chose and what they could not do, one line each, for the report.
  std::vector<std::string> notes;

  const Var& var(VarId id) const { return vars[id]; }
  const Buffer& buffer(BufferId id) const { return buffers[id]; }

  VarId AddVar(std::string name, ScalarType type, VarRole role, Span span = {});
  BufferId AddBuffer(Buffer buffer);
};

}  // namespace tl

#endif  // TILEJIT_IR_MODULE_H_
