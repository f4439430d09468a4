#include "backends/cpu/maths_f32.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"

// Every polynomial is a minimax fit (Remez) of the relative error over the range named beside it.
// Ranges and special values are handled by selects, never by branches, so that a loop stays one
// block.

namespace tl::cpu {
namespace {

using V = std::string;

constexpr char kInf[] = "0x7FF0000000000000";
constexpr char kMinusInf[] = "0xFFF0000000000000";
constexpr char kNan[] = "0x7FF8000000000000";

// Float and i32 instructions on named values. The plain forms round each operation; the fused ones
// may become one multiply-add.
class F32 {
 public:
  explicit F32(FunctionText& f) : f_(f) {}

  V Const(float x) { return FloatText(x); }
  V Add(const V& a, const V& b) { return f_.Binary("fadd contract", "float", a, b); }
  V Sub(const V& a, const V& b) { return f_.Binary("fsub contract", "float", a, b); }
  V Mul(const V& a, const V& b) { return f_.Binary("fmul contract", "float", a, b); }
  V Div(const V& a, const V& b) { return f_.Binary("fdiv", "float", a, b); }
  V Exactly(std::string_view op, const V& a, const V& b) { return f_.Binary(op, "float", a, b); }
  V Neg(const V& a) { return f_.Value(absl::StrCat("fneg float ", a)); }
  V Abs(const V& a) { return f_.Intrinsic("fabs.f32", "float", {{"float", a}}); }
  V CopySign(const V& a, const V& sign) {
    return f_.Intrinsic("copysign.f32", "float", {{"float", a}, {"float", sign}});
  }
  V If(const V& cond, const V& yes, const V& no) { return f_.Select("float", cond, yes, no); }
  V Cmp(std::string_view predicate, const V& a, const V& b) {
    return f_.Binary(absl::StrCat("fcmp ", predicate), "float", a, b);
  }
  V Int(std::string_view op, const V& a, const V& b) { return f_.Binary(op, "i32", a, b); }
  V Bits(const V& a) { return f_.Convert("bitcast", "float", a, "i32"); }
  V FromBits(const V& a) { return f_.Convert("bitcast", "i32", a, "float"); }
  V ToFloat(const V& a) { return f_.Convert("sitofp", "i32", a, "float"); }
  V Call(const V& helper, const V& a) {
    return f_.Value(absl::StrCat("call float @", helper, "(float ", a, ")"));
  }
  // c[0] + c[1]*x + ...
  V Poly(const V& x, std::initializer_list<float> c) {
    auto it = c.end();
    V sum = Const(*--it);
    while (it != c.begin()) sum = Add(Mul(sum, x), Const(*--it));
    return sum;
  }
  // x kept within [lo, hi]; a NaN passes.
  V Clamp(const V& x, float lo, float hi) {
    const V low = If(Cmp("olt", x, Const(lo)), Const(lo), x);
    return If(Cmp("ogt", low, Const(hi)), Const(hi), low);
  }

 private:
  FunctionText& f_;
};

struct Rounded {
  V value;    // as a float
  V integer;  // as an i32; anything where x is NaN
};

// Adding 1.5 * 2^23 leaves the nearest integer in the low mantissa bits. Unlike fptosi it has a
// defined result for NaN.
Rounded RoundToInt(F32& b, const V& x) {
  const V magic = b.Const(12582912.0f);
  const V shifted = b.Exactly("fadd", x, magic);
  return {b.Exactly("fsub", shifted, magic), b.Int("sub", b.Bits(shifted), "1262485504")};
}

// p * 2^n, in two steps because n runs beyond float's exponents on both sides: the first is exact,
// the second rounds or overflows as it should.
V Scale(F32& b, const V& p, const V& n) {
  const V half = b.Int("ashr", n, "1");
  const V rest = b.Int("sub", n, half);
  const V s1 = b.FromBits(b.Int("shl", b.Int("add", half, "127"), "23"));
  const V s2 = b.FromBits(b.Int("shl", b.Int("add", rest, "127"), "23"));
  return b.Exactly("fmul", b.Exactly("fmul", p, s1), s2);
}

V Exp2(F32& b, const V& arg) {
  const V x = b.Clamp(arg, -160, 160);
  const Rounded n = RoundToInt(b, x);
  const V r = b.Exactly("fsub", x, n.value);
  // (2^r - 1) / r on [-1/2, 1/2], 2e-9.
  const V p = b.Poly(r, {6.931471825e-01f, 2.402264774e-01f, 5.550332367e-02f, 9.618436918e-03f,
                         1.339887385e-03f, 1.535336196e-04f});
  return Scale(b, b.Add(b.Mul(p, r), b.Const(1)), n.integer);
}

V Exp(F32& b, const V& arg) {
  const V x = b.Clamp(arg, -110, 110);
  const Rounded n = RoundToInt(b, b.Exactly("fmul", x, b.Const(1.44269504f)));
  // ln 2 in two parts; the first has 15 trailing zeros, so its product with n is exact.
  const V high = b.Exactly("fsub", x, b.Exactly("fmul", n.value, b.Const(0.693359375f)));
  const V r = b.Sub(high, b.Mul(n.value, b.Const(-2.12194440e-4f)));
  // (e^r - 1 - r) / r^2 on [-ln2/2, ln2/2], 3e-9.
  const V p = b.Poly(r, {4.999999404e-01f, 1.666651964e-01f, 4.166839272e-02f, 8.368780836e-03f,
                         1.381446724e-03f});
  const V tail = b.Add(b.Mul(b.Mul(r, r), p), r);
  return Scale(b, b.Add(tail, b.Const(1)), n.integer);
}

struct Logarithm {
  V exponent;  // e and
  V f;         // 1 + f in [sqrt 1/2, sqrt 2): x = 2^e * (1 + f)
  V tail;      // ln(1 + f) - f
};

Logarithm SplitLog(F32& b, const V& arg) {
  const V tiny = b.Cmp("olt", arg, b.Const(1.17549435e-38f));
  const V x = b.If(tiny, b.Exactly("fmul", arg, b.Const(8388608.0f)), arg);
  // Bits relative to sqrt(1/2): the exponent field then counts from there.
  const V bits = b.Bits(x);
  const V relative = b.Int("sub", bits, "1060439283");
  const V e = b.Int("ashr", relative, "23");
  const V m = b.FromBits(b.Int("sub", bits, b.Int("shl", e, "23")));
  const V f = b.Exactly("fsub", m, b.Const(1));
  // (ln(1+f) - f + f^2/2) / f^3, 8e-10.
  const V p = b.Poly(f, {3.333331347e-01f, -2.500000894e-01f, 2.000211924e-01f, -1.666799635e-01f,
                         1.421955228e-01f, -1.240558848e-01f, 1.188816205e-01f, -1.167565212e-01f,
                         6.746642292e-02f});
  const V f2 = b.Mul(f, f);
  const V tail = b.Sub(b.Mul(b.Mul(f2, f), p), b.Mul(f2, b.Const(0.5f)));
  const V shift = b.If(tiny, b.Const(23), b.Const(0));
  return {b.Exactly("fsub", b.ToFloat(e), shift), f, tail};
}

// Logarithm of what is no positive finite number, `result` elsewhere.
V LogEdges(F32& b, const V& x, const V& result) {
  const V at_inf = b.If(b.Cmp("oeq", x, kInf), kInf, result);
  const V at_zero = b.If(b.Cmp("oeq", x, b.Const(0)), kMinusInf, at_inf);
  return b.If(b.Cmp("uge", x, b.Const(0)), at_zero, kNan);
}

V Log(F32& b, const V& x) {
  const Logarithm l = SplitLog(b, x);
  const V low = b.Add(b.Mul(l.exponent, b.Const(-2.12194440e-4f)), l.tail);
  const V sum = b.Add(low, l.f);
  const V result = b.Add(b.Mul(l.exponent, b.Const(0.693359375f)), sum);
  // A NaN stays one: it compares unordered with 0 and passes through the arithmetic.
  return LogEdges(b, x, b.If(b.Cmp("uno", x, x), x, result));
}

V Log2(F32& b, const V& x) {
  const Logarithm l = SplitLog(b, x);
  // log2 e - 1, so that f itself is added without a rounding of its own.
  const V less = b.Const(0.44269504f);
  const V small = b.Add(b.Mul(l.tail, less), b.Mul(l.f, less));
  const V sum = b.Add(b.Add(small, l.tail), l.f);
  const V result = b.Add(l.exponent, sum);
  return LogEdges(b, x, b.If(b.Cmp("uno", x, x), x, result));
}

V Tanh(F32& b, ModuleText& module, const V& x) {
  const V a = b.Abs(x);
  const V z = b.Mul(x, x);
  // (tanh x / x - 1) / x^2 on |x| < 0.65, 7e-9.
  const V p = b.Poly(z, {-3.333325982e-01f, 1.333083063e-01f, -5.368802324e-02f, 2.046941966e-02f,
                         -5.515164230e-03f});
  const V small = b.Add(b.Mul(b.Mul(p, z), x), x);
  const V e = b.Call(MathHelperF32(module, MathFn::kExp), b.Add(a, a));
  const V large = b.Sub(b.Const(1), b.Div(b.Const(2), b.Add(e, b.Const(1))));
  return b.If(b.Cmp("olt", a, b.Const(0.625f)), small, b.CopySign(large, x));
}

V Erf(F32& b, ModuleText& module, const V& x) {
  const V a = b.Abs(x);
  const V z = b.Mul(x, x);
  // erf x / x - 1 on |x| < 0.93, 2e-8.
  const V p = b.Poly(z, {1.283791512e-01f, -3.761247993e-01f, 1.128168255e-01f, -2.676171996e-02f,
                         4.985940643e-03f, -5.953742075e-04f});
  const V small = b.Add(b.Mul(p, x), x);
  // -ln(erfc a) / a - 1 on [0.92, 4], 8e-10 of erf. Beyond 4 erf rounds to 1.
  const V t = b.Clamp(a, 0, 4);
  const V q = b.Poly(t, {1.286484897e-01f, 6.351513267e-01f, 1.062368751e-01f, -2.376206033e-02f,
                         3.642457305e-03f, -3.228033893e-04f, 1.123125639e-05f});
  const V exponent = b.Neg(b.Add(b.Mul(q, t), t));
  const V erfc = b.Call(MathHelperF32(module, MathFn::kExp), exponent);
  const V large = b.CopySign(b.Sub(b.Const(1), erfc), x);
  return b.If(b.Cmp("olt", a, b.Const(0.921875f)), small, large);
}

// From e^-|x| on both sides, which never overflows: small results keep their precision.
V Sigmoid(F32& b, ModuleText& module, const V& x) {
  const V e = b.Call(MathHelperF32(module, MathFn::kExp), b.Neg(b.Abs(x)));
  const V numerator = b.If(b.Cmp("olt", x, b.Const(0)), e, b.Const(1));
  return b.Div(numerator, b.Add(e, b.Const(1)));
}

V Emit(F32& b, ModuleText& module, MathFn fn, const V& x) {
  switch (fn) {
    case MathFn::kExp:
      return Exp(b, x);
    case MathFn::kExp2:
      return Exp2(b, x);
    case MathFn::kLog:
      return Log(b, x);
    case MathFn::kLog2:
      return Log2(b, x);
    case MathFn::kTanh:
      return Tanh(b, module, x);
    case MathFn::kErf:
      return Erf(b, module, x);
    default:
      return Sigmoid(b, module, x);
  }
}

}  // namespace

std::string MathHelperF32(ModuleText& module, MathFn fn) {
  const std::string name = absl::StrCat("tl_", Name(fn), "_f32");
  if (!module.Claim(name)) return name;
  FunctionText f(&module);
  F32 b(f);
  f.Line(absl::StrCat("ret float ", Emit(b, module, fn, "%x")));
  module.Define(absl::StrCat("define internal float @", name,
                             "(float %x) alwaysinline nounwind willreturn memory(none) {\n",
                             f.Body(), "}\n\n"));
  return name;
}

}  // namespace tl::cpu
