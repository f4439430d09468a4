#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/edit_distance.h"
#include "ir/parser.h"

namespace tl::syntax {
namespace {

constexpr std::string_view kAssignWords[] = {"=", "+=", "-=", "*=", "/="};
constexpr std::string_view kReduceWords[] = {"sum", "max", "min"};

std::string Quoted(absl::Span<const std::string_view> words) {
  return absl::StrCat("'", absl::StrJoin(words, "', '"), "'");
}

bool Contains(absl::Span<const std::string_view> words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return SameWord(w, word); });
}

}  // namespace

bool Parser::AtAssign(size_t ahead) const {
  return Peek(ahead).kind == TokenKind::kPunct && Contains(kAssignWords, Peek(ahead).text);
}

Status Parser::ParseBlock(std::string_view owner, std::vector<Stmt>* body) {
  const Nesting nesting(&depth_);
  TL_RETURN_IF_ERROR(CheckNesting());
  const Span open = Peek().span();
  TL_RETURN_IF_ERROR(Expect("{", "before the body of", owner));
  while (!Accept("}")) {
    if (Accept(";")) continue;
    if (AtEnd()) return Expected("'}'", absl::StrCat("to close the '{' at ", FormatSpan(open)));
    if (++statements_ > limits_.statements) {
      return LimitError(Peek().span(),
                        absl::StrCat("more than ", limits_.statements, " statements"));
    }
    body->emplace_back();
    TL_RETURN_IF_ERROR(ParseStmt(&body->back()));
  }
  return absl::OkStatus();
}

Status Parser::ParseStmt(Stmt* stmt) {
  if (!AtName()) return Expected("a statement");
  // Words of the language are names where they are assigned to.
  const bool assigned = AtAssign(1) || At(",", 1) || At("[", 1);
  if (assigned && !At("if")) return ParseAssignment(stmt);
  const OpSpec* op = FindOp(At("for") ? "serial" : Peek().text);
  if (op == nullptr || !StartsStatement(*op)) return UnknownOp();
  stmt->op = op->name;
  return ParseOp(*op, stmt);
}

Status Parser::ParseOp(const OpSpec& op, Stmt* stmt) {
  const size_t first = pos_;
  Next();
  switch (op.form) {
    case Form::kMove:
      TL_RETURN_IF_ERROR(ParseMove(op, stmt));
      stmt->span = SpanFrom(first);
      return absl::OkStatus();
    case Form::kList:
      TL_RETURN_IF_ERROR(ParseList(op, stmt));
      stmt->span = SpanFrom(first);
      return absl::OkStatus();
    case Form::kLoop:
      TL_RETURN_IF_ERROR(ParseLoop(op, stmt));
      break;
    case Form::kParallel:
      TL_RETURN_IF_ERROR(ParseParallel(stmt));
      break;
    case Form::kIf:
      return ParseIfStmt(stmt);
    case Form::kOn:
      TL_RETURN_IF_ERROR(ParseOn(stmt));
      break;
    default: {
      if (op.count == 0 && At("{")) break;
      TL_ASSIGN_OR_RETURN(ExprRef value, Expression());
      stmt->operands.push_back(std::move(value));
    }
  }
  stmt->span = SpanFrom(first);
  return ParseBlock(op.name, &stmt->body);
}

Status Parser::UnknownOp() const {
  const Token& word = Peek();
  const OpSpec* op = FindOp(word.text);
  if (op != nullptr && !StartsStatement(*op) && op->form != Form::kLet &&
      op->form != Form::kStore) {
    return SyntaxError(
        word.span(),
        absl::StrCat("'", word.text, "' makes a tile: write 'x = ", word.text, " ...'"));
  }
  TL_RETURN_IF_ERROR(CheckClearBefore(pos_));
  if (word.text == "let" || word.text == "var") {
    return SyntaxError(word.span(), "values need no word in front: write 'x = ...'");
  }
  // Something like `x == 3` or `x.y`: the word is no attempt at an operation.
  const Token& next = Peek(1);
  const std::string_view starts = "(-{}";
  if (next.kind == TokenKind::kPunct && starts.find(next.text) == std::string_view::npos) {
    return SyntaxError(
        next.span(), absl::StrCat("expected '=' after '", word.text, "', found '", next.text, "'"));
  }
  return SyntaxError(word.span(), absl::StrCat("unknown operation '", word.text, "'",
                                               DidYouMean(word.text, StatementWords())));
}

// `gemm a, b -> c clear d`: the word is the attribute, and what follows it makes no sense.
Status Parser::CheckClearBefore(size_t first) const {
  if (first == 0 || tokens_[first - 1].text != "clear") return absl::OkStatus();
  const Token& clear = tokens_[first - 1];
  if (clear.line != tokens_[first].line) return absl::OkStatus();
  return SyntaxError(clear.span(),
                     "'clear' on the line of another statement is its attribute: start a new line");
}

// -- x = ..., x[...] = ... ---------------------------------------------------------------------

Status Parser::ParseAssignment(Stmt* stmt) {
  const size_t first = pos_;
  if (At("[", 1)) {
    TL_RETURN_IF_ERROR(ParseStore(stmt));
    stmt->span = SpanFrom(first);
    return absl::OkStatus();
  }
  do {
    TL_ASSIGN_OR_RETURN(Name name, ExpectName("a name"));
    stmt->names.push_back(std::move(name));
  } while (Accept(","));
  if (!AtAssign()) {
    TL_RETURN_IF_ERROR(CheckClearBefore(first));
    return Expected("'='", "after", stmt->names.back().text);
  }
  stmt->assign = Next().text;
  const OpSpec* op = AtName() ? FindOp(Peek().text) : nullptr;
  const bool alloc =
      op != nullptr && (op->form == Form::kAlloc || op->form == Form::kAllocVar) && !At("=", 1);
  // A variable may be called view; two names in a row on one line are the word.
  const bool view = At("view") && AtName(1) && Peek(1).line == Peek().line;
  if ((alloc || view) && stmt->assign != "=") {
    return SyntaxError(Peek().span(),
                       absl::StrCat("'", Peek().text, "' needs '=', not '", stmt->assign, "'"));
  }
  if (!alloc && stmt->names.size() > 1) {
    return SyntaxError(stmt->names[1].span, "only 'alloc_...' may define several names at once");
  }
  if (alloc) {
    TL_RETURN_IF_ERROR(ParseAlloc(*op, stmt));
  } else if (view) {
    TL_RETURN_IF_ERROR(ParseView(stmt));
  } else {
    if (AtName() && At("<", 1) && Peek().text.substr(0, 5) == "alloc") {
      return SyntaxError(Peek().span(), absl::StrCat("unknown operation '", Peek().text, "'",
                                                     DidYouMean(Peek().text, AllocWords())));
    }
    stmt->op = "let";
    TL_ASSIGN_OR_RETURN(ExprRef value, Expression());
    stmt->operands.push_back(std::move(value));
  }
  stmt->span = SpanFrom(first);
  return absl::OkStatus();
}

Status Parser::ParseStore(Stmt* stmt) {
  stmt->op = "store";
  TL_ASSIGN_OR_RETURN(ExprRef target, Region("a name"));
  if (!AtAssign()) return Expected("'='", "after the element of", target->text);
  stmt->targets.push_back(std::move(target));
  stmt->assign = Next().text;
  TL_ASSIGN_OR_RETURN(ExprRef value, Expression());
  stmt->operands.push_back(std::move(value));
  return absl::OkStatus();
}

Status Parser::ParseAlloc(const OpSpec& op, Stmt* stmt) {
  stmt->op = Next().text;
  TL_RETURN_IF_ERROR(Expect("<", "and the type after", op.name));
  TL_ASSIGN_OR_RETURN(Name type, ExpectName("a type"));
  stmt->type_args.push_back(std::move(type.text));
  stmt->type_spans.push_back(type.span);
  if (op.form == Form::kAlloc && op.count == 2) {
    TL_RETURN_IF_ERROR(Expect(",", "and 'sum', 'max' or 'min' after the type of", op.name));
    if (!Contains(kReduceWords, Peek().text))
      return Expected("'sum', 'max' or 'min'", "after", ",");
    stmt->type_spans.push_back(Peek().span());
    stmt->type_args.emplace_back(Next().text);
  }
  TL_RETURN_IF_ERROR(Expect(">", "after the type of", op.name));
  if (op.form == Form::kAlloc) {
    TL_RETURN_IF_ERROR(Extents(&stmt->targets, "and the extents after the type of", op.name));
    return ParseAttrs(op, &stmt->attrs);
  }
  TL_RETURN_IF_ERROR(Expect("(", "and the first value after the type of", op.name));
  TL_ASSIGN_OR_RETURN(ExprRef value, Expression());
  stmt->operands.push_back(std::move(value));
  TL_RETURN_IF_ERROR(Expect(")", "after the first value of", op.name));
  return ParseAttrs(op, &stmt->attrs);
}

Status Parser::ParseView(Stmt* stmt) {
  stmt->op = Next().text;
  TL_ASSIGN_OR_RETURN(ExprRef window, Region("a tile"));
  if (window->kind != ExprKind::kIndex) {
    return Expected("'['", "and the offsets after the tile of", "view");
  }
  stmt->operands.push_back(std::move(window));
  TL_RETURN_IF_ERROR(Extents(&stmt->targets, "and the extents after the offsets of", "view"));
  return ParseAttrs(*FindOp("view"), &stmt->attrs);
}

// -- Operations --------------------------------------------------------------------------------

Status Parser::ParseMove(const OpSpec& op, Stmt* stmt) {
  for (int i = 0; i < op.count; ++i) {
    if (i > 0) TL_RETURN_IF_ERROR(Expect(",", "and the second operand of", op.name));
    TL_ASSIGN_OR_RETURN(ExprRef operand,
                        op.last == OperandKind::kExpr ? Expression() : Region("a tile or tensor"));
    stmt->operands.push_back(std::move(operand));
  }
  TL_RETURN_IF_ERROR(Expect("->", "and the target after the operands of", op.name));
  TL_ASSIGN_OR_RETURN(ExprRef target, Region("a tile or tensor"));
  stmt->targets.push_back(std::move(target));
  return ParseAttrs(op, &stmt->attrs);
}

Status Parser::ParseList(const OpSpec& op, Stmt* stmt) {
  TL_ASSIGN_OR_RETURN(ExprRef first, Region("a tile or tensor"));
  stmt->operands.push_back(std::move(first));
  if (op.count == 0) {
    while (Accept(",")) {
      TL_ASSIGN_OR_RETURN(ExprRef more, Region("a tile or tensor"));
      stmt->operands.push_back(std::move(more));
    }
  }
  if (op.count == 2) {
    TL_RETURN_IF_ERROR(Expect(",", "and the value after the tile of", op.name));
    TL_ASSIGN_OR_RETURN(ExprRef value, Expression());
    stmt->operands.push_back(std::move(value));
  }
  return ParseAttrs(op, &stmt->attrs);
}

// -- Statements with a body --------------------------------------------------------------------

Status Parser::ParseLoop(const OpSpec& op, Stmt* stmt) {
  TL_ASSIGN_OR_RETURN(Name index, ExpectName("the name of the index"));
  stmt->names.push_back(std::move(index));
  TL_RETURN_IF_ERROR(Expect("in", "after the index of", op.name));
  TL_ASSIGN_OR_RETURN(ExprRef bound, Expression());
  stmt->operands.push_back(std::move(bound));
  if (Accept("..")) {
    TL_ASSIGN_OR_RETURN(ExprRef end, Expression());
    stmt->operands.push_back(std::move(end));
  }
  return ParseHeadAttrs(op.name, op.attrs, &stmt->attrs, nullptr);
}

Status Parser::ParseParallel(Stmt* stmt) {
  const Span first = Peek().span();
  do {
    TL_ASSIGN_OR_RETURN(Name index, ExpectName("the name of an index"));
    stmt->names.push_back(std::move(index));
  } while (Accept(","));
  TL_RETURN_IF_ERROR(Expect("in", "after the indices of", "parallel"));
  if (Accept("[")) {
    TL_RETURN_IF_ERROR(ExprList("]", "in the extents", kMaxRank, &stmt->targets));
  } else {
    TL_ASSIGN_OR_RETURN(ExprRef extent, Expression());
    stmt->targets.push_back(std::move(extent));
  }
  if (stmt->names.size() == stmt->targets.size()) return absl::OkStatus();
  return SyntaxError(first, absl::StrCat("'parallel' has ", stmt->names.size(), " indices but ",
                                         stmt->targets.size(), " extents"));
}

Status Parser::ParseIfStmt(Stmt* stmt) {
  const size_t first = pos_ - 1;
  TL_ASSIGN_OR_RETURN(ExprRef condition, Expression());
  stmt->operands.push_back(std::move(condition));
  stmt->span = SpanFrom(first);
  TL_RETURN_IF_ERROR(ParseBlock("if", &stmt->body));
  if (!Accept("else")) return absl::OkStatus();
  stmt->has_else = true;
  if (!At("if")) return ParseBlock("else", &stmt->else_body);
  const Nesting nesting(&depth_);
  TL_RETURN_IF_ERROR(CheckNesting());
  stmt->else_body.emplace_back();
  return ParseStmt(&stmt->else_body.back());
}

Status Parser::ParseOn(Stmt* stmt) {
  TL_ASSIGN_OR_RETURN(Name group, ExpectName("the name of the group"));
  stmt->names.push_back(std::move(group));
  TL_RETURN_IF_ERROR(Expect("in", "after the group of", "on"));
  TL_ASSIGN_OR_RETURN(ExprRef count, Expression());
  stmt->operands.push_back(std::move(count));
  return absl::OkStatus();
}

// -- Attributes --------------------------------------------------------------------------------

Status Parser::ParseAttrs(const OpSpec& op, std::vector<Attr>* attrs) {
  while (AtName() && Peek().line == Last().line) {
    const AttrSpec* spec = FindAttr(op.attrs, Peek().text);
    if (spec == nullptr) return CheckStartsStatement(op);
    TL_RETURN_IF_ERROR(ParseAttr(op.name, *spec, attrs));
  }
  return absl::OkStatus();
}

Status Parser::ParseHeadAttrs(std::string_view owner, absl::Span<const AttrSpec> specs,
                              std::vector<Attr>* attrs, std::vector<ExprRef>* list) {
  while (AtName()) {
    const AttrSpec* spec = FindAttr(specs, Peek().text);
    if (spec == nullptr) return NoSuchAttr(owner, specs);
    if (spec->kind != AttrKind::kList) {
      TL_RETURN_IF_ERROR(ParseAttr(owner, *spec, attrs));
      continue;
    }
    const Token& name = Next();
    if (!list->empty()) {
      return SyntaxError(name.span(), absl::StrCat("'", name.text, "' is given twice"));
    }
    TL_RETURN_IF_ERROR(Expect("=", "after", name.text));
    TL_RETURN_IF_ERROR(Extents(list, "after '=' of", name.text));
  }
  return absl::OkStatus();
}

Status Parser::ParseAttr(std::string_view owner, const AttrSpec& spec, std::vector<Attr>* attrs) {
  const size_t first = pos_;
  const Token& name = Next();
  Attr attr{std::string(spec.name), nullptr, {}};
  for (const Attr& other : *attrs) {
    if (other.name != attr.name) continue;
    return SyntaxError(name.span(), absl::StrCat("'", spec.name, "' is given twice to ", owner));
  }
  if (!At("=") && spec.kind != AttrKind::kFlag) {
    return Expected("'=' and a value", "after", spec.name);
  }
  if (Accept("=")) {
    TL_ASSIGN_OR_RETURN(attr.value,
                        spec.kind == AttrKind::kChoice ? ParseChoice(spec) : Expression());
  }
  attr.span = SpanFrom(first);
  attrs->push_back(std::move(attr));
  return absl::OkStatus();
}

StatusOr<ExprRef> Parser::ParseChoice(const AttrSpec& spec) {
  const size_t first = pos_;
  if (!AtName()) return Expected(absl::StrCat("one of ", Quoted(spec.choices)), "for", spec.name);
  const Token& word = Next();
  if (!Contains(spec.choices, word.text)) {
    return SyntaxError(
        word.span(),
        absl::StrCat("'", word.text, "' is no value of ", spec.name, "; it is one of ",
                     absl::StrJoin(spec.choices, ", "), DidYouMean(word.text, spec.choices)));
  }
  Expr expr{ExprKind::kName, word.span()};
  expr.text = word.text;
  if (spec.argument && Accept("(")) {
    expr.kind = ExprKind::kCall;
    TL_ASSIGN_OR_RETURN(ExprRef argument, Expression());
    expr.args.push_back(std::move(argument));
    TL_RETURN_IF_ERROR(Expect(")", "after the argument of", word.text));
    expr.span = SpanFrom(first);
  }
  return std::make_shared<const Expr>(std::move(expr));
}

Status Parser::NoSuchAttr(std::string_view owner, absl::Span<const AttrSpec> specs) const {
  const Token& word = Peek();
  const std::vector<std::string_view> names = AttrNames(specs);
  return SyntaxError(word.span(),
                     absl::StrCat("'", word.text, "' is no attribute of ", owner, "; it has ",
                                  names.empty() ? "none" : absl::StrJoin(names, ", "),
                                  DidYouMean(word.text, names)));
}

Status Parser::CheckStartsStatement(const OpSpec& op) const {
  const std::string_view word = Peek().text;
  const bool misspelt = !NearestWord(word, AttrNames(op.attrs)).empty();
  // `poliy=full_row` must not pass for the definition of a value, nor `dim=1` behind a copy.
  if (At("=", 1) && (misspelt || IsAttrOfSomeOp(word))) return NoSuchAttr(op.name, op.attrs);
  if (AtAssign(1) || At(",", 1) || At("[", 1)) return absl::OkStatus();
  const OpSpec* next = FindOp(word);
  if ((next != nullptr && StartsStatement(*next)) || word == "for") return absl::OkStatus();
  TL_RETURN_IF_ERROR(CheckClearBefore(pos_));
  const bool misspelt_op = !NearestWord(word, StatementWords()).empty();
  if (misspelt || (!op.attrs.empty() && !misspelt_op)) return NoSuchAttr(op.name, op.attrs);
  return absl::OkStatus();  // an unknown operation; the next statement says so
}

}  // namespace tl::syntax
