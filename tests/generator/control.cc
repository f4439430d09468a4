// Loops, conditions, values, lag, groups and channels.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/generator/gen.h"

namespace tl::generator {
namespace {

constexpr double kMaxWork = 400000;       // elements and multiply-adds of a program
constexpr int64_t kMaxTiles = 24 * 1024;  // bytes after which no more tiles are made

}  // namespace

Gen::Scope Gen::Enter() const {
  return {tiles_.size(), indices_.size(), floats_.size(), ints_.size(), bools_.size()};
}

void Gen::Leave(const Scope& s) {
  tiles_.resize(s.tiles);
  indices_.resize(s.indices);
  floats_.resize(s.floats);
  ints_.resize(s.ints);
  bools_.resize(s.bools);
}

void Gen::Body(int statements, int depth) {
  for (int i = 0; i < statements; ++i) {
    if (work_ > kMaxWork && work_ > MostWork()) return;
    for (int tries = 0; tries < 8 && !Statement(depth); ++tries) {
    }
  }
}

bool Gen::Statement(int depth) {
  const bool room = tile_bytes_ < (warpgroups() ? 4 * kMaxTiles : kMaxTiles);
  const int products = warpgroups() ? 3 : 1;
  const int deep = depth > 0 ? 1 : 0;
  switch (r_.Weighted({room ? 10 : 0,
                       5,
                       room ? 14 : 3,
                       3,
                       room ? 6 : 0,
                       room ? 5 * products : 0,
                       room ? 4 * deep * products : 0,
                       room ? 7 : 0,
                       room ? 2 : 0,
                       room ? 2 : 0,
                       room ? 2 : 0,
                       2,
                       2,
                       room ? 2 : 0,
                       room ? 2 : 0,
                       5 * deep,
                       3 * deep,
                       2 * deep,
                       3,
                       2,
                       1,
                       room ? 3 * deep * products : 0,
                       in_group_ == 0 && groups_ > 1 ? 6 * deep : 0,
                       channels_ && in_group_ == 0 && groups_ > 1 && room ? 12 * deep : 0})) {
    case 0:
      return OpLoad();
    case 1:
      return OpStore();
    case 2:
      return OpParallel();
    case 3:
      return OpFill();
    case 4:
      return OpCopyTile();
    case 5:
      return OpGemm();
    case 6:
      return OpGemmLoop();
    case 7:
      return OpReduce();
    case 8:
      return OpReducer();
    case 9:
      return OpArgMax();
    case 10:
      return OpCumSum();
    case 11:
      return OpView();
    case 12:
      return OpAtomic();
    case 13:
      return OpGather();
    case 14:
      return OpUpdate();
    case 15:
      return OpLoop(depth);
    case 16:
      return OpIf(depth);
    case 17:
      return OpCompileTimeIf(depth);
    case 18:
      return OpLet();
    case 19:
      return OpVar();
    case 20:
      return OpUniformLocal();
    case 21:
      return OpLag(depth);
    case 22:
      return OpOnGroups(depth);
    default:
      return OpChannels();
  }
}

// The head of a loop with a known range; `*trips`: at most.
std::string Gen::LoopHead(Index* index, bool pipelined, double* trips) {
  index->name = Name("j");
  std::string kind =
      pipelined ? "pipelined" : r_.Pick({"serial", "for", "for", "unrolled", "vectorized"});
  std::string range;
  int64_t most = 1, begin = 0;
  switch (r_.Weighted({3, 5, 2, 2, 2})) {
    case 0:
      most = r_.Range(0, 4);
      range = absl::StrCat(most);
      break;
    case 1:
      if (!dims_.empty()) {  // steps through a dim
        const Dim& d = r_.Pick(dims_);
        int64_t tile = r_.Pick(edges_);
        if ((d.value + tile - 1) / tile > 6) tile = (d.value + 5) / 6;
        most = (d.value + tile - 1) / tile;
        index->tile = tile;
        index->tile_text = ExtentText(tile);
        index->dim_text = d.name;
        index->dim = d.value;
        range = absl::StrCat("ceildiv(", d.name, ", ", index->tile_text, ")");
        break;
      }
      [[fallthrough]];
    case 2: {
      const Term t = Fit(UniformInt(1), 0, static_cast<double>(r_.Range(1, 4)));
      most = static_cast<int64_t>(t.hi);
      range = t.text;
      break;
    }
    case 3: {
      begin = r_.Range(-2, 3);
      most = r_.Range(0, 3);
      const Term t =
          Fit(UniformInt(1), static_cast<double>(begin) - 1, static_cast<double>(begin + most));
      range = r_.Chance(50) ? absl::StrCat(begin, "..", begin + most)
                            : absl::StrCat(begin, "..", t.text);
      break;
    }
    default: {  // a length read from memory
      const int64_t n = r_.Range(1, 4);
      TensorDecl len;
      len.name = Name("L");
      len.dtype = r_.Pick({DType::kI32, DType::kI64, DType::kU8, DType::kI16});
      len.shape = {{absl::StrCat(n), n}};
      len.lo = 0, len.hi = 4;
      absl::StrAppend(&decls_, "  in ", len.name, ": tensor<", tl::Name(len.dtype), ">[", n,
                      "]\n  init ", len.name, " = uniform(0, 4)\n");
      most = 4;
      range = absl::StrCat(len.name, "[", IndexTerm(n).text, "]");
    }
  }
  index->lo = begin;
  index->hi = begin + std::max<int64_t>(most, 1) - 1;
  *trips = static_cast<double>(std::max<int64_t>(most, 1));
  std::string attrs;
  if (r_.Chance(20)) attrs += " down";
  if (pipelined && r_.Chance(85)) absl::StrAppend(&attrs, " stages=", r_.Range(0, 5));
  const bool runs_in_order = kind != "unrolled" && kind != "vectorized";
  if (runs_in_order && r_.Chance(25)) attrs += " partition";
  return absl::StrCat(kind, " ", index->name, " in ", range, attrs, " {");
}

bool Gen::OpLoop(int depth) {
  Index index;
  double trips = 1;
  const double outer = trips_;
  const Scope scope = Enter();
  Open(LoopHead(&index, r_.Chance(45), &trips));
  trips_ *= trips;
  indices_.push_back(index);
  Body(static_cast<int>(r_.Range(1, 4)), depth - 1);
  trips_ = outer;
  Leave(scope);
  Close();
  return true;
}

// Copies, values, state that changes, and a body that sees them as they were.
bool Gen::OpLag(int depth) {
  if (lag_body_) return false;
  Index index;
  double trips = 1;
  const double outer = trips_;
  const Scope scope = Enter();
  const bool before = r_.Chance(50);  // one of the tiles lives outside the loop
  std::string outside;
  const DType dtype = NumberDType();
  const std::vector<int64_t> extents = SomeExtents(static_cast<int>(r_.Pick({1, 2})));
  if (before) {
    Tile& t = NewTile(dtype, extents);
    t.lo = std::min(t.lo, -8.0), t.hi = std::max(t.hi, 200.0);
    if (!IsFloat(dtype)) t.lo = LowestOf(dtype), t.hi = HighestOf(dtype);
    t.writable = false;
    outside = t.name;
    Line(absl::StrCat("clear ", t.name));
  }
  if (tiles_.empty() || !CanWrite(tiles_.back())) OpParallel();
  Open(LoopHead(&index, true, &trips));
  trips_ *= trips;
  indices_.push_back(index);
  const size_t first = tiles_.size();
  if (before) {
    TensorDecl t;
    Line(absl::StrCat("copy ", InputWindow(dtype, extents, &t), " -> ", outside));
  }
  OpLoad();
  if (r_.Chance(40)) OpLoad();
  if (r_.Chance(70)) OpLet();
  Body(static_cast<int>(r_.Range(0, 2)), 0);
  lag_body_ = true;
  for (int lags = static_cast<int>(r_.Range(1, 2)); lags > 0; --lags) {
    const bool turn = r_.Chance(25);
    if (turn) Open("in_turn on {");
    Open(absl::StrCat("lag ", r_.Range(1, 4), " {"));
    const Scope inner = Enter();
    // What a copy filled in this loop may not be written in the body.
    std::vector<bool> writable;
    for (size_t i = first; i < tiles_.size(); ++i) {
      writable.push_back(tiles_[i].writable);
      tiles_[i].writable = false;
    }
    Body(static_cast<int>(r_.Range(1, 3)), depth - 1);
    Leave(inner);
    for (size_t i = 0; i < writable.size(); ++i) tiles_[first + i].writable = writable[i];
    Close();
    if (turn) Close();
    if (r_.Chance(50)) Body(1, 0);
  }
  lag_body_ = false;
  trips_ = outer;
  Leave(scope);
  Close();
  return true;
}

bool Gen::OpIf(int depth) {
  const Term c = UniformCondition();
  Open(absl::StrCat("if ", c.text, " {"));
  const Scope scope = Enter();
  Body(static_cast<int>(r_.Range(1, 3)), depth - 1);
  Leave(scope);
  if (r_.Chance(40)) {
    --indent_;
    Open("} else {");
    Body(static_cast<int>(r_.Range(1, 2)), depth - 1);
    Leave(scope);
  }
  Close();
  return true;
}

bool Gen::OpCompileTimeIf(int depth) {
  std::string cond;
  bool value = true;
  if (!dtype_params_.empty() && r_.Chance(50)) {
    const auto& [name, dtype] = r_.Pick(dtype_params_);
    const DType other = NumberDType();
    value = dtype == other;
    cond = absl::StrCat(name, " == ", tl::Name(other));
  } else if (!int_params_.empty()) {
    const auto& [name, n] = r_.Pick(int_params_);
    const int64_t limit = r_.Range(1, 20);
    value = n > limit;
    cond = absl::StrCat(name, " > ", limit);
  } else {
    return false;
  }
  Open(absl::StrCat("if ", value ? cond : absl::StrCat("not (", cond, ")"), " {"));
  const Scope scope = Enter();
  Body(static_cast<int>(r_.Range(1, 3)), depth - 1);
  Leave(scope);
  --indent_;
  Open("} else {");
  Line("fill nothing_of_that_name, 1");
  Close();
  return true;
}

bool Gen::OpLet() {
  const ScalarType type = r_.Pick(
      {ScalarType::kInt, ScalarType::kInt, ScalarType::kF32, ScalarType::kF64, ScalarType::kBool});
  const Term v = Expr(type, 2);
  const std::string name = Name("u");
  Line(absl::StrCat(name, " = ", v.text));
  (IsFloat(v.type)              ? floats_
   : v.type == ScalarType::kInt ? ints_
                                : bools_)
      .push_back({{name, v.type, v.lo, v.hi, v.exact}});
  return true;
}

// A mutable value: a new one, or an assignment.
bool Gen::OpVar() {
  if (in_group_ > 0 && r_.Chance(60)) {  // all groups leave the same value
    for (const Scalar& s : ints_) {
      if (!s.is_var || r_.Chance(30)) continue;
      Line(absl::StrCat(s.term.text, " = min(", s.term.text, " + ", r_.Range(0, 3), ", ",
                        Number(s.hi, ScalarType::kInt), ")"));
      return true;
    }
  }
  if (in_group_ == 0 && r_.Chance(60)) {
    std::vector<const Scalar*> vars;
    for (const auto* list : {&floats_, &ints_, &bools_}) {
      for (const Scalar& s : *list) {
        if (s.is_var) vars.push_back(&s);
      }
    }
    if (!vars.empty()) {
      const Scalar var = *r_.Pick(vars);
      const ScalarType type = var.term.type;
      if (type == ScalarType::kBool) {
        Term v = BoolExpr(2);
        if (!v.exact && var.term.exact) v = Literal(type);
        Line(absl::StrCat(var.term.text, " = ", v.text));
        return true;
      }
      Term v = Expr(type, 2);
      if (var.term.exact && !v.exact) v = Literal(type);
      if (v.type == ScalarType::kBool || (type == ScalarType::kInt && IsFloat(v.type)))
        v = Literal(type);
      if (r_.Chance(40)) {
        Line(absl::StrCat(var.term.text, r_.Chance(50) ? " += " : " -= ", Fit(v, -4, 4).text));
        v = var.term;
        v.lo -= 4, v.hi += 4;
      }
      Line(absl::StrCat(var.term.text, " = ", Fit(v, var.lo, var.hi).text));
      return true;
    }
  }
  const DType dtype = AnyDType();
  const ScalarType type = ComputeType(dtype);
  Scalar s;
  s.is_var = in_group_ == 0;
  s.dtype = dtype;
  s.hi = IsFloat(type) ? 8 : type == ScalarType::kBool ? 1 : 30;
  s.lo = type == ScalarType::kBool || MinValue(dtype) >= 0 ? 0 : -s.hi;
  const Term start = Literal(type);
  s.term = {Name("w"), type, s.lo, s.hi, !IsFloat(type)};
  const std::string value = type == ScalarType::kBool ? start.text : Fit(start, s.lo, s.hi).text;
  Line(absl::StrCat(s.term.text, " = alloc_var<", tl::Name(dtype), ">(", value, ")"));
  (IsFloat(type) ? floats_ : type == ScalarType::kInt ? ints_ : bools_).push_back(s);
  return true;
}

// A small array of every thread, outside `parallel`.
bool Gen::OpUniformLocal() {
  const std::string name = Name("a");
  const DType dtype = NumberDType();
  const ScalarType type = ComputeType(dtype);
  const int64_t n = r_.Range(1, 3);
  const double lo = MinValue(dtype) < 0 ? -8 : 0;
  Line(absl::StrCat(name, " = alloc_local<", tl::Name(dtype), ">[", n, "]"));
  bool exact = !IsFloat(type);
  for (int64_t i = 0; i < n; ++i) {
    Term v = Expr(type, 2);
    if (v.type == ScalarType::kBool || (type == ScalarType::kInt && IsFloat(v.type)))
      v = Literal(type);
    exact = exact && v.exact;
    Line(absl::StrCat(name, "[", i, "] = ", Fit(v, lo, 8).text));
  }
  const std::string u = Name("u");
  Line(absl::StrCat(u, " = ", name, "[", IndexTerm(n).text, "]"));
  (IsFloat(type) ? floats_ : ints_).push_back({{u, type, lo, 8, exact}});
  return true;
}

bool Gen::OpOnGroups(int depth) {
  const Scope scope = Enter();
  Index g;
  g.name = Name("g");
  g.lo = 0, g.hi = groups_ - 1;
  g.block = true;
  // Each group has a part of one shared tile to itself.
  std::string view;
  for (Tile& t : tiles_) {
    const bool splits = t.kind == TileKind::kShared && t.extents[0] % groups_ == 0 && t.writable;
    if (!splits || !view.empty() || r_.Chance(50)) continue;
    hidden_roots_.push_back(t.root);
    Tile part = t;
    part.name = Name("v");
    part.extents[0] /= groups_;
    part.extent_texts.clear();
    std::string offsets = absl::StrCat(g.name, "*", part.extents[0], ":");
    for (int d = 1; d < t.rank(); ++d) offsets += ", 0:";
    view = absl::StrCat(part.name, " = view ", t.name, "[", offsets, "] [",
                        absl::StrJoin(part.extents, ", "), "]");
    part.group_level = 1;
    part.room = 0;
    part.root = next_root_++;
    for (Tile& other : tiles_) {
      if (other.root == t.root)
        other.group_level = 2, other.writable = false, other.kind = TileKind::kFragment;
    }
    tiles_.push_back(part);
    break;
  }
  hidden_roots_.clear();
  Open(absl::StrCat("on ", g.name, " in ", groups_, " {"));
  if (!view.empty()) Line(view);
  in_group_ = groups_;
  indices_.push_back(g);
  Body(static_cast<int>(r_.Range(2, 4)), depth - 1);
  in_group_ = 0;
  Leave(scope);
  Close();
  return true;
}

// One group sends, another receives.
bool Gen::OpChannels() {
  const DType dtype = AnyDType();
  const std::vector<int64_t> extents = SomeExtents(static_cast<int>(r_.Pick({1, 2})));
  const std::string shape = absl::StrJoin(extents, ", ");
  const std::string c = Name("q");
  const int64_t depth = r_.Range(1, 4);
  const std::string attr = depth == 1 ? "" : absl::StrCat(" depth=", depth);
  Line(absl::StrCat(c, " = alloc_chan<", tl::Name(dtype), ">[", shape, "]", attr));
  int64_t size = static_cast<int64_t>(SizeOf(dtype)) * depth;
  for (int64_t e : extents) size *= e;
  tile_bytes_ += size;
  const Scope scope = Enter();
  Index g;
  g.name = Name("g");
  g.hi = groups_ - 1;
  g.block = true;
  const int64_t from = r_.Range(0, groups_ - 1), to = (from + 1) % groups_;
  Index j;
  double trips = 1;
  const std::string head = LoopHead(&j, r_.Chance(50), &trips);
  const double outer = trips_;
  in_group_ = groups_;
  Open(absl::StrCat("on ", g.name, " in ", groups_, " {"));
  for (int side = 0; side < 2; ++side) {
    if (side == 0) {
      Open(absl::StrCat("if ", g.name, " == ", from, " {"));
    } else {
      --indent_;
      Open(absl::StrCat("} else if ", g.name, " == ", to, " {"));
    }
    Open(head);
    trips_ *= trips;
    indices_.push_back(g);
    indices_.push_back(j);
    if (side == 0) {
      TensorDecl t;
      const std::string window = InputWindow(dtype, extents, &t);
      Tile& x = NewTile(dtype, extents);
      x.lo = std::min(t.lo, 0.0), x.hi = std::max(t.hi, 0.0);
      const std::string name = x.name;
      Line(absl::StrCat("copy ", window, " -> ", name, Eviction()));
      Body(1, 0);
      Line(absl::StrCat("send ", name, " -> ", c));
    } else {
      Tile& x = NewTile(dtype, extents);
      if (dtype != DType::kBool)
        x.lo = std::max(-200.0, LowestOf(dtype)), x.hi = std::min(200.0, HighestOf(dtype));
      if (!IsFloat(dtype) && dtype != DType::kBool) x.lo = LowestOf(dtype), x.hi = HighestOf(dtype);
      Line(absl::StrCat("recv ", c, " -> ", x.name));
      const Tile received = x;
      Body(static_cast<int>(r_.Range(0, 2)), 0);
      Store(received);
    }
    Leave(scope);
    trips_ = outer;
    Close();
  }
  Close();
  in_group_ = 0;
  Close();
  return true;
}

}  // namespace tl::generator
