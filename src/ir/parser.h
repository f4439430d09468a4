// Recursive descent over the tokens; an implementation detail of syntax::Parse. The grammar stands
// in docs/tile-ir.md. Expressions are in parse_expr.cc, statements in parse_stmt.cc, declarations
// and launches in parser.cc.
#ifndef TILEJIT_IR_PARSER_H_
#define TILEJIT_IR_PARSER_H_

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/lexer.h"
#include "ir/ops.h"
#include "ir/syntax.h"

namespace tl::syntax {

// Blocks, brackets, else-if chains and signs together; and separately the height of an expression's
// tree. Later stages recurse over both.
inline constexpr size_t kMaxRank = 8;
inline constexpr size_t kMaxParams = 64;
inline constexpr size_t kMaxDims = 64;
inline constexpr size_t kMaxOperands = 64;
inline constexpr size_t kMaxWorkspaces = 32;
inline constexpr size_t kMaxLaunches = 16;

class Parser {
 public:
  // `tokens` must outlive the parser.
  explicit Parser(const Tokens& tokens, const Limits& limits = {})
      : limits_(limits), tokens_(tokens.list), lexical_error_(tokens.error) {}

  StatusOr<Program> ParseProgram();
  StatusOr<ExprRef> ParseWholeExpr();

 private:
  // An expression and the number of nodes on the longest way down.
  struct Tree {
    ExprRef expr;
    int height = 1;
  };

  class Nesting {
   public:
    explicit Nesting(int* depth) : depth_(depth) { ++*depth_; }
    ~Nesting() { --*depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int* depth_;
  };

  // -- Tokens
  const Token& Peek(size_t ahead = 0) const {
    const size_t i = pos_ + ahead;
    return i < tokens_.size() ? tokens_[i] : tokens_.back();
  }
  const Token& Last() const { return tokens_[pos_ == 0 ? 0 : pos_ - 1]; }
  const Token& Next() {
    const Token& token = Peek();
    if (token.kind != TokenKind::kEnd) ++pos_;
    return token;
  }
  // Numbers never equal a word or a punctuation, so the text alone decides.
  bool At(std::string_view text, size_t ahead = 0) const {
    return SameWord(Peek(ahead).text, text);
  }
  bool AtName(size_t ahead = 0) const { return Peek(ahead).kind == TokenKind::kName; }
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  bool Accept(std::string_view text);
  // From token number `first` to the one just read.
  Span SpanFrom(size_t first) const;

  // -- Errors
  // "expected ')' after the arguments of 'min', found '{'": `where` and the quoted `name` are
  // optional.
  Status Expected(std::string_view what, std::string_view where = "",
                  std::string_view name = "") const;
  Status Expect(std::string_view text, std::string_view where = "", std::string_view name = "");
  StatusOr<Name> ExpectName(std::string_view what);
  Status CheckNesting() const;

  // -- Expressions
  StatusOr<ExprRef> Expression();
  // Checks the height.
  StatusOr<Tree> MakeTree(Expr expr, int height) const;
  StatusOr<Tree> ParseTree();
  StatusOr<Tree> ParseIf();
  StatusOr<Tree> ParseBinary(Precedence loosest);
  StatusOr<Tree> ParseUnary(Precedence loosest);
  StatusOr<Tree> ParsePrimary();
  Status ExpectedExpr() const;
  StatusOr<Tree> ParseNumber();
  StatusOr<Tree> ParseNamed();
  // The arguments and the closing `close`; `height` is that of the highest.
  Status ParseArgs(std::string_view close, bool marks, Expr* expr, int* height);
  // x or x[...]
  StatusOr<ExprRef> Region(std::string_view what);
  // e, e, ... up to and including `close`, at most `limit` of them.
  Status ExprList(std::string_view close, std::string_view where, size_t limit,
                  std::vector<ExprRef>* list);
  Status Extents(std::vector<ExprRef>* extents, std::string_view what, std::string_view name);

  // -- Statements
  Status ParseBlock(std::string_view owner, std::vector<Stmt>* body);
  Status ParseStmt(Stmt* stmt);
  Status ParseOp(const OpSpec& op, Stmt* stmt);
  Status ParseAssignment(Stmt* stmt);
  Status ParseStore(Stmt* stmt);
  Status ParseAlloc(const OpSpec& op, Stmt* stmt);
  Status ParseView(Stmt* stmt);
  Status ParseMove(const OpSpec& op, Stmt* stmt);
  Status ParseList(const OpSpec& op, Stmt* stmt);
  Status ParseLoop(const OpSpec& op, Stmt* stmt);
  Status ParseParallel(Stmt* stmt);
  Status ParseIfStmt(Stmt* stmt);
  Status ParseOn(Stmt* stmt);
  Status UnknownOp() const;
  Status CheckClearBefore(size_t first) const;
  bool AtAssign(size_t ahead = 0) const;

  // Attributes of a statement: those on the line of the token just read.
  Status ParseAttrs(const OpSpec& op, std::vector<Attr>* attrs);
  // Attributes in front of a `{`.
  Status ParseHeadAttrs(std::string_view owner, absl::Span<const AttrSpec> specs,
                        std::vector<Attr>* attrs, std::vector<ExprRef>* list);
  Status ParseAttr(std::string_view owner, const AttrSpec& spec, std::vector<Attr>* attrs);
  StatusOr<ExprRef> ParseChoice(const AttrSpec& spec);
  Status NoSuchAttr(std::string_view owner, absl::Span<const AttrSpec> specs) const;
  // OK if the word at hand, which is no attribute of `op`, starts the next statement of the line.
  Status CheckStartsStatement(const OpSpec& op) const;

  // -- Program
  Status ParseVersion(Program* program);
  Status ParseSignature(Program* program);
  StatusOr<Param> ParseParam();
  Status ParseDecl(Decl* decl);
  Status ParseOperands(Decl* decl);
  StatusOr<Operand> ParseOperand(Operand::Kind kind);
  Status ParseTensorType(Operand* operand);
  Status ParseStrides(Operand* operand);
  Status ParseTune(Decl* decl);
  Status ParseInit(Decl* decl);
  Status ParseLaunch(Launch* launch);
  bool AtAxis() const;
  StatusOr<Axis> ParseAxis();
  Status ParseSegment(Axis* axis);

  const Limits limits_;
  const std::vector<Token>& tokens_;
  const Status& lexical_error_;
  size_t pos_ = 0;
  int depth_ = 0;
  int statements_ = 0;
  // Counted against the limits.
  size_t operands_ = 0;
  size_t workspaces_ = 0;
  std::set<std::string> params_;
};

}  // namespace tl::syntax

#endif  // TILEJIT_IR_PARSER_H_
