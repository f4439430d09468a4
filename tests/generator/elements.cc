// `parallel` and the statements on single elements in it.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/generator/gen.h"

namespace tl::generator {
namespace {

std::string ElementText(const std::string& name, const std::vector<std::string>& at) {
  return absl::StrCat(name, "[", absl::StrJoin(at, ", "), "]");
}

}  // namespace

// Stores to its own element, in a way that stays in the tile's range.
void Gen::ElementStore(const Tile& tile, const std::vector<std::string>& at, bool must_set) {
  const ScalarType type = ComputeType(tile.dtype);
  const std::string element = ElementText(tile.name, at);
  const bool full =
      !IsFloat(type) && tile.lo <= LowestOf(tile.dtype) && tile.hi >= HighestOf(tile.dtype);
  const int kind = must_set || type == ScalarType::kBool ? 0 : r_.Weighted({6, 2, 1, 2, 1});
  Term v = Expr(type, 3);
  if (type == ScalarType::kBool) return Line(absl::StrCat(element, " = ", v.text));
  if (v.type == ScalarType::kBool) v = Literal(type);
  if (type == ScalarType::kInt && IsFloat(v.type)) v = Literal(type);
  switch (kind) {
    case 0:
      Line(absl::StrCat(element, " = ", full ? v.text : Fit(v, tile.lo, tile.hi).text));
      return;
    case 1:
    case 2: {
      v = Fit(v, -16, 16);
      Line(absl::StrCat(element, kind == 1 ? " += " : " -= ", v.text));
      if (full) return;
      Line(absl::StrCat(element, " = clamp(", element, ", ", Number(tile.lo, type), ", ",
                        Number(tile.hi, type), ")"));
      return;
    }
    case 3:
      if (!full) v = Fit(v, 0, 1);
      Line(absl::StrCat(element, " *= ", v.text));
      return;
    default:
      if (IsFloat(type)) {
        Line(absl::StrCat(element, " /= (abs(", v.text, ") + 1.0)"));
      } else if (v.exact) {
        Line(absl::StrCat(element, " /= (", Fit(v, 0, 1e6).text, " + 1)"));
      } else {
        Line(absl::StrCat(element, " /= 3"));
      }
  }
}

void Gen::LocalArray() {
  const int64_t n = r_.Range(1, 4);
  const DType dtype = r_.Chance(8) ? DType::kBool : NumberDType();
  const ScalarType type = ComputeType(dtype);
  const std::string name = Name("a"), q = Name("q");
  Line(absl::StrCat(name, " = alloc_local<", tl::Name(dtype), ">[", n, "]"));
  element_indices_.push_back({q, 0, n - 1});
  const double lo = IsFloat(type)               ? -4
                    : type == ScalarType::kBool ? 0
                    : MinValue(dtype) < 0       ? -50
                                                : 0;
  const double hi = IsFloat(type) ? 4 : type == ScalarType::kBool ? 1 : 50;
  Term v = Expr(type, 2);
  if (v.type != type && !(IsFloat(type) && IsFloat(v.type))) v = Literal(type);
  if (type != ScalarType::kBool) v = Fit(v, lo, hi);
  Line(absl::StrCat(r_.Pick({"for ", "serial ", "unrolled ", "vectorized "}), q, " in ", n, " { ",
                    name, "[", q, "] = ", v.text, " }"));
  element_indices_.pop_back();
  local_arrays_.push_back({{name, type, lo, hi, v.exact && !IsFloat(type)}, n});
}

// A store to an output, one place an iteration.
void Gen::GlobalElement(const std::vector<int64_t>& extents) {
  TensorDecl t;
  t.name = Name("Y");
  t.dtype = AnyDType();
  std::vector<std::string> at, guards;
  size_t axis = 0;
  for (const Index& i : indices_) {
    if (!i.block) continue;
    const bool natural =
        i.tile > 0 && axis < extents.size() && extents[axis] == i.tile && r_.Chance(80);
    if (natural) {
      const std::string offset =
          absl::StrCat(i.name, "*", i.tile_text, " + ", element_indices_[axis].name);
      t.shape.push_back({i.dim_text, i.dim});
      at.push_back(offset);
      guards.push_back(absl::StrCat(offset, " < ", i.dim_text));
      ++axis;
    } else {
      t.shape.push_back({absl::StrCat(i.hi + 1), i.hi + 1});
      at.push_back(i.name);
    }
  }
  for (; axis < extents.size(); ++axis) {
    t.shape.push_back({absl::StrCat(extents[axis]), extents[axis]});
    at.push_back(element_indices_[axis].name);
  }
  int64_t size = 1;
  for (const Extent& e : t.shape) size *= e.value;
  if (size > 30000 || t.shape.size() > 8) return;
  Declare("out", t, false);
  const ScalarType type = ComputeType(t.dtype);
  Term v = Expr(type, 2);
  if (type != ScalarType::kBool) {
    if (v.type == ScalarType::kBool || (type == ScalarType::kInt && IsFloat(v.type)))
      v = Literal(type);
    v = Fit(v, IsFloat(type) ? -16 : std::max(-100.0, MinValue(t.dtype)), IsFloat(type) ? 16 : 100);
  }
  const std::string store = absl::StrCat(ElementText(t.name, at), " = ", v.text);
  if (guards.empty()) return Line(store);
  Line(absl::StrCat("if ", absl::StrJoin(guards, " and "), " { ", store, " }"));
}

void Gen::AtomicElement() {
  TensorDecl t;
  t.name = Name("A");
  t.dtype = r_.Pick({DType::kI32, DType::kU32, DType::kI64, DType::kI32, DType::kF32, DType::kF64,
                     DType::kF16, DType::kBF16});
  const int rank = static_cast<int>(r_.Range(1, 2));
  std::vector<std::string> at;
  for (int d = 0; d < rank; ++d) {
    const int64_t n = r_.Range(1, 9);
    t.shape.push_back({absl::StrCat(n), n});
  }
  for (const Extent& e : t.shape) at.push_back(IndexTerm(e.value).text);
  const ScalarType type = ComputeType(t.dtype);
  Term v = Expr(type, 2);
  if (v.type == ScalarType::kBool || (type == ScalarType::kInt && IsFloat(v.type)))
    v = Literal(type);
  v = Fit(v, -3, 3);
  double count = trips_ * blocks_;
  for (const Index& i : element_indices_) count *= static_cast<double>(i.hi + 1);
  const bool half = t.dtype == DType::kF16 || t.dtype == DType::kBF16;
  const char* op = half && count > 2000 ? "max" : r_.Pick({"add", "add", "max", "min"});
  Declare("inout", t, false);
  Line(absl::StrCat("atomic_", op, " ", v.text, " -> ", ElementText(t.name, at)));
}

void Gen::ElementStatement(const std::vector<int>& targets,
                           const std::vector<std::vector<std::string>>& at, int depth) {
  const size_t t = static_cast<size_t>(r_.Range(0, static_cast<int64_t>(targets.size()) - 1));
  const size_t lets = floats_.size(), ints = ints_.size(), bools = bools_.size(),
               arrays = local_arrays_.size();
  const auto restore = [&] {
    floats_.resize(lets), ints_.resize(ints), bools_.resize(bools), local_arrays_.resize(arrays);
  };
  switch (depth <= 0 ? 0 : r_.Weighted({5, 3, 2, 2, 1, 1})) {
    case 0:
      ElementStore(tiles_[static_cast<size_t>(targets[t])], at[t], false);
      break;
    case 1: {
      Open(absl::StrCat("if ", BoolExpr(2).text, " {"));
      ElementStatement(targets, at, depth - 1);
      restore();
      if (r_.Chance(40)) {
        --indent_;
        Open("} else {");
        ElementStatement(targets, at, depth - 1);
        restore();
      }
      Close();
      break;
    }
    case 2: {
      const std::string q = Name("q");
      Term end{absl::StrCat(r_.Range(0, 4)), ScalarType::kInt, 0, 4};
      if (r_.Chance(40)) end = Fit(UniformInt(1), 0, 3);
      const int64_t begin = r_.Chance(25) ? r_.Range(-1, 2) : 0;
      Open(absl::StrCat(r_.Pick({"for ", "serial ", "unrolled ", "vectorized "}), q, " in ",
                        begin != 0 ? absl::StrCat(begin, "..") : "", end.text,
                        r_.Chance(25) ? " down" : "", " {"));
      element_indices_.push_back(
          {q, begin, std::max<int64_t>(begin, static_cast<int64_t>(end.hi) - 1)});
      ElementStatement(targets, at, depth - 1);
      element_indices_.pop_back();
      restore();
      Close();
      break;
    }
    case 3: {
      const ScalarType type =
          r_.Pick({ScalarType::kInt, ScalarType::kF32, ScalarType::kF64, ScalarType::kBool});
      const Term v = Expr(type, 3);
      const std::string name = Name("t");
      Line(absl::StrCat(name, " = ", v.text));
      const Scalar s{{name, v.type, v.lo, v.hi, v.exact}};
      (IsFloat(v.type) ? floats_ : v.type == ScalarType::kInt ? ints_ : bools_).push_back(s);
      break;
    }
    case 4:
      LocalArray();
      break;
    default:
      AtomicElement();
  }
}

void Gen::ParallelBody(const std::vector<int>& targets,
                       const std::vector<std::vector<std::string>>& at,
                       const std::vector<int64_t>& extents, bool first_defines, size_t) {
  const size_t lets = floats_.size(), ints = ints_.size(), bools = bools_.size();
  if (first_defines) ElementStore(tiles_[static_cast<size_t>(targets[0])], at[0], true);
  for (size_t i = 0; i < targets.size(); ++i) {
    const Tile& t = tiles_[static_cast<size_t>(targets[i])];
    own_elements_.push_back({&t, ElementText(t.name, at[i])});
  }
  const int count = static_cast<int>(r_.Range(first_defines ? 0 : 1, 3));
  for (int i = 0; i < count; ++i) ElementStatement(targets, at, 2);
  if (r_.Chance(25)) GlobalElement(extents);
  floats_.resize(lets), ints_.resize(ints), bools_.resize(bools);
  local_arrays_.clear();
  own_elements_.clear();
}

bool Gen::OpParallel() {
  // Targets: one new tile or one or two present ones; each iteration writes one element of each.
  std::vector<int> targets;
  const bool define = r_.Chance(45) || tiles_.empty();
  if (define) {
    NewTile(AnyDType(), SomeExtents(static_cast<int>(r_.Pick({1, 2, 2, 2, 3}))));
    tiles_.back().exact = false;
    targets.push_back(static_cast<int>(tiles_.size()) - 1);
  } else {
    std::vector<int> fit;
    for (size_t i = 0; i < tiles_.size(); ++i) {
      if (CanWrite(tiles_[i]) && tiles_[i].kind != TileKind::kAcc)
        fit.push_back(static_cast<int>(i));
    }
    if (fit.empty()) return false;
    targets.push_back(r_.Pick(fit));
    const Tile& first = tiles_[static_cast<size_t>(targets[0])];
    for (int i : fit) {
      const Tile& t = tiles_[static_cast<size_t>(i)];
      if (t.root != first.root && t.extents == first.extents && r_.Chance(40) && targets.size() < 2)
        targets.push_back(i);
    }
  }
  const Tile first = tiles_[static_cast<size_t>(targets[0])];
  std::vector<int64_t> extents = first.extents;
  std::vector<size_t> dims;
  for (size_t d = 0; d < extents.size(); ++d) dims.push_back(d);
  if (r_.Chance(20)) r_.Shuffle(dims);  // the loops' order
  std::vector<std::string> vars(extents.size()), at(extents.size()), heads, extent_texts;
  std::vector<int64_t> loop_extents;
  double work = 1;
  for (size_t d : dims) {
    const int64_t n = !define && r_.Chance(15) ? r_.Range(1, extents[d]) : extents[d];
    vars[d] = Name("i");
    at[d] = r_.Chance(88) ? vars[d] : absl::StrCat(extents[d] - 1, " - ", vars[d]);
    heads.push_back(vars[d]);
    loop_extents.push_back(n);
    extent_texts.push_back(n == extents[d] ? ExtentText(n) : absl::StrCat(n));
    element_indices_.push_back({vars[d], 0, n - 1});
    work *= static_cast<double>(n);
  }
  Open(heads.size() == 1 && r_.Chance(70)
           ? absl::StrCat("parallel ", heads[0], " in ", extent_texts[0], " {")
           : absl::StrCat("parallel ", absl::StrJoin(heads, ", "), " in [",
                          absl::StrJoin(extent_texts, ", "), "] {"));
  for (int i : targets) {
    tiles_[static_cast<size_t>(i)].exact = false;
    hidden_roots_.push_back(tiles_[static_cast<size_t>(i)].root);
    for (Tile& t : tiles_) {
      if (t.root == tiles_[static_cast<size_t>(i)].root) t.exact = false;
    }
  }
  in_parallel_ = true;
  ParallelBody(targets, std::vector<std::vector<std::string>>(targets.size(), at), loop_extents,
               define, 0);
  in_parallel_ = false;
  hidden_roots_.clear();
  element_indices_.clear();
  Close();
  Charge(work * 8);
  return true;
}

}  // namespace tl::generator
