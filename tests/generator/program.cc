// Dims, parameters, launches: the program as a whole.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/generator/gen.h"

namespace tl::generator {

void Gen::MakeDims() {
  const int count = static_cast<int>(r_.Range(0, 3));
  for (int i = 0; i < count; ++i) {
    Dim d;
    d.name = absl::StrCat("N", i);
    d.value = r_.Weighted({1, 2, 8}) == 0 ? 0
              : r_.Chance(25)             ? r_.Pick({1, 2, 3})
                              : r_.Pick({5, 7, 8, 11, 13, 16, 17, 24, 31, 32, 33, 40, 47, 64, 65});
    d.fixed = r_.Chance(30);
    dims_.push_back(d);
  }
}

void Gen::MakeParams() {
  std::vector<std::string> params;
  const int ints = static_cast<int>(r_.Range(0, 2));
  for (int i = 0; i < ints; ++i) {
    const std::string name = absl::StrCat("b", i);
    const int64_t value = r_.Pick({4, 8, 12, 16, 5, 7, 1, 32});
    int_params_.push_back({name, value});
    const bool given = r_.Chance(50);
    params.push_back(absl::StrCat(name, ": int", given ? "" : absl::StrCat(" = ", value)));
    if (given) program_.values.push_back({name, absl::StrCat(value)});
  }
  if (r_.Chance(30)) {
    const DType t = NumberDType();
    dtype_params_.push_back({"t0", t});
    params.push_back("t0: dtype");
    program_.values.push_back({"t0", std::string(tl::Name(t))});
  }
  if (!params.empty()) params_ = absl::StrCat("; ", absl::StrJoin(params, ", "));
}

void Gen::MakeScalars() {
  const int count = static_cast<int>(r_.Range(0, 2));
  for (int i = 0; i < count; ++i) {
    Scalar s;
    s.dtype =
        r_.Chance(50) ? r_.Pick({DType::kI32, DType::kI64, DType::kF32, DType::kF64}) : AnyDType();
    const ScalarType type = ComputeType(s.dtype);
    s.term = {Name("p"), type, IsFloat(type) ? -1.0 : 0.0,
              IsFloat(type) || type == ScalarType::kBool ? 1.0 : 8.0};
    absl::StrAppend(&decls_, "  in ", s.term.text, ": ", tl::Name(s.dtype), "\n");
    (IsFloat(type) ? floats_ : type == ScalarType::kInt ? ints_ : bools_).push_back(s);
  }
}

std::string Gen::LaunchAttrs(bool groups) {
  std::string attrs;
  const bool stays = r_.Chance(12);
  if (stays) attrs += " persistent";
  if (groups) absl::StrAppend(&attrs, " groups=", groups_);
  if (stays && !groups && r_.Chance(40)) {
    absl::StrAppend(&attrs, " owner=group groups=", r_.Range(1, 3));
  }
  if (warpgroups()) {
    absl::StrAppend(&attrs, " threads=", r_.Pick({128, 128, 128, 256}));
  } else if (r_.Chance(15)) {
    absl::StrAppend(&attrs, " threads=", r_.Pick({32, 64, 128}));
  }
  if (r_.Chance(10)) absl::StrAppend(&attrs, " blocks=", r_.Pick({"1", "2", "4"}));
  if (r_.Chance(15))
    absl::StrAppend(&attrs, " order=", r_.Pick({"row", "col", "row(2)", "col(3)"}));
  if (r_.Chance(8)) absl::StrAppend(&attrs, " producer=", r_.Pick({"auto", "warp", "self"}));
  if (r_.Chance(15))
    absl::StrAppend(&attrs, " stores=", r_.Pick({"auto", "threads", "bulk", "bulk"}));
  return attrs;
}

// One launch; its axes step through dims or count.
void Gen::MakeLaunch(bool with_axes) {
  edges_.clear();
  for (int i = static_cast<int>(r_.Range(2, 4)); i > 0; --i) {
    if (warpgroups()) {
      edges_.push_back(r_.Pick({8, 16, 24, 32, 48, 64, 64, 64, 72, 80, 128}));
      continue;
    }
    edges_.push_back(r_.Pick({1,  2,  3,  4,  5,  6,  7,  8,  8,  12, 13,  16, 16,
                              17, 20, 24, 31, 32, 33, 40, 48, 64, 96, 160, 229}));
  }
  for (const auto& p : int_params_) edges_.push_back(p.second);
  std::vector<std::string> axes;
  blocks_ = 1;
  const int count = with_axes ? static_cast<int>(r_.Pick({0, 1, 1, 1, 2, 2, 3})) : 1;
  for (int i = 0; i < count; ++i) {
    Index axis;
    axis.name = Name("m");
    axis.block = true;
    int64_t extent = r_.Range(1, 3);
    std::string text = absl::StrCat(extent);
    if (!dims_.empty() && r_.Chance(75)) {
      const Dim& d = r_.Pick(dims_);
      int64_t tile = r_.Pick(edges_);
      const int64_t most = blocks_ > 4 ? 2 : 4;
      if ((d.value + tile - 1) / tile > most) tile = (d.value + most - 1) / most;
      extent = (d.value + tile - 1) / tile;
      axis.tile = tile;
      axis.tile_text = ExtentText(tile);
      axis.dim = d.value;
      axis.dim_text = d.name;
      text = absl::StrCat("ceildiv(", d.name, ", ", axis.tile_text, ")");
      edges_.push_back(tile);
      edges_.push_back(tile);
    }
    axis.lo = 0, axis.hi = std::max<int64_t>(extent, 1) - 1;
    blocks_ *= static_cast<double>(std::max<int64_t>(extent, 1));
    axes.push_back(absl::StrCat(axis.name, " in ", text));
    indices_.push_back(axis);
  }
  groups_ = channels_ || r_.Chance(20) ? static_cast<int>(r_.Pick({2, 2, 3})) : 1;
  Open(absl::StrCat("launch ", absl::StrJoin(axes, ", "), LaunchAttrs(groups_ > 1), " {"));
}

// A launch that fills workspaces and one that reads them.
void Gen::MakeWorkspaceLaunches() {
  for (Dim& d : dims_)
    d.value = std::max<int64_t>(d.value, 1);  // without a block nothing would be filled
  const Scope scope = Enter();
  MakeLaunch(true);
  Body(static_cast<int>(r_.Range(2, 5)), 1);
  while (!OpLoad()) {
  }
  const Tile t = tiles_.back();
  TensorDecl w;
  const DType to = t.dtype == DType::kBool || r_.Chance(60) ? t.dtype : NumberDType();
  const std::string window = OutputWindow(to, t.extents, "workspace", &w);
  if (!window.empty()) Line(absl::StrCat("copy ", t.name, " -> ", window));
  Close();
  Leave(scope);
  if (window.empty()) return;
  w.lo = LowestOf(to), w.hi = HighestOf(to);
  if (IsFloat(to)) w.lo = -200, w.hi = 200;
  w.exact = false;
  tile_bytes_ = 0;
  inputs_.push_back(w);
  MakeLaunch(true);
  const std::vector<int64_t> extents =
      SomeExtents(static_cast<int>(std::min<size_t>(w.shape.size(), 2)));
  const std::string from = WindowOf(w, extents);
  Tile& x = NewTile(to, extents);
  x.lo = w.lo, x.hi = w.hi, x.exact = false;
  Line(absl::StrCat("copy ", from, " -> ", x.name));
  Body(static_cast<int>(r_.Range(1, 4)), 1);
  Store(Tile(tiles_[scope.tiles]));
  Close();
  Leave(scope);
}

// Work split into even runs, and what puts the pieces together.
void Gen::MakeSplitLaunches() {
  const Scope scope = Enter();
  const int64_t items = r_.Range(1, 5), parts = r_.Range(1, 9), width = r_.Pick({4, 7, 16, 33}),
                most = r_.Range(0, 6);
  edges_ = {width, r_.Range(1, 8)};
  const std::string p = Name("m"), b = Name("b"), e = r_.Pick({"f32", "f64"});
  const std::string begin = Name("k"), end = Name("k"), whole = Name("k");
  absl::StrAppend(&decls_, "  in len: tensor<", r_.Pick({"i32", "i64", "u8"}), ">[", items,
                  "], U: tensor<f16>[", items, ", ", most + 1, ", ", width,
                  "]\n  init len = uniform(0, ", most, ")\n  workspace Q: tensor<", e, ">[",
                  items + parts, ", ", width, "], S: tensor<i32>[", items + parts,
                  "]\n  out R: tensor<f32>[", items, ", ", width, "], C: tensor<i32>[", items,
                  ", 3]\n");
  Open(absl::StrCat("launch segment(", b, ", ", begin, ", ", end, ", ", p, ", ", whole,
                    ") in split(b in ", items, ": len[b], ", parts, ")", LaunchAttrs(false), " {"));
  Line(absl::StrCat("acc = alloc_fragment<", e, ">[", width, "]"));
  Line(absl::StrCat("u = alloc_fragment<f16>[", width, "]"));
  Line("clear acc");
  const std::string loop = r_.Pick({"for", "pipelined"});
  Line(absl::StrCat(loop, " i in ", begin, "..", end, loop == "for" ? "" : " stages=2", " {"));
  Line(absl::StrCat("  copy U[", b, ", i, 0:] -> u"));
  Line(absl::StrCat("  parallel c in ", width, " { acc[c] += u[c] * (i + 1) }"));
  Line("}");
  Line(absl::StrCat("copy acc -> Q[", p, ", 0:]"));
  Line(absl::StrCat("parallel i in 1 { S[", p, "] = if ", whole, " then ", end, " - ", begin,
                    " else -1 }"));
  indices_.push_back({b, 0, items - 1});
  indices_.push_back({p, 0, items + parts - 1});
  indices_.back().block = true;
  indices_[indices_.size() - 2].block = false;
  trips_ = 1, blocks_ = static_cast<double>(items + parts);
  Body(static_cast<int>(r_.Range(0, 2)), 1);
  Close();
  Leave(scope);
  Open(absl::StrCat("launch ", b, " in ", items, LaunchAttrs(false), " {"));
  Line(absl::StrCat("sum, part = alloc_fragment<", e, ">[", width, "]"));
  Line("clear sum");
  Line("n = alloc_var<i32>(0)");
  Line("s = alloc_var<i32>(0)");
  Line(absl::StrCat("for q in parts(", b, ") {"));
  Line("  copy Q[q, 0:] -> part");
  Line(absl::StrCat("  parallel c in ", width, " { sum[c] += part[c] }"));
  Line("  n += 1");
  Line("  s += S[q]");
  Line("}");
  Line(absl::StrCat("copy sum -> R[", b, ", 0:]"));
  Line(absl::StrCat("parallel i in 1 { C[", b, ", 0] = n  C[", b, ", 1] = s  C[", b, ", 2] = len[",
                    b, "] }"));
  Close();
}

void Gen::Finish() {
  std::vector<std::string> dims;
  for (const Dim& d : dims_) {
    dims.push_back(absl::StrCat(d.name, ": dim"));
    if (d.fixed) {
      program_.values.push_back({d.name, absl::StrCat(d.value)});
    } else {
      program_.dims.push_back(d.value);
    }
  }
  program_.text = absl::StrCat("tl 1.0\nkernel k(", absl::StrJoin(dims, ", "), params_, ") {\n",
                               decls_, body_, "}\n");
}

Program Gen::Run() {
  channels_ = r_.Chance(6);  // GPUs refuse them for now
  MakeDims();
  MakeParams();
  MakeScalars();
  switch (r_.Weighted({16, 3, 2})) {
    case 0: {
      MakeLaunch(true);
      Body(static_cast<int>(r_.Range(3, 9)), 2);
      if (tiles_.empty()) OpLoad();
      for (int i = 0; i < 2; ++i) OpStore();
      Close();
      break;
    }
    case 1:
      MakeWorkspaceLaunches();
      break;
    default:
      MakeSplitLaunches();
  }
  Finish();
  return program_;
}

Program Generate(uint64_t seed, Kind kind) { return Gen(seed, kind).Run(); }

}  // namespace tl::generator
