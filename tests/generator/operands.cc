// Tensors of the signature, and windows of them.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/generator/gen.h"

namespace tl::generator {
namespace {

constexpr int64_t kMaxTensor = 30000;  // elements

int64_t SizeOf(const std::vector<Extent>& shape) {
  int64_t n = 1;
  for (const Extent& e : shape) n *= std::max<int64_t>(e.value, 1);
  return n;
}

// The `:` behind window dims. Where the window has as many dims as the tensor they mean nothing.
std::string WindowText(const std::string& name, const std::vector<std::string>& offsets,
                       const std::vector<bool>& marks, bool all) {
  std::string text = name + "[";
  for (size_t d = 0; d < offsets.size(); ++d) {
    absl::StrAppend(&text, d ? ", " : "", offsets[d], marks[d] && !all ? ":" : "");
  }
  return text + "]";
}

}  // namespace

DType Gen::AnyDType() { return r_.Chance(7) ? DType::kBool : NumberDType(); }

DType Gen::NumberDType() {
  if (r_.Chance(60)) return FloatDType();
  return r_.Pick({DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kI32,
                  DType::kU32, DType::kI64});
}

DType Gen::FloatDType() {
  return r_.Pick({DType::kF32, DType::kF32, DType::kF32, DType::kF16, DType::kF16, DType::kBF16,
                  DType::kBF16, DType::kF64, DType::kE4M3, DType::kE5M2});
}

std::vector<int64_t> Gen::SomeExtents(int rank) {
  std::vector<int64_t> extents;
  for (int i = 0; i < rank; ++i) extents.push_back(r_.Pick(edges_));
  const auto size = [&] {
    return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  };
  const int64_t most = warpgroups() ? 8192 : 1536;
  while (size() > most) *std::max_element(extents.begin(), extents.end()) = r_.Range(1, 8);
  return extents;
}

// A parameter of that value, or the number.
std::string Gen::ExtentText(int64_t e) {
  for (const auto& [name, value] : int_params_) {
    if (value == e && r_.Chance(60)) return name;
    if (value * 2 == e && r_.Chance(30)) return absl::StrCat(name, "*2");
  }
  return absl::StrCat(e);
}

// An offset for a window dim of that extent, and an extent of the tensor that goes with it:
// somewhere inside, across the edge or outside.
std::string Gen::SomeOffset(int64_t extent, Extent* dim) {
  std::vector<const Index*> natural, other;
  for (const Index& i : indices_) {
    (i.tile == extent ? natural : other).push_back(&i);
  }
  if (!natural.empty() && r_.Chance(80)) {
    const Index& i = *r_.Pick(natural);
    *dim = {i.dim_text, i.dim};
    return absl::StrCat(i.name, "*", i.tile_text);
  }
  const int64_t shift = r_.Chance(60) ? 0 : r_.Range(-3, 3);
  if (!other.empty() && r_.Chance(60)) {
    const Index& i = *r_.Pick(other);
    const int64_t step = r_.Chance(60) ? extent : r_.Pick({1, 2, 3});
    const int64_t end = std::max<int64_t>(1, i.hi * step + extent + shift - r_.Range(-1, 3));
    *dim = {absl::StrCat(end), end};
    const std::string sign = shift < 0 ? absl::StrCat(" - ", -shift) : absl::StrCat(" + ", shift);
    return absl::StrCat(i.name, "*", step, shift == 0 ? "" : sign);
  }
  const int64_t end = std::max<int64_t>(1, extent + shift - (r_.Chance(60) ? 0 : r_.Range(-2, 2)));
  *dim = {absl::StrCat(end), end};
  if (end == extent) dim->text = ExtentText(extent);
  if (!dims_.empty() && r_.Chance(25)) {
    const Dim& d = r_.Pick(dims_);
    *dim = {d.name, d.value};
    if (r_.Chance(40)) *dim = {absl::StrCat(d.name, " + ", extent), d.value + extent};
  }
  return absl::StrCat(shift);
}

// Strides: contiguous, permuted or padded. Overlap only where nobody writes.
std::string Gen::LayoutText(const TensorDecl& tensor, bool may_overlap) {
  const int rank = static_cast<int>(tensor.shape.size());
  if (rank >= 2 && r_.Chance(8)) {
    return absl::StrCat(" prepacked[", r_.Pick({1, 2, 4, 8, 16, 3}), ", ",
                        r_.Pick({1, 2, 4, 8, 16, 5}), "]");
  }
  if (rank == 0 || !r_.Chance(18)) return "";
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (r_.Chance(40)) r_.Shuffle(order);
  std::vector<std::string> text(static_cast<size_t>(rank));
  std::vector<int64_t> value(static_cast<size_t>(rank));
  std::vector<bool> dynamic(static_cast<size_t>(rank));
  int64_t step = r_.Chance(80) ? 1 : 2;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(order[i]);
    value[d] = may_overlap && r_.Chance(8) ? 0 : step;
    dynamic[d] = r_.Chance(50);
    text[d] = dynamic[d] ? "?" : absl::StrCat(value[d]);
    step =
        step * std::max<int64_t>(tensor.shape[d].value, 1) + (r_.Chance(30) ? r_.Range(1, 5) : 0);
  }
  for (size_t d = 0; d < value.size(); ++d) {
    if (dynamic[d]) program_.strides.push_back(value[d]);
  }
  return absl::StrCat(" strides[", absl::StrJoin(text, ", "), "]");
}

void Gen::InitClause(TensorDecl& tensor) {
  const ScalarType type = ComputeType(tensor.dtype);
  tensor.exact = true;
  tensor.lo = 0, tensor.hi = type == ScalarType::kBool ? 1 : 8;
  if (IsFloat(type)) tensor.lo = -1, tensor.hi = 1;
  if (r_.Chance(60)) return;
  std::string clause;
  if (type == ScalarType::kBool) return;
  const int64_t wide = type == ScalarType::kInt && tensor.dtype != DType::kI8 ? 200 : 4;
  switch (r_.Weighted({5, 2, 2})) {
    case 0: {
      const bool is_signed = MinValue(tensor.dtype) < 0;
      tensor.hi = static_cast<double>(r_.Range(1, wide));
      tensor.lo = is_signed ? -static_cast<double>(r_.Range(0, 4)) : 0;
      clause =
          absl::StrCat("uniform(", Number(tensor.lo, type), ", ", Number(tensor.hi, type), ")");
      break;
    }
    case 1:
      if (!IsFloat(type)) return;
      tensor.lo = -8, tensor.hi = 8;
      clause = "normal(0, 1)";
      break;
    default:
      tensor.lo = tensor.hi = static_cast<double>(r_.Range(0, 3));
      clause = absl::StrCat("constant(", Number(tensor.lo, type), ")");
  }
  absl::StrAppend(&decls_, "  init ", tensor.name, " = ", clause, "\n");
}

void Gen::Declare(std::string_view role, TensorDecl& tensor, bool may_overlap) {
  std::vector<std::string> shape;
  for (const Extent& e : tensor.shape) shape.push_back(e.text);
  std::string dtype(tl::Name(tensor.dtype));
  for (const auto& [name, value] : dtype_params_) {
    if (value == tensor.dtype && r_.Chance(70)) dtype = name;
  }
  absl::StrAppend(&decls_, "  ", role, " ", tensor.name, ": tensor<", dtype, ">[",
                  absl::StrJoin(shape, ", "), "]",
                  role == "workspace" ? "" : LayoutText(tensor, may_overlap),
                  role == "in" && r_.Chance(10) ? " const" : "", "\n");
  if (role == "in" || role == "inout") InitClause(tensor);
}

std::string Gen::InputWindow(DType dtype, const std::vector<int64_t>& extents, TensorDecl* decl) {
  decl->name = Name("X");
  decl->dtype = dtype;
  std::vector<std::string> offsets;
  std::vector<bool> marks;
  for (int64_t e : extents) {
    Extent dim;
    offsets.push_back(SomeOffset(e, &dim));
    decl->shape.push_back(dim);
    marks.push_back(true);
  }
  while (decl->shape.size() < 4 && r_.Chance(22)) {
    const int64_t n = r_.Range(1, 4);
    const int64_t at = r_.Range(0, static_cast<int64_t>(offsets.size()));
    decl->shape.insert(decl->shape.begin() + at, {absl::StrCat(n), n});
    std::string offset = IndexTerm(n).text;
    if (r_.Chance(15)) offset = absl::StrCat(n);  // outside: zeros
    offsets.insert(offsets.begin() + at, offset);
    marks.insert(marks.begin() + at, false);
  }
  while (SizeOf(decl->shape) > kMaxTensor) {
    auto most =
        std::max_element(decl->shape.begin(), decl->shape.end(),
                         [](const Extent& a, const Extent& b) { return a.value < b.value; });
    *most = {"7", 7};
  }
  Declare("in", *decl, true);
  inputs_.push_back(*decl);
  return WindowText(decl->name, offsets, marks, offsets.size() == extents.size() && r_.Chance(60));
}

std::string Gen::WindowOf(const TensorDecl& tensor, const std::vector<int64_t>& extents) {
  const size_t rank = tensor.shape.size(), tile_rank = extents.size();
  std::vector<bool> marks(rank, false);
  for (size_t left = tile_rank; left > 0;) {
    const size_t d = static_cast<size_t>(r_.Range(0, static_cast<int64_t>(rank) - 1));
    if (!marks[d]) marks[d] = true, --left;
  }
  std::vector<std::string> offsets;
  size_t i = 0;
  for (size_t d = 0; d < rank; ++d) {
    Extent unused;
    if (marks[d]) {
      offsets.push_back(SomeOffset(extents[i++], &unused));
    } else {
      offsets.push_back(IndexTerm(std::max<int64_t>(tensor.shape[d].value, 1)).text);
    }
  }
  return WindowText(tensor.name, offsets, marks, false);
}

std::string Gen::OutputWindow(DType dtype, const std::vector<int64_t>& extents,
                              std::string_view role, TensorDecl* decl) {
  decl->name = Name(role == "workspace" ? "W" : role == "inout" ? "Z" : "Y");
  decl->dtype = dtype;
  std::vector<const Index*> left;
  for (const Index& i : indices_) {
    if (i.block || (role != "workspace" && r_.Chance(60) && i.lo >= 0 && i.hi < 20))
      left.push_back(&i);
  }
  std::vector<std::string> offsets;
  std::vector<bool> marks(extents.size(), true);
  for (int64_t e : extents) {
    const auto natural =
        std::find_if(left.begin(), left.end(), [&](const Index* i) { return i->tile == e; });
    if (natural != left.end() && r_.Chance(85)) {
      offsets.push_back(absl::StrCat((*natural)->name, "*", (*natural)->tile_text));
      decl->shape.push_back({(*natural)->dim_text, (*natural)->dim});
      left.erase(natural);
      continue;
    }
    const int64_t shift = role == "workspace" || r_.Chance(80) ? 0 : r_.Range(1, 2);
    const int64_t cut = role == "workspace" || r_.Chance(70) ? 0 : r_.Range(-2, e / 2);
    offsets.push_back(absl::StrCat(shift));
    decl->shape.push_back({absl::StrCat(e + shift - cut), e + shift - cut});
  }
  for (const Index* i : left) {
    const int64_t at = r_.Chance(60) ? 0 : r_.Range(0, static_cast<int64_t>(offsets.size()));
    decl->shape.insert(decl->shape.begin() + at, {absl::StrCat(i->hi + 1), i->hi + 1});
    offsets.insert(offsets.begin() + at, i->name);
    marks.insert(marks.begin() + at, false);
  }
  if (decl->shape.size() > 8 || SizeOf(decl->shape) > kMaxTensor) return "";
  Declare(role, *decl, false);
  const bool all = offsets.size() == extents.size() && r_.Chance(60);
  return WindowText(decl->name, offsets, marks, all);
}

// A tensor of `count` page numbers below `below`.
const TensorDecl* Gen::IndexTensor(int64_t below, int64_t count) {
  TensorDecl t;
  t.name = Name("P");
  t.dtype = r_.Pick({DType::kI32, DType::kI64, DType::kU16, DType::kI16, DType::kU8});
  t.shape = {{absl::StrCat(count), count}};
  t.lo = 0, t.hi = static_cast<double>(below - 1);
  std::string init = absl::StrCat("uniform(0, ", below - 1, ")");
  if (below >= count && r_.Chance(60)) init = absl::StrCat("pages(", below, ")");
  if (below == count && r_.Chance(40)) init = "permutation()";
  if (r_.Chance(25)) init = absl::StrCat("offsets(", below - 1, ")");
  absl::StrAppend(&decls_, "  in ", t.name, ": tensor<", tl::Name(t.dtype), ">[", count,
                  "]\n  init ", t.name, " = ", init, "\n");
  index_inputs_.push_back(t);
  return &index_inputs_.back();
}

double LowestOf(DType t) { return std::max(MinValue(t), -kMaxInt); }
double HighestOf(DType t) { return std::min(MaxValue(t), kMaxInt); }

}  // namespace tl::generator
