#include <cmath>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/c_family/expr_text.h"

namespace tl {
namespace {

// Short decimals are read better than hexadecimal floats, and are exact if they read back as the
// same number.
std::string FiniteDigits(double value, bool single) {
  std::string text = absl::StrFormat("%.6g", value);
  double back = 0;
  const bool read = absl::SimpleAtod(text, &back);
  // The compiler reads the text as a float at once, and rounds once as well.
  if (single) back = static_cast<float>(back);
  if (read && back == value && text.find('e') == std::string::npos) {
    return text.find('.') == std::string::npos ? text + ".0" : text;
  }
  return absl::StrFormat("%a", value);
}

}  // namespace

std::string_view Name(CType t) {
  switch (t) {
    case CType::kBool:
      return "bool";
    case CType::kI32:
      return "int";
    case CType::kI64:
      return "long long";
    case CType::kF32:
      return "float";
    case CType::kF64:
      return "double";
  }
  return "";
}

CType CTypeOf(ScalarType t) {
  switch (t) {
    case ScalarType::kBool:
      return CType::kBool;
    case ScalarType::kInt:
      return CType::kI64;
    case ScalarType::kF32:
      return CType::kF32;
    case ScalarType::kF64:
      return CType::kF64;
  }
  return CType::kI64;
}

std::string_view StorageName(DType t) {
  switch (t) {
    case DType::kBool:
    case DType::kU8:
      return "unsigned char";
    case DType::kI8:
      return "signed char";
    case DType::kI16:
      return "short";
    case DType::kU16:
      return "unsigned short";
    case DType::kI32:
      return "int";
    case DType::kU32:
      return "unsigned int";
    case DType::kI64:
      return "long long";
    case DType::kE4M3:
      return "tl_e4m3";
    case DType::kE5M2:
      return "tl_e5m2";
    case DType::kF16:
      return "tl_f16";
    case DType::kBF16:
      return "tl_bf16";
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
  }
  return "";
}

std::string_view Suffix(DType t) { return tl::Name(t); }

std::string Wrap(const Text& text, int precedence) {
  if (text.precedence >= precedence) return text.text;
  return absl::StrCat("(", text.text, ")");
}

Text IntText(int64_t value) {
  const Range range = Exactly(value);
  if (value == Range::kMin) {
    return {"(-9223372036854775807LL - 1)", kPostfix, CType::kI64, range};
  }
  const int precedence = value < 0 ? kPrefix : kPostfix;
  if (range.Fits32() && value != std::numeric_limits<int32_t>::min()) {
    return {absl::StrCat(value), precedence, CType::kI32, range};
  }
  return {absl::StrCat(value, "LL"), precedence, CType::kI64, range};
}

Text FloatText(double value, CType type) {
  const bool single = type == CType::kF32;
  const bool negative = std::signbit(value) && !std::isnan(value);
  const int precedence = negative ? kPrefix : kPostfix;
  const std::string sign = negative ? "-" : "";
  const std::string_view bits = single ? "32" : "64";
  if (std::isnan(value)) return {absl::StrCat("tl_nan", bits, "()"), kPostfix, type, {}};
  if (std::isinf(value)) return {absl::StrCat(sign, "tl_inf", bits, "()"), precedence, type, {}};
  const std::string digits = FiniteDigits(std::fabs(value), single);
  return {absl::StrCat(sign, digits, single ? "f" : ""), precedence, type, {}};
}

}  // namespace tl
