// Operations on whole tiles.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/generator/gen.h"

namespace tl::generator {
namespace {

// What values may grow to without overflow or loss of sense.
double MostOf(DType t) {
  switch (t) {
    case DType::kE4M3:
      return 256;
    case DType::kE5M2:
      return 8192;
    case DType::kF16:
      return 16384;
    default:
      return IsFloat(t) ? 1e5 : MaxValue(t);
  }
}

double Magnitude(const Tile& t) { return std::max(std::fabs(t.lo), std::fabs(t.hi)); }

std::vector<int64_t> Without(std::vector<int64_t> extents, int dim) {
  extents.erase(extents.begin() + dim);
  if (extents.empty()) extents.push_back(1);
  return extents;
}

bool Same(DType a, DType b) {
  return IsFloat(a) == IsFloat(b) && (a == DType::kBool) == (b == DType::kBool);
}

std::string DimAttr(Random& r, const Tile& t, int dim) {
  if (t.rank() == 1 && r.Chance(50)) return "";
  return absl::StrCat(" dim=", r.Chance(25) ? dim - t.rank() : dim);
}

// Types that multiply, and the type of their sums.
struct GemmTypes {
  DType a, b, c;
};
constexpr GemmTypes kGemmTypes[] = {
    {DType::kF32, DType::kF32, DType::kF32},   {DType::kF64, DType::kF64, DType::kF64},
    {DType::kF16, DType::kF16, DType::kF32},   {DType::kF16, DType::kF16, DType::kF16},
    {DType::kBF16, DType::kBF16, DType::kF32}, {DType::kE4M3, DType::kE4M3, DType::kF32},
    {DType::kE5M2, DType::kE4M3, DType::kF32}, {DType::kE4M3, DType::kE5M2, DType::kF32},
    {DType::kE5M2, DType::kE5M2, DType::kF32}, {DType::kI8, DType::kI8, DType::kI32},
    {DType::kU8, DType::kI8, DType::kI32},     {DType::kI8, DType::kU8, DType::kI32},
    {DType::kU8, DType::kU8, DType::kI32},
};

std::optional<GemmTypes> TypesFor(DType a, DType b, Random& r) {
  std::vector<GemmTypes> fit;
  for (const GemmTypes& t : kGemmTypes) {
    if (t.a == a && t.b == b) fit.push_back(t);
  }
  if (fit.empty()) return std::nullopt;
  return r.Pick(fit);
}

}  // namespace

void Gen::SetRange(Tile& t) {
  if (t.dtype == DType::kBool) {
    t.lo = 0, t.hi = 1;
  } else if (IsFloat(t.dtype)) {
    t.hi = r_.Pick({1.0, 2.0, 4.0, 4.0});
    t.lo = -t.hi;
  } else if (r_.Chance(40)) {
    t.lo = LowestOf(t.dtype), t.hi = HighestOf(t.dtype);
  } else {
    t.hi = r_.Pick({3.0, 7.0, 20.0, 100.0});
    t.lo = MinValue(t.dtype) < 0 ? -t.hi : 0;
  }
}

Tile& Gen::NewTile(DType dtype, std::vector<int64_t> extents, TileKind kind, double lo, double hi) {
  Tile t;
  const char* stem = kind == TileKind::kShared ? "s" : kind == TileKind::kAcc ? "c" : "x";
  t.name = Name(stem);
  t.dtype = dtype;
  t.extents = std::move(extents);
  for (int64_t e : t.extents) t.extent_texts.push_back(ExtentText(e));
  t.kind = kind;
  t.root = next_root_++;
  t.lo = lo, t.hi = hi;
  t.trips = trips_;
  t.group_level = in_group_ > 0;
  std::string dtype_text(tl::Name(dtype));
  for (const auto& [name, value] : dtype_params_) {
    if (value == dtype && r_.Chance(70)) dtype_text = name;
  }
  const char* op = kind == TileKind::kShared ? "alloc_shared"
                   : kind == TileKind::kAcc  ? "alloc_acc"
                                             : "alloc_fragment";
  const bool boxes = kind == TileKind::kShared && r_.Chance(5);
  Line(absl::StrCat(t.name, " = ", op, "<", dtype_text, ">[", absl::StrJoin(t.extent_texts, ", "),
                    "]", boxes ? " boxes=8" : ""));
  tile_bytes_ += t.size() * static_cast<int64_t>(SizeOf(dtype)) * std::max(in_group_, 1);
  tiles_.push_back(std::move(t));
  return tiles_.back();
}

Tile& Gen::NewTile(DType dtype, std::vector<int64_t> extents) {
  Tile range;
  range.dtype = dtype;
  SetRange(range);
  // Shared tiles inside `on` are common to the groups: only fragments there.
  const TileKind kind = in_group_ == 0 && r_.Chance(45) ? TileKind::kShared : TileKind::kFragment;
  return NewTile(dtype, std::move(extents), kind, range.lo, range.hi);
}

bool Gen::CanWrite(const Tile& t) const { return t.writable && t.group_level == (in_group_ > 0); }

// Fragments of the block are spread over all groups: inside `on` only shared tiles are common.
bool Gen::CanRead(const Tile& t) const {
  return in_group_ == 0 || t.group_level == 1 || t.kind == TileKind::kShared;
}

template <typename Fn>
Tile* Gen::PickTileIf(Fn test) {
  std::vector<Tile*> fit;
  for (Tile& t : tiles_) {
    if (CanRead(t) && test(t)) fit.push_back(&t);
  }
  if (fit.empty()) return nullptr;
  // Mostly of the latest, so that results flow on.
  const size_t n = fit.size();
  return r_.Chance(60) ? fit[n - 1 -
                             static_cast<size_t>(
                                 r_.Range(0, std::min<int64_t>(3, static_cast<int64_t>(n) - 1)))]
                       : r_.Pick(fit);
}

bool Gen::OpLoad() {
  const DType from = AnyDType();
  DType to = from;
  if (from != DType::kBool && r_.Chance(30)) to = NumberDType();
  std::vector<int64_t> extents = SomeExtents(static_cast<int>(r_.Pick({1, 2, 2, 2, 3})));
  const bool transpose = extents.size() == 2 && r_.Chance(15);
  std::vector<int64_t> window = extents;
  if (transpose) std::swap(window[0], window[1]);
  TensorDecl tensor;
  const bool again = !inputs_.empty() && r_.Chance(15);
  std::string text;
  if (again) {
    tensor = r_.Pick(inputs_);
    if (tensor.shape.size() < window.size()) return false;
    if ((tensor.dtype == DType::kBool) != (to == DType::kBool)) return false;
    text = WindowOf(tensor, window);
  } else {
    text = InputWindow(from, window, &tensor);
  }
  std::string rows;
  if (r_.Chance(12)) rows = absl::StrCat(" rows=", UniformInt(1).text);
  Tile& t = NewTile(to, extents);
  t.lo = std::min(tensor.lo, 0.0), t.hi = std::max(tensor.hi, 0.0);
  t.exact = tensor.exact && tensor.dtype == to;
  if (t.lo < MinValue(to) || t.hi > MaxValue(to)) t.lo = LowestOf(to), t.hi = HighestOf(to);
  Line(
      absl::StrCat("copy ", text, " -> ", t.name, rows, transpose ? " transpose" : "", Eviction()));
  Charge(static_cast<double>(t.size()));
  return true;
}

// Rows of a tensor by page numbers.
bool Gen::OpGather() {
  std::vector<const Index*> fit;
  for (const Index& i : indices_) {
    if (i.lo >= 0 && i.hi < 64) fit.push_back(&i);
  }
  if (fit.empty()) return false;
  const Index& by = *r_.Pick(fit);
  const int64_t pages = by.hi + 1 + r_.Range(0, 4);
  const TensorDecl index = *IndexTensor(pages, by.hi + 1);
  const std::vector<int64_t> extents = SomeExtents(static_cast<int>(r_.Pick({1, 1, 2})));
  TensorDecl t;
  t.name = Name("X");
  t.dtype = AnyDType();
  t.shape.push_back({absl::StrCat(pages), pages});
  for (int64_t e : extents) t.shape.push_back({ExtentText(e), e});
  Declare("in", t, true);
  inputs_.push_back(t);
  std::string window = absl::StrCat(t.name, "[", index.name, "[", by.name, "]");
  for (size_t d = 0; d < extents.size(); ++d) absl::StrAppend(&window, ", 0:");
  Tile& tile = NewTile(t.dtype, extents);
  tile.lo = std::min(t.lo, 0.0), tile.hi = std::max(t.hi, 0.0);
  Line(absl::StrCat("copy ", window, "] -> ", tile.name));
  Charge(static_cast<double>(tile.size()));
  return true;
}

void Gen::Store(const Tile& tile) {
  DType to = tile.dtype;
  if (to != DType::kBool && r_.Chance(30)) to = NumberDType();
  std::vector<int64_t> window = tile.extents;
  const bool transpose = tile.rank() == 2 && r_.Chance(15);
  if (transpose) std::swap(window[0], window[1]);
  TensorDecl tensor;
  const std::string text = OutputWindow(to, window, "out", &tensor);
  if (text.empty()) return;
  std::string rows;
  if (r_.Chance(10)) rows = absl::StrCat(" rows=", UniformInt(1).text);
  Line(absl::StrCat("copy ", tile.name, " -> ", text, rows, transpose ? " transpose" : "",
                    Eviction()));
  Charge(static_cast<double>(tile.size()));
}

bool Gen::OpStore() {
  const Tile* t = PickTileIf([](const Tile&) { return true; });
  if (t == nullptr) return false;
  Store(*t);
  return true;
}

// A window of an inout tensor, changed in place.
bool Gen::OpUpdate() {
  const DType dtype = NumberDType();
  const std::vector<int64_t> extents = SomeExtents(static_cast<int>(r_.Pick({1, 2, 2})));
  TensorDecl tensor;
  const std::string text = OutputWindow(dtype, extents, "inout", &tensor);
  if (text.empty()) return false;
  Tile& t = NewTile(dtype, extents);
  t.lo = std::min(t.lo, -8.0), t.hi = std::max(t.hi, 8.0);
  if (IsFloat(dtype)) {
    t.exact = false;
  } else {
    t.lo = LowestOf(dtype), t.hi = HighestOf(dtype);
  }
  const std::string name = t.name;
  // Loops around, or what they leave, may make it large.
  const std::string limit = Number(IsFloat(dtype) ? 8 : 100, ComputeType(dtype));
  Line(absl::StrCat("copy ", text, " -> ", name));
  std::vector<std::string> vars;
  for (size_t d = 0; d < extents.size(); ++d) vars.push_back(Name("i"));
  const std::string at = absl::StrCat(name, "[", absl::StrJoin(vars, ", "), "]");
  Line(absl::StrCat("parallel ", absl::StrJoin(vars, ", "), " in [", absl::StrJoin(extents, ", "),
                    "] { ", at, " = min(", at, " + 1, ", limit, ") }"));
  Line(absl::StrCat("copy ", name, " -> ", text));
  Charge(3 * static_cast<double>(tiles_.back().size()));
  return true;
}

bool Gen::OpFill() {
  Tile* t = PickTileIf([&](const Tile& x) { return CanWrite(x); });
  if (t == nullptr) return false;
  if (t->lo <= 0 && t->hi >= 0 && r_.Chance(40)) {
    Line(absl::StrCat("clear ", t->name));
  } else {
    const Term v = Fit(Expr(ComputeType(t->dtype), 2), t->lo, t->hi);
    t->exact = t->exact && v.exact;
    Line(absl::StrCat("fill ", t->name, ", ", v.text));
  }
  Charge(static_cast<double>(t->size()));
  return true;
}

bool Gen::OpCopyTile() {
  const Tile* picked = PickTileIf([](const Tile&) { return true; });
  if (picked == nullptr) return false;
  const Tile src = *picked;
  DType to = src.dtype;
  if (to != DType::kBool && r_.Chance(60)) to = NumberDType();
  if (Magnitude(src) > MostOf(to) && IsFloat(to)) return false;
  const bool transpose = src.rank() == 2 && r_.Chance(25);
  std::vector<int64_t> extents = src.extents;
  if (transpose) std::swap(extents[0], extents[1]);
  const double lo = IsFloat(to) ? src.lo : std::clamp(src.lo, MinValue(to), MaxValue(to));
  const double hi = IsFloat(to) ? src.hi : std::clamp(src.hi, MinValue(to), MaxValue(to));
  const bool wraps = !IsFloat(to) && (src.lo < MinValue(to) || src.hi > MaxValue(to));
  Tile* old = r_.Chance(35) ? PickTileIf([&](const Tile& t) {
    return CanWrite(t) && t.extents == extents && t.dtype == to && t.root != src.root &&
           t.lo <= lo && t.hi >= hi && (!wraps || (t.lo <= MinValue(to) && t.hi >= MaxValue(to)));
  })
                            : nullptr;
  Tile& dst = old != nullptr ? *old : NewTile(to, extents);
  if (old == nullptr) {
    dst.lo = wraps ? LowestOf(to) : lo, dst.hi = wraps ? HighestOf(to) : hi;
    dst.exact = true;
  }
  dst.exact = dst.exact && src.exact && (src.dtype == to || (!IsFloat(src.dtype) && !IsFloat(to)));
  Line(absl::StrCat("copy ", src.name, " -> ", dst.name, transpose ? " transpose" : ""));
  Charge(static_cast<double>(src.size()));
  return true;
}

// May `amount` more be added to every element, in every trip of the loops since its alloc?
bool Gen::Accumulates(Tile& dst, double amount) {
  if (!IsFloat(dst.dtype)) return dst.lo <= LowestOf(dst.dtype) && dst.hi >= HighestOf(dst.dtype);
  const double all = amount * (trips_ / dst.trips);
  if (all > dst.room) return false;
  dst.room -= all;
  return true;
}

bool Gen::OpGemm() {
  const Tile* first = PickTileIf([&](const Tile& t) { return t.rank() == 2; });
  if (first == nullptr) return false;
  const Tile a = *first;
  const Tile* second = PickTileIf([&](const Tile& t) {
    return t.rank() == 2 && TypesFor(a.dtype, t.dtype, r_) &&
           (t.extents[0] == a.extents[0] || t.extents[1] == a.extents[0] ||
            t.extents[0] == a.extents[1] || t.extents[1] == a.extents[1]);
  });
  if (second == nullptr) return false;
  const Tile b = *second;
  std::vector<std::pair<int, int>> ways;  // which dims are summed over
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (a.extents[static_cast<size_t>(i)] == b.extents[static_cast<size_t>(j)])
        ways.push_back({i, j});
    }
  }
  const auto [ka, kb] = r_.Pick(ways);
  const std::vector<int64_t> extents = {a.extents[static_cast<size_t>(1 - ka)],
                                        b.extents[static_cast<size_t>(1 - kb)]};
  const int64_t k = a.extents[static_cast<size_t>(ka)];
  const DType type = TypesFor(a.dtype, b.dtype, r_)->c;
  const double amount = static_cast<double>(k) * Magnitude(a) * Magnitude(b);
  const double work = static_cast<double>(extents[0] * extents[1] * k);
  if (amount > MostOf(type) || work * trips_ * blocks_ > MostWork()) return false;
  Tile* old = r_.Chance(50) ? PickTileIf([&](const Tile& t) {
    return CanWrite(t) && t.extents == extents && t.dtype == type && t.root != a.root &&
           t.root != b.root;
  })
                            : nullptr;
  bool clear = r_.Chance(40);
  if (old != nullptr && !clear && !Accumulates(*old, amount)) return false;
  if (old != nullptr && clear && (amount > old->hi || -amount < old->lo)) return false;
  if (old == nullptr) {
    const bool is_float = IsFloat(type);
    const double most = is_float ? amount * 2 : kMaxInt;
    const TileKind kind = r_.Chance(40) ? TileKind::kAcc : TileKind::kFragment;
    old = &NewTile(type, extents, kind, is_float ? -most : LowestOf(type),
                   is_float ? most : HighestOf(type));
    old->room = is_float && !clear ? amount : 0;
    old->exact = !is_float && a.exact && b.exact;
    if (!clear) Line(absl::StrCat("clear ", old->name));
  }
  old->exact = old->exact && a.exact && b.exact;
  std::string attrs;
  if (ka == 0) attrs += " transpose_a";
  if (kb == 1) attrs += " transpose_b";
  if (clear) attrs += " clear";
  if (r_.Chance(30))
    absl::StrAppend(&attrs, " policy=", r_.Pick({"square", "full_row", "full_col"}));
  if (r_.Chance(30)) absl::StrAppend(&attrs, " precision=", Precision(a.dtype, 60));
  attrs += Orientation();
  Line(absl::StrCat("gemm ", a.name, ", ", b.name, " -> ", old->name, attrs));
  Charge(work);
  return true;
}

std::string Gen::Eviction() {
  return r_.Chance(20) ? absl::StrCat(" evict=", r_.Pick({"normal", "first", "last"})) : "";
}

std::string Gen::Precision(DType operand, int percent) {
  const bool narrow = operand == DType::kE4M3 || operand == DType::kE5M2;
  if ((operand != DType::kF32 && !narrow) || !r_.Chance(percent)) return "exact";
  return narrow ? "fast_accum" : "tf32";
}

std::string Gen::Orientation() {
  return r_.Chance(30) ? absl::StrCat(" orientation=", r_.Pick({"auto", "straight", "swapped"}))
                       : "";
}

// The usual shape: a loop over K that loads and multiplies.
bool Gen::OpGemmLoop() {
  const GemmTypes types = kGemmTypes[r_.Range(0, std::size(kGemmTypes) - 1)];
  // Instructions of warpgroups have 64 rows, which are columns of c where it is swapped.
  const bool swapped = warpgroups() && r_.Chance(25);
  int64_t m = warpgroups() ? r_.Pick({64, 64, 64, 128}) : r_.Pick(edges_), n = r_.Pick(edges_);
  if (swapped) std::swap(m, n);
  const int64_t k = r_.Pick(edges_);
  const double work = static_cast<double>(m * n * k);
  if (work * trips_ * blocks_ * 4 > MostWork()) return false;
  const bool ta = r_.Chance(35), tb = r_.Chance(35), is_float = IsFloat(types.c);
  Tile& acc = NewTile(types.c, {m, n}, r_.Chance(60) ? TileKind::kAcc : TileKind::kFragment,
                      is_float ? -MostOf(types.c) : LowestOf(types.c),
                      is_float ? MostOf(types.c) : HighestOf(types.c));
  acc.exact = !is_float;
  const std::string c = acc.name;
  Line(absl::StrCat("clear ", c));
  const Scope scope = Enter();
  Index index;
  double trips = 1;
  const double outer = trips_;
  Open(LoopHead(&index, r_.Chance(75), &trips));
  trips_ *= trips;
  if (index.tile == 0)
    index.tile = k, index.tile_text = absl::StrCat(k),
    index.dim = std::max<int64_t>(index.hi + 1, 1) * k, index.dim_text = absl::StrCat(index.dim);
  indices_.push_back(index);
  TensorDecl da, db;
  const std::vector<int64_t> ea = ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k};
  const std::vector<int64_t> eb = tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n};
  const std::string wa = InputWindow(types.a, ea, &da), wb = InputWindow(types.b, eb, &db);
  std::string names[2];
  for (int i = 0; i < 2; ++i) {
    const TensorDecl& d = i == 0 ? da : db;
    Tile& t = NewTile(d.dtype, i == 0 ? ea : eb);
    t.lo = std::min(d.lo, 0.0), t.hi = std::max(d.hi, 0.0);
    names[i] = t.name;
    Line(absl::StrCat("copy ", i == 0 ? wa : wb, " -> ", t.name, Eviction()));
  }
  Line(absl::StrCat("gemm ", names[0], ", ", names[1], " -> ", c, ta ? " transpose_a" : "",
                    tb ? " transpose_b" : "", " precision=", Precision(types.a, 40),
                    swapped ? " orientation=swapped" : Orientation()));
  Charge(work);
  Leave(scope);
  trips_ = outer;
  Close();
  return true;
}

bool Gen::OpReduce() {
  const Tile* picked = PickTileIf([](const Tile& t) { return t.kind != TileKind::kAcc; });
  if (picked == nullptr) return false;
  const Tile src = *picked;
  const int dim = static_cast<int>(r_.Range(0, src.rank() - 1));
  const int64_t n = src.extents[static_cast<size_t>(dim)];
  const std::vector<int64_t> extents = Without(src.extents, dim);
  const bool is_bool = src.dtype == DType::kBool, is_float = IsFloat(src.dtype);
  std::string op =
      is_bool ? r_.Pick({"any", "all"}) : r_.Pick({"sum", "sum", "max", "min", "absmax", "prod"});
  DType to = src.dtype;
  if (!is_bool && r_.Chance(40)) {
    to = is_float ? FloatDType()
                  : r_.Pick({DType::kI32, DType::kI64, DType::kU32, DType::kI16, DType::kI8});
  }
  const double m = Magnitude(src);
  double most = op == "sum" ? m * static_cast<double>(n) : m;
  if (op == "prod")
    most = is_float && m > 1 ? std::pow(m, static_cast<double>(n)) : std::max(m, 1.0);
  if (is_float && most > MostOf(to) / 4) return false;
  const bool clear = r_.Chance(60);
  double lo = -most, hi = most;
  if (!is_float && !is_bool) lo = LowestOf(to), hi = HighestOf(to);
  if (is_bool) lo = 0, hi = 1;
  Tile* old = r_.Chance(40) ? PickTileIf([&](const Tile& t) {
    return CanWrite(t) && t.extents == extents && t.kind != TileKind::kAcc && t.root != src.root &&
           Same(t.dtype, src.dtype) && t.lo <= lo && t.hi >= hi;
  })
                            : nullptr;
  if (old != nullptr && !clear) {
    if (op == "prod" && is_float) return false;
    if (op == "sum" && !Accumulates(*old, most)) return false;
  }
  if (old == nullptr) {
    old = &NewTile(to, extents);
    const bool sums = op == "sum" && is_float && !clear;
    const double start = 1;  // filled with something below, in case nothing is cleared
    old->lo = is_bool || !is_float ? lo : -(most * (sums ? 1 : 1) + start);
    old->hi = is_bool || !is_float ? hi : most + start;
    if (op == "prod" && is_float) old->lo = -2 * most, old->hi = 2 * most;
    old->exact = true;
    if (!clear) {
      const Term v = Fit(Literal(ComputeType(to)), std::max(old->lo, -1.0), std::min(old->hi, 1.0));
      Line(absl::StrCat("fill ", old->name, ", ", v.text));
    }
    // In a loop around the alloc a sum starts anew; nothing more may be added.
    old->room = 0;
  }
  old->exact = old->exact && src.exact &&
               (!is_float || op == "max" || op == "min" || op == "absmax") &&
               (!is_float || old->dtype == src.dtype);
  Line(absl::StrCat("reduce_", op, " ", src.name, " -> ", old->name, DimAttr(r_, src, dim),
                    clear ? " clear" : ""));
  Charge(static_cast<double>(src.size()));
  return true;
}

bool Gen::OpReducer() {
  const Tile* picked =
      PickTileIf([](const Tile& t) { return t.kind != TileKind::kAcc && t.dtype != DType::kBool; });
  if (picked == nullptr) return false;
  const Tile src = *picked;
  const int dim = static_cast<int>(r_.Range(0, src.rank() - 1));
  const std::vector<int64_t> extents = Without(src.extents, dim);
  const char* op = r_.Pick({"sum", "sum", "max", "min"});
  const bool sum = op[0] == 's', is_float = IsFloat(src.dtype);
  const DType type =
      !is_float
          ? r_.Pick({DType::kI32, DType::kI64, src.dtype})
          : r_.Pick({DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16, src.dtype});
  const int rounds = static_cast<int>(r_.Range(1, 3));
  const double most =
      Magnitude(src) * static_cast<double>(sum ? 4 * src.extents[static_cast<size_t>(dim)] : 1);
  if (is_float && most > MostOf(type)) return false;
  Tile t;
  t.name = Name("r");
  Line(absl::StrCat(t.name, " = alloc_reducer<", tl::Name(type), ", ", op, ">[",
                    absl::StrJoin(extents, ", "), "]"));
  tile_bytes_ += src.size() / src.extents[static_cast<size_t>(dim)] * 8;
  if (r_.Chance(20)) Line(absl::StrCat("fill ", t.name, ", ", is_float ? "-1.0" : "1"));
  const std::string reduce =
      absl::StrCat("reduce_", op, " ", src.name, " -> ", t.name, DimAttr(r_, src, dim));
  if (r_.Chance(50)) {
    Line(absl::StrCat("for ", Name("q"), " in ", rounds, " { ", reduce, " }"));
  } else {
    for (int i = 0; i < rounds; ++i) Line(reduce);
  }
  if (sum && r_.Chance(50)) {  // what has come together so far is scaled
    std::vector<std::string> vars;
    for (size_t d = 0; d < extents.size(); ++d) vars.push_back(Name("i"));
    Line(absl::StrCat("parallel ", absl::StrJoin(vars, ", "), " in [", absl::StrJoin(extents, ", "),
                      "] { ", t.name, "[", absl::StrJoin(vars, ", "),
                      "] *= ", is_float ? "0.5" : "-3", " }"));
    Line(reduce);
  }
  Line(absl::StrCat("finish ", t.name));
  t.dtype = type;
  t.extents = extents;
  t.kind = TileKind::kFragment;
  t.root = next_root_++;
  t.writable = false;
  t.exact = src.exact && !is_float;
  t.group_level = in_group_ > 0;
  t.lo = is_float ? -most - 1 : LowestOf(type), t.hi = is_float ? most + 1 : HighestOf(type);
  tiles_.push_back(t);
  Charge(static_cast<double>(src.size() * (rounds + 1)));
  return true;
}

bool Gen::OpArgMax() {
  const Tile* picked =
      PickTileIf([](const Tile& t) { return t.kind != TileKind::kAcc && t.dtype != DType::kBool; });
  if (picked == nullptr) return false;
  const Tile src = *picked;
  const int dim = static_cast<int>(r_.Range(0, src.rank() - 1));
  const int64_t n = src.extents[static_cast<size_t>(dim)];
  const DType narrow = n < 128 ? DType::kI8 : DType::kI16;
  Tile& dst = NewTile(r_.Pick({DType::kI32, DType::kI64, DType::kU8, DType::kI16, DType::kU16,
                               DType::kU32, narrow}),
                      Without(src.extents, dim));
  dst.lo = 0, dst.hi = static_cast<double>(n - 1);
  dst.exact = src.exact;
  Line(absl::StrCat("argmax ", src.name, " -> ", dst.name, DimAttr(r_, src, dim)));
  Charge(static_cast<double>(src.size()));
  return true;
}

bool Gen::OpCumSum() {
  const Tile* picked =
      PickTileIf([](const Tile& t) { return t.kind != TileKind::kAcc && t.dtype != DType::kBool; });
  if (picked == nullptr) return false;
  const Tile src = *picked;
  const int dim = static_cast<int>(r_.Range(0, src.rank() - 1));
  const bool is_float = IsFloat(src.dtype);
  const double most = Magnitude(src) * static_cast<double>(src.extents[static_cast<size_t>(dim)]);
  const bool in_place = !is_float && CanWrite(src) && src.lo <= LowestOf(src.dtype) &&
                        src.hi >= HighestOf(src.dtype) && r_.Chance(50);
  std::string dst = src.name;
  if (!in_place) {
    const DType to = is_float ? FloatDType() : r_.Pick({DType::kI32, DType::kI64, src.dtype});
    if (is_float && most > MostOf(to)) return false;
    Tile& t = NewTile(to, src.extents);
    t.lo = is_float ? -most : LowestOf(to), t.hi = is_float ? most : HighestOf(to);
    t.exact = src.exact && !is_float;
    dst = t.name;
  }
  Line(absl::StrCat("cumsum ", src.name, " -> ", dst, DimAttr(r_, src, dim),
                    r_.Chance(35) ? " reverse" : ""));
  Charge(static_cast<double>(src.size()));
  return true;
}

bool Gen::OpView() {
  const Tile* picked = PickTileIf([](const Tile& t) { return t.size() > 1; });
  if (picked == nullptr) return false;
  const Tile of = *picked;
  Tile v = of;
  v.name = Name("v");
  v.extents.clear();
  v.extent_texts.clear();
  std::string window;
  for (int d = 0; d < of.rank(); ++d) {
    const int64_t e = of.extents[static_cast<size_t>(d)];
    const bool drop = d + 1 < of.rank() ? r_.Chance(20) : false;
    const int64_t n = drop ? 1 : r_.Chance(50) ? e : r_.Range(1, e);
    std::string at = absl::StrCat(r_.Range(0, e - n));
    if (n < e && r_.Chance(40)) at = IndexTerm(e - n + 1).text;
    absl::StrAppend(&window, d ? ", " : "", at, drop ? "" : ":");
    if (drop) continue;
    v.extents.push_back(n);
    v.extent_texts.push_back(absl::StrCat(n));
  }
  Line(absl::StrCat(v.name, " = view ", of.name, "[", window, "] [", absl::StrJoin(v.extents, ", "),
                    "]"));
  v.room = 0;
  tiles_.push_back(v);
  return true;
}

// Sums of all blocks.
bool Gen::OpAtomic() {
  const char* op = r_.Pick({"add", "add", "max", "min"});
  const Tile* src =
      PickTileIf([](const Tile& t) { return t.kind != TileKind::kAcc && t.dtype != DType::kBool; });
  if (src == nullptr) return false;
  const DType to = IsFloat(src->dtype)
                       ? r_.Pick({DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16})
                       : r_.Pick({DType::kI32, DType::kU32, DType::kI64});
  if (IsFloat(to) && Magnitude(*src) * trips_ * blocks_ > MostOf(to)) return false;
  TensorDecl t;
  t.name = Name("A");
  t.dtype = to;
  std::vector<std::string> offsets;
  for (int64_t e : src->extents) {
    Extent dim;
    offsets.push_back(SomeOffset(e, &dim));
    t.shape.push_back(dim);
  }
  Declare("inout", t, false);
  Line(absl::StrCat("atomic_", op, " ", src->name, " -> ", t.name, "[",
                    absl::StrJoin(offsets, ", "), "]"));
  Charge(static_cast<double>(src->size()));
  return true;
}

}  // namespace tl::generator
