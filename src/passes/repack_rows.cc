#include "passes/repack_rows.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/product.h"

namespace tl {
namespace {

constexpr int64_t kBoxAlignment = 16;   // bytes
constexpr int64_t kRowAlignment = 128;  // bytes; at 16 or 32 boxes arrive a third slower
constexpr int kThreads = 256;
constexpr int64_t kTileElements = 2048;  // one vector a thread
constexpr int64_t kTileColumns = 512;

using Buffers = absl::flat_hash_set<BufferId>;

// The bytes behind the last place in a row where a box can start.
ExprRef OddBytes(const Buffer& tensor) {
  const ExprRef size = MakeInt(static_cast<int64_t>(SizeOf(tensor.dtype)));
  return MakeBinary(BinaryOp::kMod,
                    MakeBinary(BinaryOp::kMul, tensor.strides[tensor.rank() - 2], size),
                    MakeInt(kBoxAlignment));
}

// Is there, or may there be, a row that starts where no box can? That may be is of use for
// contiguous tensors alone: dynamic strides have no name.
bool MayHaveOddRows(const Buffer& tensor) {
  if (tensor.role != BufferRole::kIn || !tensor.packed.empty()) return false;
  if (tensor.rank() < 2 || !IsInt(tensor.strides.back(), 1)) return false;
  const ExprRef odd = OddBytes(tensor);
  if (const int64_t* bytes = IntValue(odd)) return *bytes != 0;
  return Equal(tensor.strides[tensor.rank() - 2], tensor.shape.back());
}

// Has the target instructions for the product that read shared tiles where they lie? Others' tiles
// do not come as boxes.
bool IsInPlace(const Module& m, const Target& target, const Gemm& g) {
  const DType a = m.buffer(g.a.buffer).dtype, b = m.buffer(g.b.buffer).dtype;
  return absl::c_any_of(target.matrix_atoms, [&](const MatrixAtom& atom) {
    return atom.in_place() && Permits(g, atom) && atom.a == a && atom.b == b;
  });
}

Buffers FactorsOfProducts(const Module& m, const Target& target, const Block& body) {
  Buffers factors;
  VisitStmts(body, [&](const StmtRef& s) {
    const Gemm* g = As<Gemm>(s);
    if (g && IsInPlace(m, target, *g)) factors.insert({g->a.buffer, g->b.buffer});
  });
  return factors;
}

// Rows of the tensor to a shared tile that products read, at places that memory has no say in: of a
// table of pages a launch may read a part alone.
bool WouldBeBox(const Module& m, const Copy& copy, const Buffers& factors) {
  const Buffer &tensor = m.buffer(copy.src.buffer), &tile = m.buffer(copy.dst.buffer);
  const Region& r = copy.src;
  return tile.scope == Scope::kShared && factors.contains(copy.dst.buffer) &&
         tensor.scope == Scope::kGlobal && tensor.dtype == tile.dtype && MayHaveOddRows(tensor) &&
         !copy.rows && !copy.transpose && r.rank() == 2 && r.dims[1] == tensor.rank() - 1 &&
         absl::c_none_of(r.offset, HasLoad);
}

// In the bodies of pipelined loops.
class Redirect : public StmtMapper {
 public:
  Redirect(Module& module, const Target& target) : m_(module), target_(target) {}

  Block Run(const Block& body) {
    factors_ = FactorsOfProducts(m_, target_, body);
    return MapBlock(body);
  }
  // By operand.
  const std::vector<std::pair<BufferId, BufferId>>& repacked() const { return repacked_; }

  StmtRef MapStmt(const StmtRef& s) override {
    const For* loop = As<For>(s);
    const bool pipelined = loop && loop->kind == LoopKind::kPipelined && loop->stages > 1;
    const bool outer = std::exchange(inside_, inside_ || pipelined);
    StmtRef out = MapCopy(s);
    inside_ = outer;
    return out;
  }

 private:
  StmtRef MapCopy(const StmtRef& s) {
    const Copy* copy = As<Copy>(s);
    if (!copy || !inside_ || !WouldBeBox(m_, *copy, factors_)) return StmtMapper::MapStmt(s);
    Copy from = *copy;
    from.src.buffer = WorkspaceOf(copy->src.buffer);
    // Where only the launch knows, it chooses.
    if (m_.buffer(from.src.buffer).stands_for != kNoId) return s;
    return MakeStmt(std::move(from), s->span, s->id);
  }

  BufferId WorkspaceOf(BufferId operand) {
    const auto known =
        absl::c_find_if(repacked_, [&](const auto& r) { return r.first == operand; });
    if (known != repacked_.end()) return known->second;
    const BufferId id = m_.AddBuffer(Padded(operand));
    m_.workspaces.push_back(id);
    repacked_.emplace_back(operand, id);
    return id;
  }

  Buffer Padded(BufferId id) const {
    const Buffer& operand = m_.buffer(id);
    const int64_t unit = kRowAlignment / static_cast<int64_t>(SizeOf(operand.dtype));
    Buffer b;
    b.name = absl::StrCat(operand.name, "_rows");
    b.span = operand.span;
    b.role = BufferRole::kWorkspace;
    b.dtype = operand.dtype;
    b.shape = operand.shape;
    ExprRef units = MakeBinary(BinaryOp::kCeilDiv, b.shape.back(), MakeInt(unit));
    b.shape.back() = MakeBinary(BinaryOp::kMul, std::move(units), MakeInt(unit));
    if (const ExprRef odd = OddBytes(operand); !As<IntLit>(odd)) {
      // Empty where boxes can describe the operand itself.
      const ExprRef wanted = MakeBinary(BinaryOp::kMin, odd, MakeInt(1));
      b.shape.front() = MakeBinary(BinaryOp::kMul, b.shape.front(), wanted);
      b.stands_for = id;
    }
    b.strides.assign(b.shape.size(), MakeInt(1));
    for (size_t d = b.shape.size() - 1; d-- > 0;) {
      b.strides[d] = MakeBinary(BinaryOp::kMul, b.strides[d + 1], b.shape[d + 1]);
    }
    return b;
  }

  Module& m_;
  const Target& target_;
  Buffers factors_;
  bool inside_ = false;
  std::vector<std::pair<BufferId, BufferId>> repacked_;
};

// Copies all of `from` to `to`, whose rows are longer: behind those of `from` come zeros.
Launch CopyRows(Module& m, BufferId from, BufferId to) {
  const Buffer& rows = m.buffer(to);
  const int rank = rows.rank();
  const int64_t* length = IntValue(rows.shape.back());
  const int64_t columns = length ? std::min(kTileColumns, *length) : kTileColumns;
  const std::vector<int64_t> extents{kTileElements / columns, columns};

  Launch launch;
  launch.span = rows.span;
  launch.threads = kThreads;
  std::vector<ExprRef> at(rank);
  for (int d = rank; d-- > 0;) {
    const int64_t extent = d < rank - 2 ? 1 : extents[d - (rank - 2)];
    const VarId tile = m.AddVar(absl::StrCat("i", d), ScalarType::kInt, VarRole::kGrid);
    launch.axes.push_back({tile, MakeBinary(BinaryOp::kCeilDiv, rows.shape[d], MakeInt(extent))});
    at[d] = MakeBinary(BinaryOp::kMul, MakeVar(tile, ScalarType::kInt), MakeInt(extent));
  }
  Buffer tile;
  tile.name = "x";
  tile.scope = Scope::kFragment;
  tile.dtype = rows.dtype;
  tile.extents = extents;
  const Region window{from, at, {rank - 2, rank - 1}, extents, {}};
  Region copied = window;
  copied.buffer = to;
  const BufferId x = m.AddBuffer(std::move(tile));
  const Region held = WholeTile(m.buffer(x), x);
  launch.body = {MakeStmt(Alloc{x}), MakeStmt(Copy{window, held, nullptr}),
                 MakeStmt(Copy{held, copied, nullptr})};
  return launch;
}

// `parts(b)` names a launch by its number.
class Renumber : public StmtMapper {
 public:
  explicit Renumber(int added) : added_(added) {}
  ExprRef MapExpr(const ExprRef& e) override {
    return RewriteExpr(e, [&](const ExprRef& node) -> ExprRef {
      const PartsBound* parts = As<PartsBound>(node);
      if (!parts) return nullptr;
      return MakePartsBound(parts->launch + added_, parts->item, parts->end, node->span);
    });
  }

 private:
  const int added_;
};

}  // namespace

void RepackRows(Module& module, const Target& target) {
  if (!target.bulk_copies) return;
  Redirect redirect(module, target);
  for (Launch& launch : module.launches) launch.body = redirect.Run(launch.body);
  if (redirect.repacked().empty()) return;
  std::vector<Launch> launches;
  for (const auto& [operand, workspace] : redirect.repacked()) {
    launches.push_back(CopyRows(module, operand, workspace));
    module.notes.push_back(
        absl::StrCat(module.buffer(workspace).stands_for == kNoId ? "rows of " : "where rows of ",
                     module.buffer(operand).name, " are no multiples of ", kBoxAlignment,
                     " bytes: a launch of its own copies them to a workspace where they are"));
  }
  Renumber renumber(static_cast<int>(launches.size()));
  for (Launch& launch : module.launches) {
    launch.body = renumber.MapBlock(launch.body);
    launches.push_back(std::move(launch));
  }
  module.launches = std::move(launches);
}

}  // namespace tl
