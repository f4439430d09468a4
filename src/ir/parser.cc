#include "ir/parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/edit_distance.h"

namespace tl::syntax {
namespace {

constexpr std::string_view kDeclWords[] = {"in",   "out",   "inout", "workspace",
                                           "tune", "where", "init",  "launch"};
constexpr std::string_view kParamTypes[] = {"int", "bool", "dtype", "enum"};
constexpr std::string_view kTargetClasses[] = {"cpu", "cuda", "hip"};
constexpr int kMajor = 1;
constexpr int kMinor = 0;

// How a token is named in "found ...".
std::string Describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  if (token.text.size() <= 40) return absl::StrCat("'", token.text, "'");
  return absl::StrCat("'", token.text.substr(0, 37), "...'");
}

template <typename T>
bool Contains(const T& words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

Status CheckCount(size_t count, size_t limit, std::string_view what, Span span) {
  if (count <= limit) return absl::OkStatus();
  return LimitError(span, absl::StrCat("more than ", limit, " ", what));
}

}  // namespace

// -- Tokens and errors -------------------------------------------------------------------------

bool Parser::Accept(std::string_view text) {
  if (!At(text)) return false;
  Next();
  return true;
}

Span Parser::SpanFrom(size_t first) const {
  const Token& begin = tokens_[first];
  if (pos_ <= first) return begin.span();
  return {begin.line, begin.column, Last().line, Last().end_column()};
}

Status Parser::Expected(std::string_view what, std::string_view where,
                        std::string_view name) const {
  if (AtEnd() && !lexical_error_.ok()) return lexical_error_;
  return SyntaxError(
      Peek().span(),
      absl::StrCat("expected ", what, where.empty() ? "" : " ", where, name.empty() ? "" : " '",
                   name, name.empty() ? "" : "'", ", found ", Describe(Peek())));
}

Status Parser::Expect(std::string_view text, std::string_view where, std::string_view name) {
  if (Accept(text)) return absl::OkStatus();
  return Expected(absl::StrCat("'", text, "'"), where, name);
}

StatusOr<Name> Parser::ExpectName(std::string_view what) {
  if (!AtName()) return Expected(what);
  const Token& token = Next();
  if (IsReserved(token.text)) {
    return SyntaxError(token.span(), absl::StrCat("expected ", what, ", found '", token.text,
                                                  "', a word of the language"));
  }
  return Name{std::string(token.text), token.span()};
}

Status Parser::CheckNesting() const {
  if (depth_ <= limits_.nesting) return absl::OkStatus();
  return LimitError(Peek().span(), absl::StrCat("nested more than ", limits_.nesting, " deep"));
}

// -- Program -----------------------------------------------------------------------------------

StatusOr<Program> Parser::ParseProgram() {
  Program program;
  TL_RETURN_IF_ERROR(ParseVersion(&program));
  TL_RETURN_IF_ERROR(Expect("kernel", "after the version"));
  TL_ASSIGN_OR_RETURN(program.name, ExpectName("the name of the kernel"));
  TL_RETURN_IF_ERROR(ParseSignature(&program));
  const Span open = Peek().span();
  TL_RETURN_IF_ERROR(Expect("{", "before the body of kernel", program.name.text));
  while (!Accept("}")) {
    if (Accept(";")) continue;
    if (AtEnd()) return Expected("'}'", absl::StrCat("to close the '{' at ", FormatSpan(open)));
    if (At("launch") && !At("=", 1)) {
      TL_RETURN_IF_ERROR(
          CheckCount(program.launches.size() + 1, kMaxLaunches, "launches", Peek().span()));
      program.launches.emplace_back();
      TL_RETURN_IF_ERROR(ParseLaunch(&program.launches.back()));
    } else if (program.launches.empty()) {
      program.decls.emplace_back();
      TL_RETURN_IF_ERROR(ParseDecl(&program.decls.back()));
    } else {
      return Expected("'launch' or '}'", "after a launch (declarations stand before the first)");
    }
  }
  if (!AtEnd() || !lexical_error_.ok()) return Expected("the end of the text", "after the kernel");
  return program;
}

Status Parser::ParseVersion(Program* program) {
  TL_RETURN_IF_ERROR(Expect("tl", "and the version at the start of the program"));
  if (Peek().kind != TokenKind::kFloat) return Expected("a version such as 1.0", "after 'tl'");
  const Token& token = Next();
  const char* end = token.text.data() + token.text.size();
  const auto major = std::from_chars(token.text.data(), end, program->major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') {
    return SyntaxError(token.span(), absl::StrCat("'", token.text, "' is no version"));
  }
  const auto minor = std::from_chars(major.ptr + 1, end, program->minor);
  if (minor.ec != std::errc() || minor.ptr != end) {
    return SyntaxError(token.span(), absl::StrCat("'", token.text, "' is no version"));
  }
  if (program->major == kMajor && program->minor <= kMinor) return absl::OkStatus();
  return SyntaxError(token.span(), absl::StrCat("the program is written in tl ", token.text,
                                                "; this library reads tl ", kMajor, ".", kMinor));
}

Status Parser::ParseSignature(Program* program) {
  TL_RETURN_IF_ERROR(Expect("(", "after the name of kernel", program->name.text));
  if (!At(";") && !At(")")) {
    do {
      TL_ASSIGN_OR_RETURN(Name dim, ExpectName("the name of a dim"));
      TL_RETURN_IF_ERROR(Expect(":", "after", dim.text));
      if (Contains(kParamTypes, Peek().text)) {
        return Expected("'dim'", "(parameters stand behind a ';')");
      }
      TL_RETURN_IF_ERROR(Expect("dim", "after ':'"));
      program->dims.push_back(std::move(dim));
      TL_RETURN_IF_ERROR(
          CheckCount(program->dims.size(), kMaxDims, "dims", program->dims.back().span));
    } while (Accept(","));
  }
  if (Accept(";") && !At(")")) {
    do {
      TL_ASSIGN_OR_RETURN(Param param, ParseParam());
      program->params.push_back(std::move(param));
      params_.insert(program->params.back().name.text);
      TL_RETURN_IF_ERROR(
          CheckCount(params_.size(), kMaxParams, "parameters", program->params.back().name.span));
    } while (Accept(","));
  }
  return Expect(")", "after the parameters of kernel", program->name.text);
}

StatusOr<Param> Parser::ParseParam() {
  Param param;
  TL_ASSIGN_OR_RETURN(param.name, ExpectName("the name of a parameter"));
  TL_RETURN_IF_ERROR(Expect(":", "after", param.name.text));
  if (At("dim")) return Expected("a parameter's type", "(dims stand before the ';')");
  if (!Contains(kParamTypes, Peek().text)) {
    return Expected("'int', 'bool', 'dtype' or 'enum'", "as the type of", param.name.text);
  }
  param.type = Next().text;
  if (param.type == "enum") {
    TL_RETURN_IF_ERROR(Expect("{", "after 'enum'"));
    do {
      TL_ASSIGN_OR_RETURN(Name choice, ExpectName("a value of the enum"));
      param.choices.push_back(std::move(choice));
    } while (Accept(","));
    TL_RETURN_IF_ERROR(Expect("}", "after the values of the enum"));
  }
  if (Accept("=")) {
    TL_ASSIGN_OR_RETURN(param.default_value, Expression());
  }
  return param;
}

// -- Declarations ------------------------------------------------------------------------------

Status Parser::ParseDecl(Decl* decl) {
  const size_t first = pos_;
  if (++statements_ > limits_.statements) {
    return LimitError(Peek().span(), absl::StrCat("more than ", limits_.statements, " statements"));
  }
  if (!AtName()) return Expected("a declaration or 'launch'");
  if (AtAssign(1)) {
    decl->constant.emplace_back();
    TL_RETURN_IF_ERROR(ParseAssignment(&decl->constant[0]));
    const Stmt& stmt = decl->constant[0];
    if (stmt.op != "let" || stmt.assign != "=") {
      return SyntaxError(stmt.span, "outside a launch a name can only be given a value: 'x = e'");
    }
  } else if (Contains(absl::Span<const std::string_view>(kDeclWords, 4), Peek().text)) {
    TL_RETURN_IF_ERROR(ParseOperands(decl));
  } else if (Accept("tune")) {
    TL_RETURN_IF_ERROR(ParseTune(decl));
  } else if (Accept("where")) {
    TL_ASSIGN_OR_RETURN(decl->where, Expression());
  } else if (Accept("init")) {
    TL_RETURN_IF_ERROR(ParseInit(decl));
  } else {
    const Token& word = Peek();
    const OpSpec* op = FindOp(At("for") ? "serial" : word.text);
    if (op != nullptr && StartsStatement(*op)) {
      return SyntaxError(word.span(), absl::StrCat("'", word.text, "' must stand inside a launch"));
    }
    return SyntaxError(word.span(), absl::StrCat("unknown declaration '", word.text, "'",
                                                 DidYouMean(word.text, kDeclWords)));
  }
  decl->span = SpanFrom(first);
  return absl::OkStatus();
}

Status Parser::ParseOperands(Decl* decl) {
  const std::string_view word = Next().text;
  const Operand::Kind kind = word == "in"      ? Operand::Kind::kIn
                             : word == "out"   ? Operand::Kind::kOut
                             : word == "inout" ? Operand::Kind::kInOut
                                               : Operand::Kind::kWorkspace;
  do {
    TL_ASSIGN_OR_RETURN(Operand operand, ParseOperand(kind));
    if (!operand.is_tensor && kind != Operand::Kind::kIn) {
      return SyntaxError(operand.dtype_span,
                         absl::StrCat("'", word, "' operands are tensors: write 'tensor<",
                                      operand.dtype, ">[...]'"));
    }
    TL_RETURN_IF_ERROR(
        kind == Operand::Kind::kWorkspace
            ? CheckCount(++workspaces_, kMaxWorkspaces, "workspaces", operand.name.span)
            : CheckCount(++operands_, kMaxOperands, "operands", operand.name.span));
    decl->operands.push_back(std::move(operand));
  } while (Accept(","));
  return absl::OkStatus();
}

StatusOr<Operand> Parser::ParseOperand(Operand::Kind kind) {
  Operand operand{kind, {}, {}, {}, false, {}, {}, {}, false, {}, nullptr};
  TL_ASSIGN_OR_RETURN(operand.name, ExpectName("the name of an operand"));
  TL_RETURN_IF_ERROR(Expect(":", "and the type after", operand.name.text));
  if (At("tensor")) {
    TL_RETURN_IF_ERROR(ParseTensorType(&operand));
  } else {
    TL_ASSIGN_OR_RETURN(Name dtype, ExpectName("a type"));
    operand.dtype = std::move(dtype.text);
    operand.dtype_span = dtype.span;
  }
  if (kind == Operand::Kind::kWorkspace && Accept("for")) {
    TL_ASSIGN_OR_RETURN(operand.stands_for, ExpectName("the operand it stands for"));
  }
  if (Accept("if")) {
    TL_ASSIGN_OR_RETURN(operand.condition, Expression());
  }
  return operand;
}

Status Parser::ParseTensorType(Operand* operand) {
  operand->is_tensor = true;
  Next();
  TL_RETURN_IF_ERROR(Expect("<", "and the element type after 'tensor'"));
  TL_ASSIGN_OR_RETURN(Name dtype, ExpectName("an element type"));
  operand->dtype = std::move(dtype.text);
  operand->dtype_span = dtype.span;
  TL_RETURN_IF_ERROR(Expect(">", "after the element type"));
  TL_RETURN_IF_ERROR(Expect("[", "and the shape of", operand->name.text));
  if (!Accept("]")) {
    TL_RETURN_IF_ERROR(ExprList("]", "in the shape", kMaxRank, &operand->shape));
  }
  if (At("strides") && At("[", 1)) {
    TL_RETURN_IF_ERROR(ParseStrides(operand));
  }
  if (At("prepacked") && At("[", 1)) {
    const Span span = Next().span();
    Next();
    TL_RETURN_IF_ERROR(ExprList("]", "in 'prepacked'", 2, &operand->packed));
    if (operand->packed.size() != 2) {
      return SyntaxError(span,
                         "'prepacked' needs the rows and columns of a tile: 'prepacked[r, c]'");
    }
  }
  operand->is_const = At("const") && !At("=", 1) && Accept("const");
  return absl::OkStatus();
}

Status Parser::ParseStrides(Operand* operand) {
  const Span span = Next().span();
  Next();
  do {
    if (At("?")) {
      operand->strides.push_back(std::make_shared<const Expr>(Expr{ExprKind::kAny, Next().span()}));
    } else {
      TL_ASSIGN_OR_RETURN(ExprRef stride, Expression());
      operand->strides.push_back(std::move(stride));
    }
  } while (Accept(","));
  TL_RETURN_IF_ERROR(Expect("]", "after the strides of", operand->name.text));
  if (operand->strides.size() == operand->shape.size()) return absl::OkStatus();
  return SyntaxError(span, absl::StrCat("'", operand->name.text, "' has ", operand->shape.size(),
                                        " dims but ", operand->strides.size(), " strides"));
}

Status Parser::ParseTune(Decl* decl) {
  do {
    TuneParam tune;
    TL_ASSIGN_OR_RETURN(tune.name, ExpectName("the name of a tune parameter"));
    params_.insert(tune.name.text);
    TL_RETURN_IF_ERROR(CheckCount(params_.size(), kMaxParams, "parameters", tune.name.span));
    TL_RETURN_IF_ERROR(Expect("in", "after", tune.name.text));
    TL_RETURN_IF_ERROR(Expect("{", "before the candidates of", tune.name.text));
    TL_RETURN_IF_ERROR(ExprList("}", "in the candidates", 1024, &tune.candidates));
    decl->tune.push_back(std::move(tune));
  } while (Accept(","));
  if (!At("for") || At("=", 1)) return absl::OkStatus();
  Next();
  if (!Contains(kTargetClasses, Peek().text) && !absl::StartsWith(Peek().text, "sm_") &&
      !absl::StartsWith(Peek().text, "gfx")) {
    return Expected("'cpu', 'cuda', 'hip' or a target such as 'sm_90a'", "after 'for'");
  }
  const Token& target = Next();
  for (TuneParam& tune : decl->tune) tune.target_class = target.text;
  return absl::OkStatus();
}

Status Parser::ParseInit(Decl* decl) {
  Init init;
  TL_ASSIGN_OR_RETURN(init.operand, ExpectName("the name of an operand"));
  TL_RETURN_IF_ERROR(Expect("=", "after", init.operand.text));
  TL_ASSIGN_OR_RETURN(init.kind, ExpectName("'uniform', 'normal', 'constant' ..."));
  TL_RETURN_IF_ERROR(Expect("(", "after", init.kind.text));
  if (!Accept(")")) {
    TL_RETURN_IF_ERROR(ExprList(")", "in the arguments", 8, &init.args));
  }
  if (Accept("if")) {
    TL_ASSIGN_OR_RETURN(init.condition, Expression());
  }
  decl->init.push_back(std::move(init));
  return absl::OkStatus();
}

// -- Launches ----------------------------------------------------------------------------------

Status Parser::ParseLaunch(Launch* launch) {
  const size_t first = pos_;
  Next();
  if (AtAxis()) {
    do {
      TL_ASSIGN_OR_RETURN(Axis axis, ParseAxis());
      if (launch->axes.size() == kMaxRank) {
        return LimitError(axis.name.span, absl::StrCat("more than ", kMaxRank, " axes"));
      }
      launch->axes.push_back(std::move(axis));
    } while (Accept(","));
  }
  TL_RETURN_IF_ERROR(ParseHeadAttrs("launch", LaunchAttrs(), &launch->attrs, &launch->cluster));
  launch->span = SpanFrom(first);
  return ParseBlock("launch", &launch->body);
}

// A word that is no attribute and does not look like one is an axis whose extent is missing.
bool Parser::AtAxis() const {
  if (!AtName()) return false;
  if (At("in", 1) || (At("segment") && At("(", 1))) return true;
  return NearestWord(Peek().text, AttrNames(LaunchAttrs())).empty();
}

StatusOr<Axis> Parser::ParseAxis() {
  Axis axis;
  if (At("segment") && At("(", 1)) {
    TL_RETURN_IF_ERROR(ParseSegment(&axis));
    return axis;
  }
  TL_ASSIGN_OR_RETURN(axis.name, ExpectName("the name of an axis"));
  TL_RETURN_IF_ERROR(Expect("in", "after the axis", axis.name.text));
  TL_ASSIGN_OR_RETURN(axis.extent, Expression());
  return axis;
}

Status Parser::ParseSegment(Axis* axis) {
  axis->is_segment = true;
  const Token& word = Next();
  Next();
  do {
    TL_ASSIGN_OR_RETURN(Name name, ExpectName("a name"));
    axis->segment.push_back(std::move(name));
  } while (Accept(","));
  TL_RETURN_IF_ERROR(Expect(")", "after the names of", word.text));
  if (axis->segment.size() != 5) {
    return SyntaxError(word.span(),
                       absl::StrCat("'segment' has ", axis->segment.size(),
                                    " names; it needs (item, begin, end, part, whole)"));
  }
  TL_RETURN_IF_ERROR(Expect("in", "after the names of", word.text));
  TL_RETURN_IF_ERROR(Expect("split", "after 'in' of", word.text));
  TL_RETURN_IF_ERROR(Expect("(", "after", "split"));
  TL_ASSIGN_OR_RETURN(axis->item, ExpectName("the name of the item"));
  TL_RETURN_IF_ERROR(Expect("in", "after the item of", "split"));
  TL_ASSIGN_OR_RETURN(axis->items, Expression());
  TL_RETURN_IF_ERROR(Expect(":", "and the count after the items of", "split"));
  TL_ASSIGN_OR_RETURN(axis->count, Expression());
  TL_RETURN_IF_ERROR(Expect(",", "and the number of parts after the count of", "split"));
  TL_ASSIGN_OR_RETURN(axis->parts, Expression());
  return Expect(")", "after the parts of", "split");
}

// -- Entry points ------------------------------------------------------------------------------

StatusOr<Program> Parse(std::string_view text, const Limits& limits) {
  TL_ASSIGN_OR_RETURN(Tokens tokens, Tokenize(text, limits.bytes));
  return Parser(tokens, limits).ParseProgram();
}

StatusOr<ExprRef> ParseExpr(std::string_view text) {
  TL_ASSIGN_OR_RETURN(Tokens tokens, Tokenize(text));
  return Parser(tokens).ParseWholeExpr();
}

}  // namespace tl::syntax
