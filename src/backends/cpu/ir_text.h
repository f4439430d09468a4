// Writes textual LLVM IR. Knows the syntax of instructions and nothing of tile programs.
//
// Names are numbers given in order of emission, so the text depends on the program's structure only
// and never on what its author called things.
#ifndef TILEJIT_BACKENDS_CPU_IR_TEXT_H_
#define TILEJIT_BACKENDS_CPU_IR_TEXT_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tl::cpu {

// What a module needs besides its functions' bodies, collected while these are written.
class ModuleText {
 public:
  // Declares an external function or intrinsic, once.
  void Declare(std::string_view declaration) { declarations_.emplace(declaration); }
  // Takes a whole function definition.
  void Define(std::string_view text) { definitions_ += text; }
  // True the first time a helper function's name is asked for.
  bool Claim(std::string_view helper) { return helpers_.emplace(helper).second; }
  // Appends a metadata node and returns its reference ("!7").
  std::string Metadata(std::string_view body);
  // A node that refers to itself: "distinct !{!7, BODY}".
  std::string SelfMetadata(std::string_view body);

  std::string Finish() const;

 private:
  std::set<std::string, std::less<>> declarations_;
  std::set<std::string, std::less<>> helpers_;
  std::string definitions_;
  std::string metadata_;
  int next_metadata_ = 0;
};

// "0x3FF0000000000000": exact for every value, in the form both float and double take.
std::string FloatText(double value);

// The body of one function. Operands are the texts of values; methods that make one return its
// name.
class FunctionText {
 public:
  explicit FunctionText(ModuleText* module);

  // "%12 = RHS"
  std::string Value(std::string_view rhs);
  void Line(std::string_view text);
  // A name for a value that is used before it is written.
  std::string NextName();

  std::string Binary(std::string_view op, std::string_view type, std::string_view a,
                     std::string_view b);
  std::string Convert(std::string_view op, std::string_view from, std::string_view a,
                      std::string_view to);
  std::string Select(std::string_view type, std::string_view cond, std::string_view yes,
                     std::string_view no);
  // Calls and declares llvm.NAME.
  std::string Intrinsic(std::string_view name, std::string_view result,
                        const std::vector<std::pair<std::string_view, std::string_view>>& args);

  std::string NewLabel();
  // Starts a block; the one before must have ended with a branch.
  void Begin(std::string_view label);
  void Branch(std::string_view label, std::string_view metadata = "");
  void BranchIf(std::string_view cond, std::string_view yes, std::string_view no);
  // Label of the block that is being written.
  const std::string& block() const { return block_; }

  // A stack slot, placed in the entry block.
  std::string Slot(std::string_view type, int align);

  ModuleText& module() { return *module_; }
  // Entry block (slots first) and everything after it.
  std::string Body() const { return "entry:\n" + slots_ + text_; }

 private:
  ModuleText* module_;
  std::string slots_;
  std::string text_;
  std::string block_ = "entry";
  int next_value_ = 0;
  int next_label_ = 0;
};

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_IR_TEXT_H_
