#include "backends/cpu/maths.h"

#include "absl/strings/str_cat.h"
#include "backends/cpu/maths_f32.h"

namespace tl::cpu {
namespace {

std::string_view TypeText(ScalarType type) {
  switch (type) {
    case ScalarType::kF32:
      return "float";
    case ScalarType::kF64:
      return "double";
    default:
      return "i64";
  }
}

std::string Unary(FunctionText& f, std::string_view intrinsic, ScalarType type,
                  const std::string& x) {
  const std::string_view t = TypeText(type);
  const char* suffix = type == ScalarType::kF32 ? ".f32" : ".f64";
  return f.Intrinsic(absl::StrCat(intrinsic, suffix), t, {{t, x}});
}

std::string Abs(FunctionText& f, ScalarType type, const std::string& x) {
  if (IsFloat(type)) return Unary(f, "fabs", type, x);
  f.module().Declare("declare i64 @llvm.abs.i64(i64, i1 immarg)");
  return f.Value(absl::StrCat("call i64 @llvm.abs.i64(i64 ", x, ", i1 false)"));
}

std::string Fin(FunctionText& f, ScalarType type, const std::string& x) {
  const std::string_view t = TypeText(type);
  const std::string magnitude = Unary(f, "fabs", type, x);
  const std::string finite = f.Binary("fcmp olt", t, magnitude, "0x7FF0000000000000");
  return f.Select(t, finite, x, FloatText(0));
}

// nobuiltin keeps LLVM from turning the call into one that the resolver does not know.
std::string Library(FunctionText& f, MathFn fn, ScalarType type,
                    const std::vector<std::string>& args) {
  const std::string_view t = TypeText(type);
  const std::string name = absl::StrCat(Name(fn), type == ScalarType::kF32 ? "f" : "");
  std::string types = std::string(t), values = absl::StrCat(t, " ", args[0]);
  if (args.size() == 2) {
    absl::StrAppend(&types, ", ", t);
    absl::StrAppend(&values, ", ", t, " ", args[1]);
  }
  f.module().Declare(absl::StrCat("declare ", t, " @", name, "(", types, ")"));
  return f.Value(absl::StrCat("call ", t, " @", name, "(", values,
                              ") nobuiltin nounwind willreturn memory(none)"));
}

std::string SigmoidF64(FunctionText& f, const std::string& x) {
  const std::string neg = f.Value(absl::StrCat("fneg double ", x));
  const std::string e = Library(f, MathFn::kExp, ScalarType::kF64, {neg});
  const std::string sum = f.Binary("fadd", "double", e, FloatText(1));
  return f.Binary("fdiv", "double", FloatText(1), sum);
}

}  // namespace

std::string EmitMath(FunctionText& f, MathFn fn, ScalarType type,
                     const std::vector<std::string>& args) {
  const std::string& x = args[0];
  switch (fn) {
    case MathFn::kSqrt:
      return Unary(f, "sqrt", type, x);
    case MathFn::kRsqrt:
      return f.Binary("fdiv", TypeText(type), FloatText(1), Unary(f, "sqrt", type, x));
    case MathFn::kAbs:
      return Abs(f, type, x);
    case MathFn::kFloor:
      return Unary(f, "floor", type, x);
    case MathFn::kCeil:
      return Unary(f, "ceil", type, x);
    case MathFn::kRound:
      return Unary(f, "roundeven", type, x);
    case MathFn::kFin:
      return Fin(f, type, x);
    case MathFn::kSin:
    case MathFn::kCos:
    case MathFn::kPow:
      return Library(f, fn, type, args);
    default:
      break;
  }
  if (type == ScalarType::kF32) {
    return f.Value(absl::StrCat("call float @", MathHelperF32(f.module(), fn), "(float ", x, ")"));
  }
  return fn == MathFn::kSigmoid ? SigmoidF64(f, x) : Library(f, fn, type, args);
}

}  // namespace tl::cpu
