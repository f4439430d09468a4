#include "backends/cpu/ir_text.h"

#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace tl::cpu {

std::string ModuleText::Metadata(std::string_view body) {
  std::string ref = absl::StrCat("!", next_metadata_++);
  absl::StrAppend(&metadata_, ref, " = ", body, "\n");
  return ref;
}

std::string ModuleText::SelfMetadata(std::string_view body) {
  const std::string ref = absl::StrCat("!", next_metadata_);
  return Metadata(absl::StrCat("distinct !{", ref, body.empty() ? "" : ", ", body, "}"));
}

std::string ModuleText::Finish() const {
  std::string out = definitions_;
  for (const std::string& declaration : declarations_) absl::StrAppend(&out, declaration, "\n");
  return absl::StrCat(out, "\n", metadata_);
}

std::string FloatText(double value) {
  // One NaN: payloads would make equal programs differ.
  const uint64_t bits =
      std::isnan(value) ? uint64_t{0x7FF8000000000000} : std::bit_cast<uint64_t>(value);
  return absl::StrFormat("0x%016X", bits);
}

FunctionText::FunctionText(ModuleText* module) : module_(module) {}

std::string FunctionText::NextName() { return absl::StrCat("%v", next_value_++); }

std::string FunctionText::Value(std::string_view rhs) {
  std::string name = NextName();
  absl::StrAppend(&text_, "  ", name, " = ", rhs, "\n");
  return name;
}

void FunctionText::Line(std::string_view text) { absl::StrAppend(&text_, "  ", text, "\n"); }

std::string FunctionText::Binary(std::string_view op, std::string_view type, std::string_view a,
                                 std::string_view b) {
  return Value(absl::StrCat(op, " ", type, " ", a, ", ", b));
}

std::string FunctionText::Convert(std::string_view op, std::string_view from, std::string_view a,
                                  std::string_view to) {
  return Value(absl::StrCat(op, " ", from, " ", a, " to ", to));
}

std::string FunctionText::Select(std::string_view type, std::string_view cond, std::string_view yes,
                                 std::string_view no) {
  return Value(absl::StrCat("select i1 ", cond, ", ", type, " ", yes, ", ", type, " ", no));
}

std::string FunctionText::Intrinsic(
    std::string_view name, std::string_view result,
    const std::vector<std::pair<std::string_view, std::string_view>>& args) {
  std::vector<std::string> types, values;
  for (const auto& [type, value] : args) {
    types.emplace_back(type);
    values.push_back(absl::StrCat(type, " ", value));
  }
  module_->Declare(
      absl::StrCat("declare ", result, " @llvm.", name, "(", absl::StrJoin(types, ", "), ")"));
  return Value(
      absl::StrCat("call ", result, " @llvm.", name, "(", absl::StrJoin(values, ", "), ")"));
}

std::string FunctionText::NewLabel() { return absl::StrCat("b", next_label_++); }

void FunctionText::Begin(std::string_view label) {
  block_ = label;
  absl::StrAppend(&text_, label, ":\n");
}

void FunctionText::Branch(std::string_view label, std::string_view metadata) {
  Line(absl::StrCat("br label %", label, metadata));
}

void FunctionText::BranchIf(std::string_view cond, std::string_view yes, std::string_view no) {
  Line(absl::StrCat("br i1 ", cond, ", label %", yes, ", label %", no));
}

std::string FunctionText::Slot(std::string_view type, int align) {
  std::string name = absl::StrCat("%s", next_value_++);
  absl::StrAppend(&slots_, "  ", name, " = alloca ", type, ", align ", align, "\n");
  return name;
}

}  // namespace tl::cpu
