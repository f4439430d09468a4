#include "passes/lower_tiles.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/visit.h"
#include "passes/lowering.h"
#include "passes/select_atoms.h"

namespace tl {
namespace {

class LaunchLowering {
 public:
  LaunchLowering(Module& module, const Target& target, Launch& launch, bool may_stage)
      : module_(module), target_(target), launch_(launch), l_(module, target, launch, may_stage) {}

  Status Run() {
    if (!persistent()) launch_.block = AddIndex("block");
    if (!launch_.cluster.empty()) {
      launch_.rank = AddIndex("rank");
      l_.intervals().Set(launch_.rank, {0, launch_.cluster_size() - 1});
    }
    launch_.thread = AddIndex("thread");
    launch_.group = AddIndex("group");
    launch_.group_thread = AddIndex("group_thread");
    Block body = l_.Capture([&] {
      if (!persistent()) DecodeAxes();
      if (UsesRegisters(target_, launch_)) l_.NameThread();
      LowerBlock(launch_.body);
    });
    l_.InsertAtStart(body);
    launch_.boxes = l_.boxes();
    launch_.body = std::move(body);
    for (BufferId id : l_.private_tiles()) {
      std::vector<int64_t>& extents = module_.buffers[id].extents;
      extents.insert(extents.begin(), launch_.groups);
    }
    return status_;
  }

 private:
  bool persistent() const { return launch_.resident != kNoId; }
  VarId AddIndex(std::string name) {
    return module_.AddVar(std::move(name), ScalarType::kInt, VarRole::kThread, launch_.span);
  }

  // Along an axis: `extent` of what the grid consists of, which are blocks, or clusters of them.
  struct Tiles {
    VarId var;
    ExprRef extent;
    ExprRef within;  // place of the block in its cluster; null: there is one along this axis
    int blocks = 1;
  };
  Tiles TilesOf(size_t i) {
    const GridAxis& axis = launch_.axes[i];
    const int blocks = launch_.cluster.empty() ? 1 : launch_.cluster[i];
    if (blocks == 1) return {axis.var, axis.extent, nullptr};
    return {axis.var, Div(axis.extent, blocks), l_.PlaceInCluster(static_cast<int>(i)), blocks};
  }
  // Number of the block, or of its cluster.
  ExprRef FlatIndex() {
    const ExprRef block = l_.Read(launch_.block);
    return launch_.cluster.empty() ? block
                                   : l_.Named("cluster", Div(block, launch_.cluster_size()));
  }
  void EmitAxis(const Tiles& tiles, ExprRef index) {
    if (tiles.within) index = Add(Mul(std::move(index), MakeInt(tiles.blocks)), tiles.within);
    l_.Emit(Let{tiles.var, std::move(index)});
  }

  // `order=row(8)`: panels of 8 rows of tiles, within a panel down the columns, so that blocks that
  // run at the same time share rows and columns of tiles.
  bool DecodePanels() {
    if (launch_.panel <= 1 || launch_.axes.size() != 2 || launch_.order == Order::kLongest) {
      return false;
    }
    const bool rows = launch_.order == Order::kRow;
    const Tiles along = TilesOf(rows ? 0 : 1), across = TilesOf(rows ? 1 : 0);
    const auto op = [](BinaryOp o, ExprRef x, ExprRef y) { return MakeBinary(o, x, y); };
    const ExprRef panel = MakeInt(launch_.panel);
    const ExprRef block = FlatIndex(), tiles = Mul(panel, along.extent);
    const ExprRef first = l_.Named("panel", Mul(op(BinaryOp::kDiv, block, tiles), panel));
    const ExprRef rest = l_.Named("rest", op(BinaryOp::kMod, block, tiles));
    // The last panel may be narrower, but blocks only exist where there is a tile.
    const int64_t* tiles_across = IntValue(across.extent);
    const bool even = tiles_across && *tiles_across % launch_.panel == 0;
    const ExprRef left = Max(Sub(across.extent, first), MakeInt(1));
    const ExprRef height = even ? panel : l_.Named("height", Min(panel, left));
    for (const GridAxis& axis : launch_.axes) {
      l_.intervals().SetLoop(module_, axis.var, MakeInt(0), axis.extent);
    }
    EmitAxis(across, Add(first, op(BinaryOp::kMod, rest, height)));
    EmitAxis(along, op(BinaryOp::kDiv, rest, height));
    return true;
  }

  // The axes' order in the one-dimensional grid: the first varies fastest. Blocks begin in the
  // order of their numbers: `order=longest(m)` gives the large m the small ones.
  void DecodeAxes() {
    if (DecodePanels()) return;
    ExprRef rest = FlatIndex();
    for (size_t i = 0; i < launch_.axes.size(); ++i) {
      const GridAxis& axis = launch_.axes[i];
      const Tiles tiles = TilesOf(i);
      const bool last = i + 1 == launch_.axes.size();
      ExprRef index = last ? rest : MakeBinary(BinaryOp::kMod, rest, tiles.extent);
      if (!last) rest = MakeBinary(BinaryOp::kDiv, rest, tiles.extent);
      l_.intervals().SetLoop(module_, axis.var, MakeInt(0), axis.extent);
      l_.SetLimit(axis.var, axis.extent);
      if (launch_.order == Order::kLongest && axis.var == launch_.longest) {
        index = Sub(Sub(tiles.extent, MakeInt(1)), l_.Named("rank", std::move(index)));
      }
      EmitAxis(tiles, std::move(index));
    }
  }

  // Of a persistent block.
  void LowerBlockIndex(const StmtRef& s) {
    ExprRef tiles = MakeInt(1);
    for (const GridAxis& axis : launch_.axes) tiles = Mul(tiles, axis.extent);
    LowerElementStmt(l_, s);
    l_.intervals().SetLoop(module_, launch_.block, MakeInt(0), tiles);
    DecodeAxes();
  }

  void LowerOnProducer(const OnProducer& x) {
    Block body = l_.Capture([&] {
      l_.EnterProducer();
      LowerBlock(x.body);
      l_.LeaveProducer();
    });
    l_.Emit(OnProducer{std::move(body)});
  }

  void LowerBlock(const Block& block) {
    const EarlyCopies copies = FindEarlyCopies(block);
    for (size_t i = 0; i < block.size(); ++i) {
      if (i == copies.begin && i < copies.end) {
        l_.Defer([&] { LowerRange(block, copies.begin, copies.end); });
        i = copies.end;
      }
      const size_t end = EndOfBoxes(block, i);
      LowerRange(block, i, end);
      i = end - 1;
      if (i == copies.product) l_.EmitDeferred();
    }
  }

  // Copies by boxes to one slot, with the names that they need, are one piece of work.
  static size_t EndOfBoxes(const Block& block, size_t begin) {
    size_t end = begin + 1;
    const Copy* first = As<Copy>(block[begin]);
    if (!first || first->barriers == kNoId) return end;
    for (size_t i = end; i < block.size(); ++i) {
      const Copy* copy = As<Copy>(block[i]);
      const bool joins =
          copy && copy->barriers == first->barriers && Equal(copy->barrier, first->barrier);
      if (joins) end = i + 1;
      if (!joins && !As<Let>(block[i])) break;
    }
    return end;
  }

  // Who asks for boxes alone waits for their slot: nothing would keep the others in step, and who
  // sees neither end of two phases in a row waits for good.
  static bool WaitsForBoxes(const Block& block, size_t at) {
    const Mbarrier* wait = As<Mbarrier>(block[at]);
    if (!wait || wait->op != Mbarrier::Op::kWait) return false;
    size_t next = at + 1;
    while (next < block.size() && As<Let>(block[next])) ++next;
    return next < block.size() && As<Copy>(block[next]) && As<Copy>(block[next])->barriers != kNoId;
  }

  void LowerRange(const Block& block, size_t begin, size_t end) {
    std::vector<Copy> boxes;  // that arrive together
    for (size_t i = begin; i < end; ++i) {
      l_.At(*block[i]);
      const Copy* copy = As<Copy>(block[i]);
      if (WaitsForBoxes(block, i)) {
        acquire_ = block[i];
        continue;
      }
      if (!copy || copy->barriers == kNoId) {
        LowerStmt(block[i]);
        continue;
      }
      boxes.push_back(PreparedCopy(l_, *copy));
      if (i + 1 == EndOfBoxes(block, i)) {
        CopyBoxes(l_, std::exchange(boxes, {}), std::exchange(acquire_, nullptr));
      }
    }
  }

  // In the body of a planned loop: the statements [begin, end) that issue the copies of a later
  // iteration, and the product that they may move into.
  struct EarlyCopies {
    size_t begin = 0, end = 0, product = SIZE_MAX;
  };
  static EarlyCopies FindEarlyCopies(const Block& block) {
    const auto find = [&](auto is, size_t from) {
      while (from < block.size() && !is(block[from])) ++from;
      return from;
    };
    EarlyCopies found;
    found.begin = find(IssuesCopies, find(AwaitsCopies, 0));
    // Up to the step of the slot that is filled.
    found.end = found.begin + 1;
    while (found.end < block.size() &&
           (As<AsyncCommit>(block[found.end]) || As<Assign>(block[found.end])))
      ++found.end;
    // What runs in between must not count groups of copies itself, nor wait within a turn.
    const auto stops = [](const StmtRef& s) {
      return As<Gemm>(s) || As<For>(s) || As<If>(s) || As<Turn>(s);
    };
    found.product = find(stops, found.end);
    const bool product = found.product < block.size() && As<Gemm>(block[found.product]);
    return product ? found : EarlyCopies{};
  }
  static bool AwaitsCopies(const StmtRef& s) {
    const Mbarrier* m = As<Mbarrier>(s);
    return As<AsyncWait>(s) || (m && m->op == Mbarrier::Op::kWait);
  }
  static bool IssuesCopies(const StmtRef& root) {
    bool found = false;
    VisitStmts({root},
               [&](const StmtRef& s) { found = found || (As<Copy>(s) && As<Copy>(s)->async); });
    return found && As<If>(root);
  }

  void LowerStmt(const StmtRef& s) {
    if (const Let* x = As<Let>(s); x && x->var == launch_.block) return LowerBlockIndex(s);
    if (const OnProducer* x = As<OnProducer>(s)) return LowerOnProducer(*x);
    if (const Copy* x = As<Copy>(s)) return LowerCopy(l_, *x);
    if (const Fill* x = As<Fill>(s)) return LowerFill(l_, *x);
    if (const Gemm* x = As<Gemm>(s)) return LowerGemm(l_, *x);
    if (const Reduce* x = As<Reduce>(s)) return LowerReduce(l_, *x);
    if (const ArgMax* x = As<ArgMax>(s)) return LowerArgMax(l_, *x);
    if (const CumSum* x = As<CumSum>(s)) return LowerCumSum(l_, *x);
    if (const Atomic* x = As<Atomic>(s)) return LowerAtomic(l_, *x);
    if (const Parallel* x = As<Parallel>(s)) return LowerParallel(l_, *x);
    if (const Send* x = As<Send>(s)) return Keep(LowerSend(l_, *x, s->span));
    if (const Recv* x = As<Recv>(s)) return Keep(LowerRecv(l_, *x, s->span));
    if (const OnGroup* x = As<OnGroup>(s)) return LowerOnGroup(s, *x);
    if (const Alloc* x = As<Alloc>(s)) return LowerAlloc(*x);
    if (const For* x = As<For>(s)) return LowerFor(s, *x);
    if (const If* x = As<If>(s)) return LowerIf(s, *x);
    if (const Mbarrier* x = As<Mbarrier>(s); x && x->op == Mbarrier::Op::kArrive) {
      return l_.Emit(OnFirstThread{Team::kWarp, {s}});
    }
    if (As<Barrier>(s) || As<AsyncCommit>(s) || As<AsyncWait>(s) || As<Mbarrier>(s) ||
        As<ProxyFence>(s) || As<MbarrierFence>(s) || As<Turn>(s)) {
      return l_.Emit(s);
    }
    if (const WgmmaSync* x = As<WgmmaSync>(s)) {
      if (l_.LayoutOf(x->c)) l_.Emit(s);
      return;
    }
    if (const Finish* x = As<Finish>(s)) return FinishReducer(l_, x->reducer);
    if (ChangesMemory(s) && l_.cooperative()) {
      Block body = l_.Capture([&] { l_.Apart([&] { LowerElementStmt(l_, s); }); });
      return l_.Emit(OnFirstThread{l_.team(), std::move(body)});
    }
    LowerElementStmt(l_, s);  // Let, Assign, stores to local arrays: every thread for itself
  }

  // A side effect that must happen once per block.
  bool ChangesMemory(const StmtRef& s) const {
    if (As<AtomicElement>(s)) return true;
    const Store* store = As<Store>(s);
    return store && module_.buffer(store->buffer).scope != Scope::kLocal;
  }

  void LowerAlloc(const Alloc& alloc) {
    const Buffer& b = module_.buffer(alloc.buffer);
    const bool is_private =
        l_.in_group() && !b.layout &&
        (b.scope == Scope::kFragment || (b.scope == Scope::kShared && launch_.owns != kNoId));
    if (is_private) l_.MakePrivate(alloc.buffer);
    if (b.layout) {
      Buffer& tile = module_.buffers[alloc.buffer];
      tile.scope = Scope::kLocal;
      tile.extents = {tile.layout->slots()};
    }
    l_.Emit(alloc);
    if (b.role == BufferRole::kMbarriers) return MakeMbarriers(alloc.buffer, b);
    if (b.role != BufferRole::kReducer) return;
    LowerFill(l_, {l_.Whole(alloc.buffer), IdentityOf(b.reduce_op, b.dtype)});
  }

  void MakeMbarriers(BufferId id, const Buffer& b) {
    Block body = l_.Capture([&] {
      for (int64_t i = 0; i < b.num_elements(); ++i) {
        l_.Emit(Mbarrier{Mbarrier::Op::kInit, id, MakeInt(i), MakeInt(b.arrivals)});
      }
    });
    l_.Emit(OnFirstThread{Team::kBlock, std::move(body)});
  }

  void LowerFor(const StmtRef& s, const For& loop) {
    For out{loop.kind == LoopKind::kUnrolled ? loop.kind : LoopKind::kSerial, loop.var,
            l_.Fixed("begin", l_.Lowered(loop.begin)), l_.Fixed("end", l_.Lowered(loop.end)),
            loop.down};
    out.partition = loop.partition;
    l_.intervals().SetLoop(module_, out.var, out.begin, out.end);
    out.body = l_.Capture([&] { LowerBlock(loop.body); });
    l_.At(*s);
    l_.Emit(std::move(out));
  }

  void LowerIf(const StmtRef& s, const If& branch) {
    If out{l_.Lowered(branch.cond)};
    out.then_body = l_.Capture([&] { LowerBlock(branch.then_body); });
    out.else_body = l_.Capture([&] { LowerBlock(branch.else_body); });
    l_.At(*s);
    l_.Emit(std::move(out));
  }

  // Where groups cannot run side by side they run one after the other: only channels could tell.
  void LowerOnGroup(const StmtRef& s, const OnGroup& on) {
    l_.intervals().Set(on.var, {0, on.count - 1});
    if (!l_.cooperative()) {
      Block body = l_.Capture([&] { LowerBlock(on.body); });
      l_.At(*s);
      return l_.Emit(
          For{LoopKind::kSerial, on.var, MakeInt(0), MakeInt(on.count), false, 1, std::move(body)});
    }
    l_.EnterGroup(launch_.group);
    Block body = l_.Capture([&] { LowerBlock(on.body); });
    l_.LeaveGroup();
    l_.At(*s);
    l_.Emit(OnGroup{on.var, on.count, std::move(body)});
  }

  void Keep(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  Module& module_;
  const Target& target_;
  Launch& launch_;
  Lowering l_;
  StmtRef acquire_;  // of the boxes that come next
  Status status_;
};

}  // namespace

Status LowerTiles(Module& module, const Target& target, bool may_stage) {
  for (Launch& launch : module.launches) {
    TL_RETURN_IF_ERROR(LaunchLowering(module, target, launch, may_stage).Run());
  }
  module.level = Level::kThread;
  return absl::OkStatus();
}

}  // namespace tl
