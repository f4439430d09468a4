#include "backends/cuda/wgmma_text.h"

#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/c_family/expr_text.h"
#include "base/dtype.h"

namespace tl {
namespace {

std::string_view PtxType(DType t, bool operand) {
  switch (t) {
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kE4M3:
      return "e4m3";
    case DType::kE5M2:
      return "e5m2";
    case DType::kI8:
      return "s8";
    case DType::kU8:
      return "u8";
    case DType::kF32:
      return operand ? "tf32" : "f32";
    default:
      return "s32";
  }
}

// "%first, %first+1, ...", or of another prefix.
std::string Operands(int first, int count, std::string_view prefix = "%") {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat(prefix, first + i));
  return absl::StrJoin(names, ", ");
}

std::string NameOfRegisters(int sums) { return absl::StrCat("sum", sums, "_"); }

int PerRegister(DType t) { return 4 / static_cast<int>(SizeOf(t)); }

// 16 bytes of a row of a, in each of two rows.
constexpr int kRegistersOfA = 4;

class Writer {
 public:
  explicit Writer(const WarpgroupProduct& p) : p_(p), of_c_(p.n / 2 / PerRegister(p.c)) {}

  std::string Text() const {
    const int add = first_input() + inputs();
    std::string out =
        absl::StrCat("template <> TL_FN void tl_wgmma<", TemplateArguments(p_),
                     apart() ? absl::StrCat(", ", p_.sums) : "", ">(", Parameters(), ") {\n");
    if (!apart() && p_.c == DType::kF16) absl::StrAppend(&out, "  unsigned* r = (unsigned*)c;\n");
    if (p_.a_in_registers) absl::StrAppend(&out, "  const unsigned* x = (const unsigned*)a;\n");
    absl::StrAppend(&out, "  asm volatile(\"{ .reg .pred first, more; .reg .b64 da, db;\\n\"\n",
                    "    \"setp.ne.b32 first, %", add, ", 0; setp.eq.b32 more, 0, 0;\\n\"\n");
    for (int step = 0; step < p_.steps; ++step) absl::StrAppend(&out, Step(step));
    absl::StrAppend(&out, "    \"}\"\n    : ", apart() ? "" : Bound(), "\n    : ", Inputs(),
                    ", \"r\"((int)add) : \"memory\");\n}\n");
    return out;
  }

 private:
  bool apart() const { return p_.sums != WarpgroupProduct::kNone; }
  int first_input() const { return apart() ? 0 : of_c_; }
  // Before `add`: a and its step, or its registers; b and its step.
  int inputs() const { return 2 + (p_.a_in_registers ? p_.steps * kRegistersOfA : 2); }
  int input_b() const { return first_input() + inputs() - 2; }

  std::string Parameters() const {
    const std::string a = p_.a_in_registers ? absl::StrCat("const ", StorageName(p_.a), "* a")
                                            : "unsigned long long a, int a_step";
    const std::string c =
        apart() ? absl::StrCat("tl_sums<", p_.sums, ">") : absl::StrCat(StorageName(p_.c), "* c");
    return absl::StrCat(c, ", ", a, ", unsigned long long b, int b_step, bool add");
  }

  std::string Step(int step) const {
    std::string out;
    // Steps lie evenly apart.
    const auto move = [&](std::string_view d, int input) {
      absl::StrAppend(&out, "    \"",
                      step == 0 ? absl::StrCat("mov.b64 ", d, ", %", input)
                                : absl::StrCat("add.s64 ", d, ", ", d, ", %", input + 1),
                      ";\\n\"\n");
    };
    if (!p_.a_in_registers) move("da", first_input());
    move("db", input_b());
    const std::string a =
        p_.a_in_registers
            ? absl::StrCat("{", Operands(first_input() + step * kRegistersOfA, kRegistersOfA), "}")
            : "da";
    absl::StrAppend(&out, "    \"wgmma.mma_async.sync.aligned.m64n", p_.n, "k", p_.k, ".",
                    PtxType(p_.c, false), ".", PtxType(p_.a, true), ".", PtxType(p_.b, true), " {",
                    Sums(), "}, ", a, ", db, ", step == 0 ? "first" : "more", Modifiers(),
                    ";\\n\"\n");
    return out;
  }

  // Signs of a and b, then which of them run along the depth.
  std::string Modifiers() const {
    if (p_.c == DType::kI32) return "";
    std::string out = ", 1, 1";
    if (SizeOf(p_.b) != 2) return out;
    if (!p_.a_in_registers) absl::StrAppend(&out, ", ", p_.a_depth_first ? 1 : 0);
    absl::StrAppend(&out, ", ", p_.b_depth_first ? 1 : 0);
    return out;
  }

  std::string Sums() const {
    if (!apart()) return Operands(0, of_c_);
    return Operands(p_.first / PerRegister(p_.c), of_c_, NameOfRegisters(p_.sums));
  }

  std::string Bound() const {
    std::vector<std::string> out;
    const std::string_view name = p_.c == DType::kF16 ? "r" : "c";
    for (int i = 0; i < of_c_; ++i) {
      out.push_back(absl::StrCat(p_.c == DType::kF32 ? "\"+f\"(" : "\"+r\"(", name, "[", i, "])"));
    }
    return absl::StrJoin(out, ", ");
  }

  std::string Inputs() const {
    std::vector<std::string> out;
    if (p_.a_in_registers) {
      for (int i = 0; i < p_.steps * kRegistersOfA; ++i) {
        out.push_back(absl::StrCat("\"r\"(x[", i, "])"));
      }
    } else {
      out = {"\"l\"(a)", "\"l\"((long long)(a_step >> 4))"};
    }
    out.insert(out.end(), {"\"l\"(b)", "\"l\"((long long)(b_step >> 4))"});
    return absl::StrJoin(out, ", ");
  }

  const WarpgroupProduct& p_;
  const int of_c_;  // registers
};

}  // namespace

std::string WgmmaText(const WarpgroupProduct& p) { return Writer(p).Text(); }

std::string SumsText(const WarpgroupSums& sums) {
  const int count = sums.elements / PerRegister(sums.type);
  const bool is_float = sums.type == DType::kF32;
  const std::string_view type = is_float ? "float" : "unsigned";
  const std::string name = NameOfRegisters(sums.number);
  const auto function = [&](bool in) {
    std::vector<std::string> moves, bound;
    for (int i = 0; i < count; ++i) {
      const std::string sum = absl::StrCat(name, i), own = absl::StrCat("%", i);
      moves.push_back(absl::StrCat("mov.b32 ", in ? sum : own, ", ", in ? own : sum, ";"));
      bound.push_back(absl::StrCat(in ? "\"" : "\"=", is_float ? "f" : "r", "\"(r[", i, "])"));
    }
    return absl::StrCat("TL_FN void tl_sums_", in ? "in" : "out", "(tl_sums<", sums.number, ">, ",
                        in ? "const " : "", StorageName(sums.type), "* c) {\n  ",
                        in ? "const " : "", type, "* r = (", in ? "const " : "", type,
                        "*)c;\n  asm volatile(\"", absl::StrJoin(moves, " "),
                        "\"\n    : ", in ? ": " : "", absl::StrJoin(bound, ", "), in ? "" : " :",
                        " : \"memory\");\n}\n");
  };
  return absl::StrCat(function(true), function(false));
}

}  // namespace tl
