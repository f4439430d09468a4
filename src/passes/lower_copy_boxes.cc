// Copies that one thread starts for all: boxes of a tensor, into and from tiles whose rows lie in
// panels.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "passes/lowering.h"

namespace tl {
namespace {

constexpr int64_t kMostRows = 256;  // of one box

// Chunks are permuted by 8 rows: a box holds whole ones.
int64_t RowsOf(int64_t rows) {
  int64_t parts = 1;
  while (rows / parts > kMostRows || rows % (parts * 8) != 0) ++parts;
  return rows / parts;
}

int ArgumentOf(const Module& m, BufferId tensor) {
  const auto operand = std::find(m.operands.begin(), m.operands.end(), tensor);
  if (operand != m.operands.end()) return static_cast<int>(operand - m.operands.begin());
  const auto workspace = std::find(m.workspaces.begin(), m.workspaces.end(), tensor);
  return static_cast<int>(m.operands.size()) + static_cast<int>(workspace - m.workspaces.begin());
}

// Does a map describe the tensor at every launch? Workspaces begin at multiples of 256 bytes.
bool IsAlwaysUsable(const Lowering& l, const Buffer& tensor) {
  constexpr int64_t kAlignment = 16;
  const auto size = static_cast<int64_t>(SizeOf(tensor.dtype));
  return tensor.role == BufferRole::kWorkspace &&
         std::all_of(tensor.strides.begin(), tensor.strides.end() - 1, [&](const ExprRef& stride) {
           return l.DivisorOf(stride) * size % kAlignment == 0;
         });
}

// A copy's side in global memory, and its tile.
struct Sides {
  Region tensor, tile;
  ExprRef rows;  // may be null
  bool load;
  unsigned together = 0;  // Copy::together
  Eviction evict = Eviction::kNormal;
};

Sides SidesOf(const Lowering& l, const Copy& copy) {
  if (l.IsGlobal(copy.src)) {
    return {copy.src, copy.dst, copy.rows, true, copy.together, copy.evict};
  }
  return {copy.dst, copy.src, copy.rows, false, 0, copy.evict};
}

// Where no map does, what then? Empty: one always does.
std::string Otherwise(Lowering& l, const Sides& sides, bool always) {
  if (always) return "";
  const Module& m = l.module();
  const bool stand_in = absl::c_any_of(m.workspaces, [&](BufferId workspace) {
    return m.buffer(workspace).stands_for == sides.tensor.buffer;
  });
  return absl::StrCat(sides.rows ? "; otherwise where rows are left out" : "",
                      "; element by element where it does not start at a multiple of 16 bytes",
                      stand_in ? "" : ", or its strides are no multiples of that");
}

struct Boxes {
  int box;
  int64_t rows, cols;  // of one
  // Of the tile, those that this block loads: its share of what blocks load together.
  int sharers;
  int64_t share;   // rows
  ExprRef first;   // row
  ExprRef blocks;  // BulkLoad::blocks
};

// The part of the cluster, by rank, that differs from this block along `axes` only; bit 0 is this
// block, or the first of them.
int64_t MaskAlong(const Launch& launch, unsigned axes) {
  int64_t mask = 1;
  for (size_t i = 0, stride = 1; i < launch.cluster.size(); stride *= launch.cluster[i++]) {
    const int64_t one = mask;
    for (int n = 1; (axes >> i & 1) && n < launch.cluster[i]; ++n) mask |= one << (n * stride);
  }
  return mask;
}

// Who shares what with whom.
void Share(Lowering& l, const Sides& sides, Boxes& b) {
  const Launch& launch = l.launch();
  b.first = MakeInt(0);
  ExprRef others = MakeInt(0);  // rank of the first that shares with this block
  int64_t stride = 1;
  for (size_t i = 0; i < launch.cluster.size(); stride *= launch.cluster[i++]) {
    if (launch.cluster[i] == 1) continue;
    const ExprRef place = l.PlaceInCluster(static_cast<int>(i));
    if (sides.together >> i & 1) {
      b.first = Add(std::move(b.first), Mul(place, MakeInt(b.sharers)));
      b.sharers *= launch.cluster[i];
    } else {
      others = Add(std::move(others), Mul(place, MakeInt(stride)));
    }
  }
  b.share = sides.tile.extents[0] / b.sharers;
  b.first = l.Named("row", Mul(std::move(b.first), MakeInt(b.share)));
  b.blocks = l.Named(
      "blocks",
      MakeBinary(BinaryOp::kShl, MakeInt(MaskAlong(launch, sides.together)), std::move(others)));
}

Boxes BoxesOf(Lowering& l, const Sides& sides) {
  const Buffer &tensor = l.buffer(sides.tensor.buffer), &tile = l.buffer(sides.tile.buffer);
  Boxes b{0, 0, tile.PanelElements(), 1, sides.tile.extents[0], MakeInt(0), nullptr};
  if (sides.together != 0) Share(l, sides, b);
  b.rows = RowsOf(b.share);
  TensorBox box{ArgumentOf(l.module(), sides.tensor.buffer),
                std::vector<int64_t>(static_cast<size_t>(tensor.rank()), 1),
                static_cast<int>(b.cols * static_cast<int64_t>(SizeOf(tile.dtype)))};
  box.extents[sides.tensor.dims[0]] = b.rows;
  box.extents[sides.tensor.dims[1]] = b.cols;
  b.box = l.Box(std::move(box));
  return b;
}

int64_t BytesOf(const Lowering& l, const Copy& copy) {
  return copy.dst.num_elements() * static_cast<int64_t>(SizeOf(l.buffer(copy.dst.buffer).dtype));
}

// `body`: where a box begins in the tensor, and in the tile.
void ForEachBox(const Lowering& l, const Sides& sides, const Boxes& boxes,
                absl::FunctionRef<void(Coords, ExprRef)> body) {
  const Region& tile = sides.tile;
  for (int64_t col = 0; col < tile.extents[1]; col += boxes.cols) {
    for (int64_t row = 0; row < boxes.share; row += boxes.rows) {
      const Coords at{Add(boxes.first, MakeInt(row)), MakeInt(col)};
      const PanelOffset place = OffsetInPanels(l.buffer(tile.buffer), Lowering::Index(tile, at));
      const ExprRef group = l.GroupOffset(tile.buffer);
      body(Lowering::Index(sides.tensor, at), Add(group, Add(place.row, place.col)));
    }
  }
}

void LoadBoxes(Lowering& l, const Copy& copy, const Boxes& boxes) {
  ForEachBox(l, SidesOf(l, copy), boxes, [&](Coords at, ExprRef offset) {
    l.Emit(BulkLoad{boxes.box, std::move(at), copy.dst.buffer, std::move(offset), copy.barriers,
                    copy.barrier, boxes.blocks, copy.evict});
  });
}

// `serve`, and boxes move what the copy does.
ExprRef AndServe(Lowering& l, ExprRef serve, const Sides& sides, const Boxes& boxes) {
  const bool always = !sides.rows && IsAlwaysUsable(l, l.buffer(sides.tensor.buffer));
  NoteCopy(
      l, sides.tensor, sides.load,
      absl::StrCat("boxes of ", boxes.rows, " x ", boxes.cols,
                   boxes.sharers > 1 ? absl::StrCat(", shared by ", boxes.sharers, " blocks") : "",
                   Evicted(sides.evict), Otherwise(l, sides, always)));
  if (always) return serve;
  serve = And(std::move(serve), MakeBinary(BinaryOp::kEq, l.IsUsable(boxes.box), MakeInt(1)));
  if (!sides.rows) return serve;
  // A box moves what lies behind the last row, too.
  return And(std::move(serve),
             MakeBinary(BinaryOp::kGe, sides.rows, MakeInt(sides.tile.extents[0])));
}

void OnFirst(Lowering& l, absl::FunctionRef<void()> body) {
  Block block = l.Capture(body);
  l.Emit(OnFirstThread{l.team(), std::move(block)});
}

// One thread waits for the slot of boxes. Threads that compute come after it by what they wait for
// themselves, producers by nothing: where the next slot may be filled by all of them, they meet.
void KeepInStep(Lowering& l, const std::vector<Copy>& copies) {
  const auto may_differ = [](const Copy& copy) { return copy.rows != nullptr; };
  if (l.team() == Team::kProducer && absl::c_any_of(copies, may_differ)) {
    l.Emit(Barrier{l.team()});
  }
}

}  // namespace

void CopyBoxes(Lowering& l, const std::vector<Copy>& copies, const StmtRef& acquire) {
  ExprRef serve = MakeBool(true);
  std::vector<Boxes> boxes;
  int64_t bytes = 0;
  for (const Copy& copy : copies) {
    const Sides sides = SidesOf(l, copy);
    boxes.push_back(BoxesOf(l, sides));
    serve = AndServe(l, std::move(serve), sides, boxes.back());
    bytes += BytesOf(l, copy);
  }
  const BufferId barriers = copies[0].barriers;
  const ExprRef& barrier = copies[0].barrier;
  l.EmitIfElse(
      serve,
      [&] {
        OnFirst(l, [&] {
          if (acquire) l.Emit(acquire);
          l.Emit(Mbarrier{Mbarrier::Op::kExpect, barriers, barrier, MakeInt(bytes)});
          for (size_t i = 0; i < copies.size(); ++i) LoadBoxes(l, copies[i], boxes[i]);
        });
        KeepInStep(l, copies);
      },
      [&] {
        if (acquire) l.Emit(acquire);
        for (const Copy& copy : copies) CopyWithoutBoxes(l, copy);
        l.Emit(ProxyFence{});
        l.Emit(Barrier{l.team()});
        OnFirst(l, [&] { l.Emit(Mbarrier{Mbarrier::Op::kArrive, barriers, barrier, nullptr}); });
      });
}

bool MayLeaveInBoxes(Lowering& l, const Region& tensor, std::string_view why) {
  if (!why.empty()) NoteCopy(l, tensor, false, absl::StrCat("not in boxes: ", why));
  return why.empty();
}

// Waits for its reading and writing are placed by AwaitStores.
void StoreBoxes(Lowering& l, const Copy& copy) {
  const Sides sides = SidesOf(l, copy);
  const Boxes boxes = BoxesOf(l, sides);
  // One for both ways: all have written their part.
  l.Emit(Barrier{l.team()});
  const auto store = [&] {
    OnFirst(l, [&] {
      if (l.stores().Repeats(copy.dst.buffer)) l.Emit(BulkSync{BulkSync::Op::kWait});
      ForEachBox(l, sides, boxes, [&](Coords at, ExprRef offset) {
        l.Emit(BulkStore{boxes.box, std::move(at), copy.src.buffer, std::move(offset), copy.evict});
      });
      l.Emit(BulkSync{BulkSync::Op::kCommit});
    });
  };
  l.EmitIfElse(AndServe(l, MakeBool(true), sides, boxes), store,
               [&] { CopyWithoutBoxes(l, copy); });
}

}  // namespace tl
