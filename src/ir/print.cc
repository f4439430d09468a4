// Canonical text: one statement a line, two blanks per level, attributes in the order of ops.h and
// no parentheses but the necessary ones.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops.h"
#include "ir/syntax.h"

namespace tl::syntax {
namespace {

// Shortest form that reads back as the same double, and as a float rather than an int.
std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string IntText(int64_t value) {
  // 2^63 is no literal of the language.
  if (value == std::numeric_limits<int64_t>::min()) return absl::StrCat(value + 1, " - 1");
  return absl::StrCat(value);
}

// Literals with a sign come from programs that were made, not parsed.
Precedence PrecedenceOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kIf:
      return kPrecIf;
    case ExprKind::kBinary:
      return BinaryPrecedence(expr.text);
    case ExprKind::kUnary:
      return expr.text == "not" ? kPrecNot : kPrecUnary;
    case ExprKind::kInt:
      if (expr.int_value == std::numeric_limits<int64_t>::min()) return kPrecSum;
      return expr.int_value < 0 ? kPrecUnary : kPrecPrimary;
    case ExprKind::kFloat:
      return std::signbit(expr.float_value) && !std::isnan(expr.float_value) ? kPrecUnary
                                                                             : kPrecPrimary;
    default:
      return kPrecPrimary;
  }
}

enum class Blanks : uint8_t { kWide, kTight };

class Printer {
 public:
  std::string Take() { return std::move(out_); }

  void PrintProgram(const Program& program);
  void PrintExpr(const ExprRef& expr, Precedence loosest = kPrecIf, Blanks blanks = Blanks::kWide);

 private:
  template <typename... Args>
  void Put(const Args&... args) {
    absl::StrAppend(&out_, args...);
  }
  // put(item) for each item, with commas between them.
  template <typename List, typename F>
  void Commas(const List& list, F put) {
    bool first = true;
    for (const auto& item : list) {
      if (!first) Put(", ");
      first = false;
      put(item);
    }
  }
  void PrintExprs(const std::vector<ExprRef>& list) {
    Commas(list, [&](const ExprRef& e) { PrintExpr(e); });
  }
  void PrintNames(const std::vector<Name>& names) {
    Commas(names, [&](const Name& name) { Put(name.text); });
  }
  void Brackets(const std::vector<ExprRef>& list) {
    Put("[");
    PrintExprs(list);
    Put("]");
  }
  void Line() { out_.append(2 * level_, ' '); }

  void PrintBinary(const Expr& expr, Blanks blanks);
  void PrintAttrs(const std::vector<Attr>& attrs, absl::Span<const AttrSpec> specs);

  void PrintSignature(const Program& program);
  void PrintParam(const Param& param);
  void PrintDecl(const Decl& decl);
  void PrintOperand(const Operand& operand);
  void PrintTune(const std::vector<TuneParam>& tune);
  void PrintInit(const Init& init);
  void PrintLaunch(const Launch& launch);
  void PrintAxis(const Axis& axis);

  void PrintBlock(const std::vector<Stmt>& body);
  void PrintStmt(const Stmt& stmt);
  void PrintForm(const Stmt& stmt, const OpSpec& op);
  void PrintPseudo(const Stmt& stmt);
  void PrintAlloc(const Stmt& stmt);
  void PrintHead(const Stmt& stmt);
  void PrintIf(const Stmt& stmt);

  std::string out_;
  int level_ = 0;
};

// -- Expressions -------------------------------------------------------------------------------

void Printer::PrintExpr(const ExprRef& ref, Precedence loosest, Blanks blanks) {
  const Expr& expr = *ref;
  if (PrecedenceOf(expr) < loosest) {
    Put("(");
    PrintExpr(ref, kPrecIf, blanks);
    Put(")");
    return;
  }
  switch (expr.kind) {
    case ExprKind::kInt:
      return Put(IntText(expr.int_value));
    case ExprKind::kFloat:
      return Put(FloatText(expr.float_value));
    case ExprKind::kBool:
      return Put(expr.int_value != 0 ? "true" : "false");
    case ExprKind::kName:
      return Put(expr.text);
    case ExprKind::kAny:
      return Put("?");
    case ExprKind::kUnary:
      Put(expr.text, expr.text == "not" ? " " : "");
      return PrintExpr(expr.args[0], PrecedenceOf(expr), blanks);
    case ExprKind::kBinary:
      return PrintBinary(expr, blanks);
    case ExprKind::kIf:
      Put("if ");
      PrintExpr(expr.args[0], kPrecIf, blanks);
      Put(" then ");
      PrintExpr(expr.args[1], kPrecIf, blanks);
      Put(" else ");
      return PrintExpr(expr.args[2], kPrecIf, blanks);
    case ExprKind::kCall:
      Put(expr.text, "(");
      PrintExprs(expr.args);
      return Put(")");
    case ExprKind::kIndex:
      Put(expr.text, "[");
      for (size_t i = 0; i < expr.args.size(); ++i) {
        if (i > 0) Put(", ");
        PrintExpr(expr.args[i], kPrecIf, Blanks::kTight);
        if (i < expr.marks.size() && expr.marks[i]) Put(":");
      }
      return Put("]");
  }
}

void Printer::PrintBinary(const Expr& expr, Blanks blanks) {
  const Precedence own = PrecedenceOf(expr);
  const auto tighter = static_cast<Precedence>(own + 1);
  const bool word = own == kPrecOr || own == kPrecAnd;
  const std::string_view blank = word || blanks == Blanks::kWide ? " " : "";
  PrintExpr(expr.args[0], own == kPrecCompare ? tighter : own, blanks);
  Put(blank, expr.text, blank);
  PrintExpr(expr.args[1], tighter, blanks);
}

// Values are printed without blanks, like indices: the eye takes `stages=n+1 down` for two
// attributes.
void Printer::PrintAttrs(const std::vector<Attr>& attrs, absl::Span<const AttrSpec> specs) {
  for (const AttrSpec& spec : specs) {
    for (const Attr& attr : attrs) {
      if (attr.name != spec.name) continue;
      Put(" ", attr.name);
      if (attr.value == nullptr) continue;
      Put("=");
      PrintExpr(attr.value, kPrecIf, Blanks::kTight);
    }
  }
}

// -- Program -----------------------------------------------------------------------------------

void Printer::PrintProgram(const Program& program) {
  Put("tl ", program.major, ".", program.minor, "\nkernel ", program.name.text);
  PrintSignature(program);
  Put(" {\n");
  ++level_;
  for (const Decl& decl : program.decls) {
    Line();
    PrintDecl(decl);
    Put("\n");
  }
  for (const Launch& launch : program.launches) {
    Line();
    PrintLaunch(launch);
    Put("\n");
  }
  --level_;
  Put("}\n");
}

void Printer::PrintSignature(const Program& program) {
  Put("(");
  Commas(program.dims, [&](const Name& dim) { Put(dim.text, ": dim"); });
  if (!program.params.empty()) {
    Put("; ");
    Commas(program.params, [&](const Param& param) { PrintParam(param); });
  }
  Put(")");
}

void Printer::PrintParam(const Param& param) {
  Put(param.name.text, ": ", param.type);
  if (!param.choices.empty()) {
    Put("{");
    PrintNames(param.choices);
    Put("}");
  }
  if (param.default_value == nullptr) return;
  Put(" = ");
  PrintExpr(param.default_value);
}

void Printer::PrintDecl(const Decl& decl) {
  if (!decl.operands.empty()) {
    constexpr std::string_view kWords[] = {"in ", "out ", "inout ", "workspace "};
    Put(kWords[static_cast<int>(decl.operands[0].kind)]);
    Commas(decl.operands, [&](const Operand& operand) { PrintOperand(operand); });
  } else if (!decl.tune.empty()) {
    PrintTune(decl.tune);
  } else if (decl.where != nullptr) {
    Put("where ");
    PrintExpr(decl.where);
  } else if (!decl.init.empty()) {
    PrintInit(decl.init[0]);
  } else {
    PrintStmt(decl.constant[0]);
  }
}

void Printer::PrintOperand(const Operand& operand) {
  Put(operand.name.text, ": ");
  if (operand.is_tensor) {
    Put("tensor<", operand.dtype, ">");
    Brackets(operand.shape);
  } else {
    Put(operand.dtype);
  }
  if (!operand.strides.empty()) {
    Put(" strides");
    Brackets(operand.strides);
  }
  if (!operand.packed.empty()) {
    Put(" prepacked");
    Brackets(operand.packed);
  }
  if (operand.is_const) Put(" const");
  if (!operand.stands_for.text.empty()) Put(" for ", operand.stands_for.text);
  if (operand.condition == nullptr) return;
  Put(" if ");
  PrintExpr(operand.condition);
}

void Printer::PrintTune(const std::vector<TuneParam>& tune) {
  Put("tune ");
  Commas(tune, [&](const TuneParam& param) {
    Put(param.name.text, " in {");
    PrintExprs(param.candidates);
    Put("}");
  });
  if (!tune[0].target_class.empty()) Put(" for ", tune[0].target_class);
}

void Printer::PrintInit(const Init& init) {
  Put("init ", init.operand.text, " = ", init.kind.text, "(");
  PrintExprs(init.args);
  Put(")");
  if (init.condition == nullptr) return;
  Put(" if ");
  PrintExpr(init.condition);
}

void Printer::PrintLaunch(const Launch& launch) {
  Put("launch");
  if (!launch.axes.empty()) Put(" ");
  Commas(launch.axes, [&](const Axis& axis) { PrintAxis(axis); });
  PrintAttrs(launch.attrs, LaunchAttrs());
  if (!launch.cluster.empty()) {
    Put(" cluster=");
    Brackets(launch.cluster);
  }
  PrintBlock(launch.body);
}

void Printer::PrintAxis(const Axis& axis) {
  if (!axis.is_segment) {
    Put(axis.name.text, " in ");
    return PrintExpr(axis.extent);
  }
  Put("segment (");
  PrintNames(axis.segment);
  Put(") in split(", axis.item.text, " in ");
  PrintExpr(axis.items);
  Put(": ");
  PrintExpr(axis.count);
  Put(", ");
  PrintExpr(axis.parts);
  Put(")");
}

// -- Statements --------------------------------------------------------------------------------

// " {", the body and "}", without the end of the line.
void Printer::PrintBlock(const std::vector<Stmt>& body) {
  Put(" {\n");
  ++level_;
  for (const Stmt& stmt : body) {
    Line();
    PrintStmt(stmt);
    Put("\n");
  }
  --level_;
  Line();
  Put("}");
}

void Printer::PrintStmt(const Stmt& stmt) {
  const OpSpec* op = FindOp(stmt.op);
  // Not of the language: a statement of level Thread, printed for people only.
  if (op == nullptr) return PrintPseudo(stmt);
  PrintForm(stmt, *op);
}

void Printer::PrintPseudo(const Stmt& stmt) {
  Put(stmt.op);
  if (!stmt.names.empty()) Put(" ");
  PrintNames(stmt.names);
  if (!stmt.operands.empty()) Put(stmt.names.empty() ? " " : " in ");
  PrintExprs(stmt.operands);
  if (!stmt.targets.empty()) Put(" -> ");
  PrintExprs(stmt.targets);
  if (!stmt.body.empty()) PrintBlock(stmt.body);
}

void Printer::PrintForm(const Stmt& stmt, const OpSpec& op) {
  switch (op.form) {
    case Form::kAlloc:
    case Form::kAllocVar:
      PrintAlloc(stmt);
      return PrintAttrs(stmt.attrs, op.attrs);
    case Form::kView:
      Put(stmt.names[0].text, " = view ");
      PrintExpr(stmt.operands[0]);
      Put(" ");
      return Brackets(stmt.targets);
    case Form::kLet:
      Put(stmt.names[0].text, " ", stmt.assign, " ");
      return PrintExpr(stmt.operands[0]);
    case Form::kStore:
      PrintExpr(stmt.targets[0]);
      Put(" ", stmt.assign, " ");
      return PrintExpr(stmt.operands[0]);
    case Form::kMove:
      Put(stmt.op, " ");
      PrintExprs(stmt.operands);
      Put(" -> ");
      PrintExpr(stmt.targets[0]);
      return PrintAttrs(stmt.attrs, op.attrs);
    case Form::kList:
      Put(stmt.op, " ");
      return PrintExprs(stmt.operands);
    case Form::kIf:
      return PrintIf(stmt);
    default:
      PrintHead(stmt);
      PrintAttrs(stmt.attrs, op.attrs);
      return PrintBlock(stmt.body);
  }
}

void Printer::PrintAlloc(const Stmt& stmt) {
  PrintNames(stmt.names);
  Put(" = ", stmt.op, "<");
  Commas(stmt.type_args, [&](const std::string& type) { Put(type); });
  Put(">");
  if (!stmt.operands.empty()) {
    Put("(");
    PrintExpr(stmt.operands[0]);
    Put(")");
  } else {
    Brackets(stmt.targets);
  }
}

// Loops, parallel, on, lag and in_turn up to their attributes.
void Printer::PrintHead(const Stmt& stmt) {
  if (stmt.operands.empty() && stmt.targets.empty()) return Put(stmt.op);
  Put(stmt.op, " ");
  PrintNames(stmt.names);
  if (!stmt.names.empty()) Put(" in ");
  if (stmt.targets.size() > 1) return Brackets(stmt.targets);
  if (stmt.targets.size() == 1) return PrintExpr(stmt.targets[0]);
  const bool range = stmt.operands.size() == 2;
  PrintExpr(stmt.operands[0], kPrecIf, range ? Blanks::kTight : Blanks::kWide);
  if (!range) return;
  Put("..");
  PrintExpr(stmt.operands[1], kPrecIf, Blanks::kTight);
}

void Printer::PrintIf(const Stmt& stmt) {
  Put("if ");
  PrintExpr(stmt.operands[0]);
  PrintBlock(stmt.body);
  if (!stmt.has_else && stmt.else_body.empty()) return;
  Put(" else");
  const bool chain = stmt.else_body.size() == 1 && stmt.else_body[0].op == "if";
  if (!chain) return PrintBlock(stmt.else_body);
  Put(" ");
  PrintIf(stmt.else_body[0]);
}

}  // namespace

std::string Print(const Program& program) {
  Printer printer;
  printer.PrintProgram(program);
  return printer.Take();
}

std::string Print(const ExprRef& expr) {
  Printer printer;
  printer.PrintExpr(expr);
  return printer.Take();
}

}  // namespace tl::syntax
