#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/parser.h"

namespace tl::syntax {
namespace {

ExprRef MakeLiteral(ExprKind kind, Span span, int64_t int_value, double float_value = 0) {
  Expr expr{kind, span};
  expr.int_value = int_value;
  expr.float_value = float_value;
  return std::make_shared<const Expr>(std::move(expr));
}

// The words that are literals; null for any other.
ExprRef LiteralWord(const Token& token) {
  using Limits = std::numeric_limits<double>;
  const auto is = [&](std::string_view word) { return SameWord(token.text, word); };
  if (token.text.size() > 5) return nullptr;
  if (is("true") || is("on")) return MakeLiteral(ExprKind::kBool, token.span(), 1);
  if (is("false") || is("off")) return MakeLiteral(ExprKind::kBool, token.span(), 0);
  if (is("inf")) return MakeLiteral(ExprKind::kFloat, token.span(), 0, Limits::infinity());
  if (is("nan")) return MakeLiteral(ExprKind::kFloat, token.span(), 0, Limits::quiet_NaN());
  return nullptr;
}

bool IsHex(std::string_view text) { return text.size() > 2 && (text[1] == 'x' || text[1] == 'X'); }

}  // namespace

StatusOr<ExprRef> Parser::Expression() {
  TL_ASSIGN_OR_RETURN(Tree tree, ParseTree());
  return std::move(tree.expr);
}

StatusOr<Parser::Tree> Parser::MakeTree(Expr expr, int height) const {
  if (height > limits_.nesting) {
    return LimitError(expr.span, absl::StrCat("the expression is more than ", limits_.nesting,
                                              " operations deep: name a part of it"));
  }
  return Tree{std::make_shared<const Expr>(std::move(expr)), height};
}

StatusOr<Parser::Tree> Parser::ParseTree() {
  const Nesting nesting(&depth_);
  TL_RETURN_IF_ERROR(CheckNesting());
  return At("if") ? ParseIf() : ParseBinary(kPrecOr);
}

StatusOr<Parser::Tree> Parser::ParseIf() {
  const size_t first = pos_;
  Next();
  TL_ASSIGN_OR_RETURN(Tree condition, ParseTree());
  TL_RETURN_IF_ERROR(Expect("then", "after the condition of 'if'"));
  TL_ASSIGN_OR_RETURN(Tree yes, ParseTree());
  TL_RETURN_IF_ERROR(Expect("else", "in 'if ... then ...': an expression needs both sides"));
  TL_ASSIGN_OR_RETURN(Tree no, ParseTree());
  Expr expr{ExprKind::kIf, SpanFrom(first)};
  const int height = std::max({condition.height, yes.height, no.height}) + 1;
  expr.args = {std::move(condition.expr), std::move(yes.expr), std::move(no.expr)};
  return MakeTree(std::move(expr), height);
}

StatusOr<Parser::Tree> Parser::ParseBinary(Precedence loosest) {
  const size_t first = pos_;
  TL_ASSIGN_OR_RETURN(Tree left, ParseUnary(loosest));
  bool compared = false;
  while (true) {
    const Token& op = Peek();
    const Precedence precedence = BinaryPrecedence(op.text);
    if (precedence == kPrecNone || precedence < loosest) return left;
    if (precedence == kPrecCompare && std::exchange(compared, true)) {
      return SyntaxError(op.span(), "comparisons do not chain: write 'a < b and b < c'");
    }
    Next();
    TL_ASSIGN_OR_RETURN(Tree right, ParseBinary(static_cast<Precedence>(precedence + 1)));
    Expr expr{ExprKind::kBinary, SpanFrom(first)};
    expr.text = op.text;
    const int height = std::max(left.height, right.height) + 1;
    expr.args.reserve(2);
    expr.args.push_back(std::move(left.expr));
    expr.args.push_back(std::move(right.expr));
    TL_ASSIGN_OR_RETURN(left, MakeTree(std::move(expr), height));
  }
}

StatusOr<Parser::Tree> Parser::ParseUnary(Precedence loosest) {
  const bool is_not = At("not") && loosest <= kPrecNot;
  if (!is_not && !At("-")) return ParsePrimary();
  const Nesting nesting(&depth_);
  TL_RETURN_IF_ERROR(CheckNesting());
  const size_t first = pos_;
  const Token& op = Next();
  TL_ASSIGN_OR_RETURN(Tree arg, is_not ? ParseBinary(kPrecNot) : ParseUnary(kPrecUnary));
  Expr expr{ExprKind::kUnary, SpanFrom(first)};
  expr.text = op.text;
  expr.args.push_back(std::move(arg.expr));
  return MakeTree(std::move(expr), arg.height + 1);
}

StatusOr<Parser::Tree> Parser::ParsePrimary() {
  const Token& token = Peek();
  if (token.kind == TokenKind::kInt || token.kind == TokenKind::kFloat) return ParseNumber();
  if (token.kind == TokenKind::kName) return ParseNamed();
  if (!Accept("(")) return ExpectedExpr();
  TL_ASSIGN_OR_RETURN(Tree tree, ParseTree());
  TL_RETURN_IF_ERROR(Expect(")", "to close the parenthesis"));
  if (At("[")) return SyntaxError(Peek().span(), "only a name can be indexed");
  return tree;
}

Status Parser::ExpectedExpr() const {
  if (pos_ == 0) return Expected("an expression");
  return Expected("an expression", "after", Last().text);
}

StatusOr<Parser::Tree> Parser::ParseNumber() {
  const Token& token = Next();
  const std::string_view text = token.text;
  const char* end = text.data() + text.size();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec == std::errc::result_out_of_range) {
      return SyntaxError(token.span(), "the number is out of range of f64");
    }
    return Tree{MakeLiteral(ExprKind::kFloat, token.span(), 0, value)};
  }
  int64_t value = 0;
  const auto result = IsHex(text) ? std::from_chars(text.data() + 2, end, value, 16)
                                  : std::from_chars(text.data(), end, value);
  if (result.ec != std::errc()) {
    return SyntaxError(token.span(), "the number is out of range: integers go up to 2^63-1");
  }
  return Tree{MakeLiteral(ExprKind::kInt, token.span(), value)};
}

StatusOr<Parser::Tree> Parser::ParseNamed() {
  const size_t first = pos_;
  const Token& name = Peek();
  if (ExprRef literal = LiteralWord(name)) {
    Next();
    return Tree{std::move(literal)};
  }
  if (At("if")) {
    return SyntaxError(name.span(), "'if ... then ... else ...' needs parentheses here");
  }
  if (At("not")) return SyntaxError(name.span(), "'not ...' needs parentheses here");
  if (IsReserved(name.text)) return ExpectedExpr();
  Next();
  Expr expr{ExprKind::kName, name.span()};
  expr.text = name.text;
  int height = 0;
  if (At("(") || At("[")) {
    const bool call = Next().text == "(";
    expr.kind = call ? ExprKind::kCall : ExprKind::kIndex;
    TL_RETURN_IF_ERROR(ParseArgs(call ? ")" : "]", /*marks=*/!call, &expr, &height));
    expr.span = SpanFrom(first);
    if (call && At("[")) return SyntaxError(Peek().span(), "only a name can be indexed");
  }
  return MakeTree(std::move(expr), height + 1);
}

Status Parser::ParseArgs(std::string_view close, bool marks, Expr* expr, int* height) {
  if (Accept(close)) return absl::OkStatus();
  expr->args.reserve(4);
  do {
    TL_ASSIGN_OR_RETURN(Tree arg, ParseTree());
    *height = std::max(*height, arg.height);
    expr->args.push_back(std::move(arg.expr));
    if (marks) expr->marks.push_back(Accept(":"));
  } while (Accept(","));
  TL_RETURN_IF_ERROR(
      Expect(close, marks ? "after the indices of" : "after the arguments of", expr->text));
  if (marks && expr->args.size() > kMaxRank) {
    return LimitError(expr->span, absl::StrCat("'", expr->text, "' has ", expr->args.size(),
                                               " indices; the highest rank is ", kMaxRank));
  }
  return absl::OkStatus();
}

StatusOr<ExprRef> Parser::Region(std::string_view what) {
  const size_t first = pos_;
  TL_ASSIGN_OR_RETURN(Name name, ExpectName(what));
  Expr expr{ExprKind::kName, name.span};
  expr.text = std::move(name.text);
  int height = 0;
  if (Accept("[")) {
    expr.kind = ExprKind::kIndex;
    TL_RETURN_IF_ERROR(ParseArgs("]", /*marks=*/true, &expr, &height));
    expr.span = SpanFrom(first);
  }
  TL_ASSIGN_OR_RETURN(Tree tree, MakeTree(std::move(expr), height + 1));
  return std::move(tree.expr);
}

Status Parser::ExprList(std::string_view close, std::string_view where, size_t limit,
                        std::vector<ExprRef>* list) {
  do {
    TL_ASSIGN_OR_RETURN(ExprRef expr, Expression());
    if (list->size() == limit) {
      return LimitError(expr->span, absl::StrCat("more than ", limit, " values ", where));
    }
    list->push_back(std::move(expr));
  } while (Accept(","));
  return Expect(close, where);
}

Status Parser::Extents(std::vector<ExprRef>* extents, std::string_view what,
                       std::string_view name) {
  TL_RETURN_IF_ERROR(Expect("[", what, name));
  return ExprList("]", "in the extents", kMaxRank, extents);
}

StatusOr<ExprRef> Parser::ParseWholeExpr() {
  TL_ASSIGN_OR_RETURN(ExprRef expr, Expression());
  if (!AtEnd() || !lexical_error_.ok()) return Expected("the end of the expression");
  return expr;
}

}  // namespace tl::syntax
