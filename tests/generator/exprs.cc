// Expressions with known ranges.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/generator/gen.h"

namespace tl::generator {
namespace {

constexpr double kMaxFloat = 1e4;  // intermediate results are kept below

bool IsNumber(ScalarType t) { return t != ScalarType::kBool; }

// A power of two above everything in the range: what bit operations stay below.
double BitCover(const Term& a, const Term& b) {
  const double top = std::max({std::fabs(a.lo), std::fabs(a.hi), std::fabs(b.lo), std::fabs(b.hi)});
  return std::exp2(std::floor(std::log2(top + 1)) + 1);
}

}  // namespace

std::string Number(double v, ScalarType type) {
  if (!IsFloat(type)) return std::to_string(static_cast<int64_t>(v));
  std::string s = absl::StrCat(v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

Term Gen::Literal(ScalarType type) {
  if (type == ScalarType::kBool) {
    const bool v = r_.Chance(50);
    return {v ? "true" : "false", type, v ? 1.0 : 0.0, v ? 1.0 : 0.0};
  }
  double v = static_cast<double>(r_.Range(0, 9));
  if (IsFloat(type)) v = r_.Pick({0.0, 0.125, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 0.1, 0.3});
  Term t{Number(v, type), type, v, v};
  if (r_.Chance(25)) t = {absl::StrCat("(-", t.text, ")"), type, -v, -v};
  return t;
}

// An element of a tile, wherever it may be read.
Term Gen::Element(const Tile& tile) {
  Term t{tile.name, ComputeType(tile.dtype), tile.lo, tile.hi, tile.exact};
  t.text += "[";
  for (size_t d = 0; d < tile.extents.size(); ++d) {
    absl::StrAppend(&t.text, d ? ", " : "", IndexTerm(tile.extents[d]).text);
  }
  t.text += "]";
  return t;
}

const Tile* Gen::ReadableTile(ScalarType type) {
  std::vector<const Tile*> fit;
  for (const Tile& t : tiles_) {
    const bool hidden =
        std::find(hidden_roots_.begin(), hidden_roots_.end(), t.root) != hidden_roots_.end();
    if (ComputeType(t.dtype) != type || hidden || t.kind == TileKind::kAcc || !CanRead(t)) continue;
    if (!in_parallel_ && t.kind != TileKind::kShared) continue;
    fit.push_back(&t);
  }
  return fit.empty() ? nullptr : r_.Pick(fit);
}

// An element of an input, inside its shape.
Term Gen::ReadTensor(ScalarType type) {
  std::vector<const TensorDecl*> fit;
  for (const TensorDecl& t : inputs_) {
    if (ComputeType(t.dtype) == type) fit.push_back(&t);
  }
  for (const TensorDecl& t : index_inputs_) {
    if (type == ScalarType::kInt) fit.push_back(&t);
  }
  if (fit.empty()) return Literal(type);
  const TensorDecl& tensor = *r_.Pick(fit);
  Term t{absl::StrCat(tensor.name, "["), type, tensor.lo, tensor.hi, tensor.exact};
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d].value < 1) return Literal(type);
    absl::StrAppend(&t.text, d ? ", " : "", IndexTerm(tensor.shape[d].value).text);
  }
  t.text += "]";
  return t;
}

Term Gen::Leaf(ScalarType type) {
  const std::vector<Scalar>& scalars = IsFloat(type)              ? floats_
                                       : type == ScalarType::kInt ? ints_
                                                                  : bools_;
  switch (r_.Weighted({3, 6, 3, 2, 1, 1})) {
    case 0:
      return Literal(type);
    case 1:
      if (!own_elements_.empty() && r_.Chance(50)) {
        const auto& [tile, text] = r_.Pick(own_elements_);
        if (ComputeType(tile->dtype) == type) return {text, type, tile->lo, tile->hi, tile->exact};
      }
      if (const Tile* tile = ReadableTile(type)) return Element(*tile);
      return Literal(type);
    case 2: {
      if (type == ScalarType::kInt) {
        const auto& list = !element_indices_.empty() && r_.Chance(70) ? element_indices_ : indices_;
        if (list.empty()) return Literal(type);
        const Index& i = r_.Pick(list);
        return {i.name, type, static_cast<double>(i.lo), static_cast<double>(i.hi)};
      }
      [[fallthrough]];
    }
    case 3: {
      std::vector<const Scalar*> fit;
      for (const Scalar& s : scalars) {
        if (s.term.type == type) fit.push_back(&s);
      }
      return fit.empty() ? Literal(type) : r_.Pick(fit)->term;
    }
    case 4:
      if (!local_arrays_.empty()) {
        const auto& [array, length] = r_.Pick(local_arrays_);
        if (array.type == type) {
          Term t = array;
          t.text = absl::StrCat(array.text, "[", IndexTerm(length).text, "]");
          return t;
        }
      }
      return Literal(type);
    default:
      return ReadTensor(type);
  }
}

Term Gen::Fit(Term t, double lo, double hi) {
  if (t.lo >= lo && t.hi <= hi) return t;
  // f32 values beside f64 bounds would make the literals' type matter; bounds are exact in both.
  return {absl::StrCat("clamp(", t.text, ", ", Number(lo, t.type), ", ", Number(hi, t.type), ")"),
          t.type, std::clamp(t.lo, lo, hi), std::clamp(t.hi, lo, hi), t.exact};
}

Term Gen::Arithmetic(const char* op, const Term& a, const Term& b) {
  Term t{absl::StrCat("(", a.text, " ", op, " ", b.text, ")"), std::max(a.type, b.type), 0, 0,
         a.exact && b.exact && !IsFloat(std::max(a.type, b.type))};
  const double products[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  switch (op[0]) {
    case '+':
      t.lo = a.lo + b.lo, t.hi = a.hi + b.hi;
      break;
    case '-':
      t.lo = a.lo - b.hi, t.hi = a.hi - b.lo;
      break;
    default:
      t.lo = *std::min_element(products, products + 4);
      t.hi = *std::max_element(products, products + 4);
  }
  const double most = IsFloat(t.type) ? kMaxFloat : kMaxInt;
  if (t.lo >= -most && t.hi <= most) return t;
  return Fit(t, -16, 16);
}

Term Gen::IfThenElse(ScalarType type, int depth) {
  const Term c = BoolExpr(depth - 1), a = Expr(type, depth - 1), b = Expr(type, depth - 1);
  return {absl::StrCat("(if ", c.text, " then ", a.text, " else ", b.text, ")"),
          std::max(a.type, b.type), std::min(a.lo, b.lo), std::max(a.hi, b.hi),
          a.exact && b.exact && c.exact};
}

Term Gen::Expr(ScalarType type, int depth) {
  if (depth <= 0 || r_.Chance(12)) return Leaf(type);
  if (type == ScalarType::kBool) return BoolExpr(depth);
  if (type == ScalarType::kInt) return IntExpr(depth);
  return FloatExpr(type, depth);
}

Term Gen::IntExpr(int depth) {
  const auto sub = [&] { return Expr(ScalarType::kInt, depth - 1); };
  const ScalarType kInt = ScalarType::kInt;
  switch (r_.Weighted({4, 4, 3, 2, 2, 2, 2, 2, 2, 1, 3, 2, 2, 2})) {
    case 0: {
      const Term a = sub(), b = sub();
      return Arithmetic("+", a, b);
    }
    case 1: {
      const Term a = sub(), b = sub();
      return Arithmetic("-", a, b);
    }
    case 2: {
      const Term a = sub(), b = sub();
      return Arithmetic("*", a, b);
    }
    case 3: {  // floor division, also by negative numbers
      const Term a = sub();
      const int64_t d = r_.Pick({1, 2, 3, 5, 7, 8, -1, -3, -4});
      const double most = std::max(std::fabs(a.lo), std::fabs(a.hi)) + 1;
      return {absl::StrCat("(", a.text, " / ", d < 0 ? "(" : "", d, d < 0 ? ")" : "", ")"), kInt,
              -most, most, a.exact};
    }
    case 4: {
      const Term a = sub();
      const int64_t d = r_.Pick({1, 2, 3, 5, 8, 13, -3, -8});
      return {absl::StrCat("(", a.text, " % ", d < 0 ? "(" : "", d, d < 0 ? ")" : "", ")"), kInt,
              d < 0 ? static_cast<double>(d + 1) : 0, d < 0 ? 0 : static_cast<double>(d - 1),
              a.exact};
    }
    case 5: {
      const Term a = sub(), b = Fit(sub(), 0, 1000);
      const double most = std::max(std::fabs(a.lo), std::fabs(a.hi)) + 1;
      const char* op = r_.Pick({"/", "%", "ceildiv"});
      if (!b.exact || !a.exact) return a;  // a divisor that may be 0 or not
      if (op[0] == 'c') {
        return {absl::StrCat("ceildiv(", a.text, ", ", b.text, " + 1)"), kInt, -most, most, true};
      }
      return {absl::StrCat("(", a.text, " ", op, " (", b.text, " + 1))"), kInt, -most,
              op[0] == '%' ? 1000 : most, true};
    }
    case 6: {
      const Term a = Fit(sub(), -1e9, 1e9);
      const int n = static_cast<int>(r_.Range(0, 5));
      return {absl::StrCat("(", a.text, " << ", n, ")"), kInt, a.lo * (1 << n), a.hi * (1 << n),
              a.exact};
    }
    case 7: {
      const Term a = sub();
      const int n = static_cast<int>(r_.Range(0, 5));
      return {absl::StrCat("(", a.text, " >> ", n, ")"), kInt, std::floor(std::min(a.lo, 0.0)),
              std::max(a.hi, 0.0), a.exact};
    }
    case 8: {
      const Term a = sub(), b = sub();
      const double top = BitCover(a, b);
      const char* op = r_.Pick({"&", "|", "^"});
      const bool positive = a.lo >= 0 && b.lo >= 0;
      if (!a.exact || !b.exact) return a;  // what one off does to the bits, nobody knows
      return {absl::StrCat("(", a.text, " ", op, " ", b.text, ")"), kInt, positive ? 0 : -top, top,
              true};
    }
    case 9:
      return IfThenElse(kInt, depth);
    case 10: {
      const Term a = sub(), b = sub();
      const bool min = r_.Chance(50);
      return {absl::StrCat(min ? "min(" : "max(", a.text, ", ", b.text, ")"), kInt,
              min ? std::min(a.lo, b.lo) : std::max(a.lo, b.lo),
              min ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi), a.exact && b.exact};
    }
    case 11: {
      const Term a = sub();
      if (r_.Chance(50)) return {absl::StrCat("(-", a.text, ")"), kInt, -a.hi, -a.lo, a.exact};
      const double most = std::max(std::fabs(a.lo), std::fabs(a.hi));
      return {absl::StrCat("abs(", a.text, ")"), kInt, 0, most, a.exact};
    }
    case 12: {
      const DType to = r_.Pick({DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32,
                                DType::kU32, DType::kI64});
      const Term a = sub();
      const bool fits = a.lo >= MinValue(to) && a.hi <= MaxValue(to);
      if (!a.exact && !fits) return a;
      return {absl::StrCat(tl::Name(to), "(", a.text, ")"), kInt, fits ? a.lo : MinValue(to),
              fits ? a.hi : MaxValue(to), a.exact};
    }
    default: {
      const DType to = r_.Pick({DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32,
                                DType::kU32, DType::kI64});
      const Term a = Expr(r_.Chance(75) ? ScalarType::kF32 : ScalarType::kF64, depth - 1);
      return {absl::StrCat(tl::Name(to), "(", a.text, ")"), kInt,
              std::clamp(std::trunc(a.lo), MinValue(to), MaxValue(to)),
              std::clamp(std::trunc(a.hi), MinValue(to), MaxValue(to)), false};
    }
  }
}

Term Gen::MathCall(ScalarType type, int depth) {
  const Term x = Expr(type, depth - 1);
  const double most = std::max(std::fabs(x.lo), std::fabs(x.hi));
  const auto call = [&](const char* fn, const std::string& arg, double lo, double hi) {
    return Term{absl::StrCat(fn, "(", arg, ")"), std::max(x.type, ScalarType::kF32), lo, hi, false};
  };
  const std::string away = absl::StrCat("abs(", x.text, ") + 0.25");
  switch (r_.Range(0, 15)) {
    case 0: {
      const Term a = Fit(x, -8, 4);
      return call("exp", a.text, 0, std::exp(a.hi) + 1);
    }
    case 1: {
      const Term a = Fit(x, -8, 6);
      return call("exp2", a.text, 0, std::exp2(a.hi) + 1);
    }
    case 2:
      return call("log", away, -2, std::log(most + 0.25) + 1);
    case 3:
      return call("log2", away, -3, std::log2(most + 0.25) + 1);
    case 4:
      return call("sqrt", away, 0, std::sqrt(most + 0.25) + 1);
    case 5:
      return call("rsqrt", away, 0, 2.1);
    case 6:
      return call("tanh", x.text, -1, 1);
    case 7:
      return call("erf", x.text, -1, 1);
    case 8:
      return call("sigmoid", x.text, 0, 1);
    case 9:
      return call(r_.Pick({"sin", "cos"}), Fit(x, -30, 30).text, -1, 1);
    case 10: {
      const Term y = Fit(Expr(type, depth - 2), -2, 2);
      return call("pow", absl::StrCat(away, ", ", y.text), 0,
                  std::pow(std::max(most + 0.25, 4.0), 2) + 1);
    }
    case 11:
      return call("abs", x.text, 0, most);
    case 12:
      return call(r_.Pick({"floor", "ceil", "round"}), x.text, std::floor(x.lo), std::ceil(x.hi));
    case 13:
      return call("fin", x.text, std::min(x.lo, 0.0), std::max(x.hi, 0.0));
    default: {
      const DType to = r_.Pick(
          {DType::kE4M3, DType::kE5M2, DType::kF16, DType::kBF16, DType::kF32, DType::kF64});
      const Term a = Fit(x, -256, 256);
      return {absl::StrCat(tl::Name(to), "(", a.text, ")"), ComputeType(to),
              std::min(a.lo * 1.25, a.lo), std::max(a.hi, a.hi * 1.25), false};
    }
  }
}

Term Gen::FloatExpr(ScalarType type, int depth) {
  const auto sub = [&] { return Expr(type, depth - 1); };
  Term t;
  switch (r_.Weighted({4, 3, 4, 2, 2, 5, 2, 2, 1})) {
    case 0: {
      const Term a = sub(), b = sub();
      t = Arithmetic("+", a, b);
      break;
    }
    case 1: {
      const Term a = sub(), b = sub();
      t = Arithmetic("-", a, b);
      break;
    }
    case 2: {
      const Term a = sub(), b = sub();
      t = Arithmetic("*", a, b);
      break;
    }
    case 3: {
      const Term a = sub(), b = sub();
      const double most = 2 * std::max(std::fabs(a.lo), std::fabs(a.hi)) + 1;
      t = {absl::StrCat("(", a.text, " / (abs(", b.text, ") + 0.5))"), std::max(a.type, b.type),
           -most, most, false};
      break;
    }
    case 4: {
      const Term a = sub(), b = sub();
      const bool min = r_.Chance(50);
      t = {absl::StrCat(min ? "min(" : "max(", a.text, ", ", b.text, ")"), std::max(a.type, b.type),
           min ? std::min(a.lo, b.lo) : std::max(a.lo, b.lo),
           min ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi), false};
      break;
    }
    case 5:
      t = MathCall(type, depth);
      break;
    case 6:
      t = IfThenElse(type, depth);
      break;
    case 7: {  // ints and the other float type mix in
      const Term a =
          r_.Chance(60)
              ? Fit(IntExpr(depth - 1), -1000, 1000)
              : Expr(type == ScalarType::kF32 ? ScalarType::kF64 : ScalarType::kF32, depth - 1);
      t = {absl::StrCat(type == ScalarType::kF64 ? "f64(" : "f32(", a.text, ")"), type, a.lo, a.hi,
           false};
      break;
    }
    default: {
      const Term a = sub();
      t = {absl::StrCat("(-", a.text, ")"), a.type, -a.hi, -a.lo, a.exact};
    }
  }
  if (IsNumber(t.type) && (t.lo < -kMaxFloat || t.hi > kMaxFloat)) t = Fit(t, -64, 64);
  return t;
}

Term Gen::BoolExpr(int depth) {
  const ScalarType kBool = ScalarType::kBool;
  if (depth <= 0) return Leaf(kBool);
  const char* comparison = r_.Pick({"<", "<=", ">", ">=", "==", "!="});
  switch (r_.Weighted({5, 3, 2, 2, 1, 1, 1})) {
    case 0: {
      const Term a = Expr(ScalarType::kInt, depth - 1), b = Expr(ScalarType::kInt, depth - 1);
      return {absl::StrCat("(", a.text, " ", comparison, " ", b.text, ")"), kBool, 0, 1,
              a.exact && b.exact};
    }
    case 1: {
      const ScalarType type = r_.Chance(70) ? ScalarType::kF32 : ScalarType::kF64;
      const Term a = Expr(type, depth - 1), b = Expr(type, depth - 1);
      return {absl::StrCat("(", a.text, " ", comparison, " ", b.text, ")"), kBool, 0, 1,
              a.exact && b.exact};
    }
    case 2: {
      const Term a = BoolExpr(depth - 1), b = BoolExpr(depth - 1);
      return {absl::StrCat("(", a.text, r_.Chance(50) ? " and " : " or ", b.text, ")"), kBool, 0, 1,
              a.exact && b.exact};
    }
    case 3: {
      const Term a = BoolExpr(depth - 1);
      return {absl::StrCat("(not ", a.text, ")"), kBool, 0, 1, a.exact};
    }
    case 4: {
      const Term a = BoolExpr(depth - 1), b = BoolExpr(depth - 1);
      return {absl::StrCat("(", a.text, r_.Chance(50) ? " == " : " != ", b.text, ")"), kBool, 0, 1,
              a.exact && b.exact};
    }
    case 5:
      return IfThenElse(kBool, depth);
    default:
      return Leaf(kBool);
  }
}

Term Gen::IndexTerm(int64_t extent) {
  const ScalarType kInt = ScalarType::kInt;
  const double last = static_cast<double>(extent - 1);
  std::vector<const Index*> fit;
  for (const Index& i : element_indices_) {
    if (i.lo >= 0 && i.hi < extent) fit.push_back(&i);
  }
  const bool uniform_too = fit.empty() || r_.Chance(25);
  for (const Index& i : indices_) {
    if (uniform_too && i.lo >= 0 && i.hi < extent) fit.push_back(&i);
  }
  if (!fit.empty() && r_.Chance(70)) {
    const Index& i = *r_.Pick(fit);
    if (r_.Chance(80)) return {i.name, kInt, static_cast<double>(i.lo), static_cast<double>(i.hi)};
    return {absl::StrCat(extent - 1, " - ", i.name), kInt, 0, last};
  }
  // Indices may read what is indexed in turn, but not for ever.
  if (r_.Chance(30) || index_depth_ >= 2) {
    const int64_t at = r_.Range(0, extent - 1);
    return {absl::StrCat(at), kInt, static_cast<double>(at), static_cast<double>(at)};
  }
  ++index_depth_;
  const Term t = Expr(kInt, 1);
  --index_depth_;
  if (!t.exact) return {absl::StrCat(extent - 1), kInt, last, last};
  if (t.lo >= 0 && t.hi <= last) return t;
  if (r_.Chance(50)) return {absl::StrCat(t.text, " % ", extent), kInt, 0, last};
  return Fit(t, 0, last);
}

Term Gen::UniformInt(int depth) {
  for (int tries = 0; tries < 8; ++tries) {
    const Term t = Expr(ScalarType::kInt, depth);
    if (t.exact) return t;
  }
  return Literal(ScalarType::kInt);
}

Term Gen::UniformCondition() {
  for (int tries = 0; tries < 8; ++tries) {
    const Term t = BoolExpr(2);
    if (t.exact && t.text != "true" && t.text != "false") return t;
  }
  return Literal(ScalarType::kBool);
}

}  // namespace tl::generator
