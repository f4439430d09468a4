// The binder's state, shared by bind.cc (program level), bind_expr.cc, bind_region.cc and
// bind_stmt.cc. Not part of the room's interface.
#ifndef TILEJIT_IR_BINDER_H_
#define TILEJIT_IR_BINDER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "ir/bind.h"

namespace tl {

// What a name stands for.
struct Binding {
  enum class Kind : uint8_t {
    kValue,    // value: a literal, or an expression that may be copied freely
    kMutable,  // var: alloc_var
    kDType,    // dtype
    kEnum,     // text, one of choices
    kBuffer,   // buffer (tensor, tile, channel)
    kView,     // view
    kAbsent,   // operand whose condition is false
  };
  Kind kind = Kind::kValue;
  Span span;
  ExprRef value;
  bool loose = false;  // value is a float literal that takes the type of what it meets
  // Of a value that is copied to every use: its nodes, and how deep they are nested.
  int64_t size = 1;
  int height = 1;
  VarId var = kNoId;
  DType dtype = DType::kF32;
  std::string text;
  std::vector<std::string> choices;
  BufferId buffer = kNoId;
  Region view;
  // Extents as written, for finding the dims that an unmarked window runs along.
  std::vector<syntax::ExprRef> extents_as_written;
};

// Limits of docs/tile-ir.md that more than one file needs.
inline constexpr int64_t kMaxExtent = int64_t{1} << 20;
inline constexpr int64_t kMaxElements = int64_t{1} << 24;

// "[64, 32]"
std::string ExtentsText(const std::vector<int64_t>& extents);

// An expression while it is being bound. A loose float is a literal that takes the type of what it
// meets.
struct Typed {
  ExprRef expr;
  bool loose = false;
};

class Binder {
 public:
  Binder(const syntax::Program& program, const BindOptions& options)
      : program_(program), options_(options) {}

  StatusOr<Module> Run();
  StatusOr<TuneSpace> RunTuneSpace();

 private:
  // bind.cc
  Status BindDims();
  Status BindParams();
  Status BindParam(const syntax::Param& param);
  // A tune parameter and what it may be.
  struct TuneRow {
    const syntax::TuneParam* clause;
    std::vector<Binding> candidates;
  };
  StatusOr<std::vector<TuneRow>> TuneRows();
  StatusOr<TuneRow> MakeTuneRow(const syntax::TuneParam& clause);
  Status AddCandidate(const syntax::ExprRef& e, TuneRow& row);
  Status AddGiven(const std::string& text, const TuneRow& written, TuneRow& row);
  Status ForEachCombination(const std::vector<TuneRow>& rows, absl::FunctionRef<bool()> visit);
  Status ChooseTuneParams();
  Status BindParameters();
  StatusOr<syntax::ExprRef> FailingWhere();
  std::string SidesOf(const syntax::Expr& condition);
  Status WhereFails(const syntax::ExprRef& condition, int64_t combinations);
  StatusOr<Binding> ParamValue(const syntax::Param& param, const syntax::ExprRef& value);
  Status BindDecl(const syntax::Decl& decl);
  Status BindOperand(const syntax::Operand& operand);
  Status BindTensor(const syntax::Operand& operand, Buffer buffer);
  // The operand that workspace `buffer` is declared `for`.
  StatusOr<BufferId> BindStandsFor(const syntax::Name& name, const Buffer& buffer);
  Status BindStrides(const syntax::Operand& operand, Buffer& buffer);
  Status BindInit(const syntax::Init& init);
  // The host computes it at every launch: dims, strides and int scalars only.
  StatusOr<ExprRef> BindHostInt(const syntax::ExprRef& e, std::string_view what);
  // A value that the caller gives for `name`, as an expression.
  StatusOr<syntax::ExprRef> ParseValue(const syntax::Name& name, const std::string& text) const;
  Status BindConstant(const syntax::Stmt& stmt);
  Status BindLaunch(const syntax::Launch& launch);
  Status BindLaunches();
  Status BindAxis(const syntax::Axis& axis, bool last, Launch& out);
  Status BindSegment(const syntax::Axis& axis, Launch& out);
  Status BindLaunchAttr(const syntax::Attr& attr, Launch& out);
  Status CheckUnusedValues() const;
  const std::string* FindValue(std::string_view name) const;
  const std::vector<std::string>* FindChoices(std::string_view name) const;

  // Scopes. Define refuses a name that is already visible.
  void PushScope() { scopes_.emplace_back(); }
  void PopScope() { scopes_.pop_back(); }
  const Binding* Lookup(std::string_view name) const;
  Status Define(const syntax::Name& name, Binding symbol);
  Status DefineVar(const syntax::Name& name, VarId var);
  Status UnknownName(std::string_view name, Span span) const;

  // bind_expr.cc
  StatusOr<ExprRef> BindExpr(const syntax::ExprRef& e);  // loose floats become f32
  StatusOr<ExprRef> BindExprAs(const syntax::ExprRef& e, ScalarType type);  // implicit conversion
  StatusOr<ExprRef> BindInt(const syntax::ExprRef& e, std::string_view what);
  StatusOr<int64_t> BindConstInt(const syntax::ExprRef& e, std::string_view what, int64_t lo,
                                 int64_t hi);
  StatusOr<bool> BindConstBool(const syntax::ExprRef& e, std::string_view what);
  StatusOr<DType> BindDType(std::string_view name, Span span) const;
  StatusOr<std::string> BindChoice(const syntax::ExprRef& e, std::string_view what,
                                   const std::vector<std::string>& choices);
  StatusOr<Typed> BindTyped(const syntax::ExprRef& e);
  StatusOr<Typed> BindNode(const syntax::ExprRef& e);
  // Counts what a use of `symbol` copies against the limits.
  Status Expand(const Binding& symbol, Span span);
  StatusOr<Typed> BindName(const syntax::ExprRef& e);
  StatusOr<Typed> BindUnary(const syntax::ExprRef& e);
  StatusOr<Typed> BindBinary(const syntax::ExprRef& e);
  StatusOr<Typed> BindIf(const syntax::ExprRef& e);
  StatusOr<Typed> BindKnown(const syntax::ExprRef& e);
  StatusOr<Typed> BindCall(const syntax::ExprRef& e);
  StatusOr<Typed> BindCast(DType to, const syntax::ExprRef& e);
  StatusOr<Typed> BindLoad(const syntax::ExprRef& e);
  StatusOr<std::optional<bool>> CompareNames(const syntax::ExprRef& e);
  static ExprRef Settle(const Typed& t);
  static StatusOr<ExprRef> Convert(const Typed& t, ScalarType type, Span span);
  StatusOr<ScalarType> Unify(Typed& a, Typed& b, Span span, std::string_view what);
  StatusOr<ExprRef> BindCondition(const syntax::ExprRef& e);

  // bind_region.cc
  // Buffer and full index of one element `x[i, …]`.
  struct Element {
    BufferId buffer;
    std::vector<ExprRef> index;
  };
  StatusOr<Element> BindElement(const syntax::ExprRef& e);
  // Whole tile or view: its region; nullopt for windows and tensors, whose extents the other side
  // gives.
  StatusOr<std::optional<Region>> BindWholeTile(const syntax::ExprRef& e);
  StatusOr<Region> BindTile(const syntax::ExprRef& e);  // must be a whole tile or view
  // Window of `extents` (as written: `written`, may be empty).
  StatusOr<Region> BindWindow(const syntax::ExprRef& e, const std::vector<int64_t>& extents,
                              const std::vector<syntax::ExprRef>& written);
  StatusOr<std::vector<int>> WindowDims(const syntax::ExprRef& e,
                                        const std::vector<int64_t>& extents,
                                        const std::vector<syntax::ExprRef>& written) const;
  Status CheckInsideTile(const Region& region) const;
  Region WholeRegion(BufferId id, Span span) const;
  StatusOr<const Binding*> LookupBuffer(const syntax::ExprRef& e) const;
  std::vector<syntax::ExprRef> WrittenExtents(const syntax::ExprRef& e) const;

  // bind_tile.cc
  Status BindAlloc(const syntax::Stmt& s, Block& out);
  Status BindView(const syntax::Stmt& s, Block& out);
  Status BindCopy(const syntax::Stmt& s, Block& out);
  Status BindEviction(const syntax::Stmt& s, Copy& copy);  // whose regions are bound
  Status BindFill(const syntax::Stmt& s, Block& out);
  Status BindGemm(const syntax::Stmt& s, Block& out);
  Status CheckGemmTypes(const Gemm& gemm, Span span) const;
  Status BindReduce(const syntax::Stmt& s, Block& out);
  Status BindArgMax(const syntax::Stmt& s, Block& out);
  Status BindCumSum(const syntax::Stmt& s, Block& out);
  StatusOr<int> BindReducedDim(const syntax::Stmt& s, const Region& src);
  Status BindFinish(const syntax::Stmt& s, Block& out);
  Status BindAtomic(const syntax::Stmt& s, AtomicOp op, Block& out);

  // bind_stmt.cc
  StatusOr<Block> BindBlock(const std::vector<syntax::Stmt>& body);
  Status BindStmt(const syntax::Stmt& s, Block& out);
  Status BindLet(const syntax::Stmt& s, Block& out);
  Status BindAllocVar(const syntax::Stmt& s, Block& out);
  Status BindStore(const syntax::Stmt& s, Block& out);
  Status BindParallel(const syntax::Stmt& s, Block& out);
  Status BindFor(const syntax::Stmt& s, LoopKind kind, Block& out);
  Status BindIfStmt(const syntax::Stmt& s, Block& out);
  Status BindOnGroup(const syntax::Stmt& s, Block& out);
  Status BindLag(const syntax::Stmt& s, Block& out);
  Status BindInTurn(const syntax::Stmt& s, Block& out);
  Status BindSend(const syntax::Stmt& s, Block& out);
  Status BindRecv(const syntax::Stmt& s, Block& out);
  StatusOr<Region> BindMessage(const syntax::ExprRef& tile, const syntax::ExprRef& channel,
                               BufferId& id);
  static const syntax::Attr* FindAttr(const syntax::Stmt& s, std::string_view name);
  StatusOr<bool> Flag(const syntax::Stmt& s, std::string_view name);
  Status CheckWritable(const Region& region, std::string_view op) const;
  Status CheckReadable(const Region& region, std::string_view op) const;
  template <typename T>
  void Emit(Block& out, T node, const syntax::Stmt& s) {
    out.push_back(MakeStmt(std::move(node), s.span, ++num_stmts_));
  }

  const Buffer& buffer(BufferId id) const { return module_.buffers[id]; }

  const syntax::Program& program_;
  const BindOptions& options_;
  Module module_;
  std::vector<absl::flat_hash_map<std::string, Binding>> scopes_;
  absl::flat_hash_set<BufferId> finished_;  // reducers that have been finished, in program order
  int num_stmts_ = 0;
  int depth_ = 0;             // of the expression being bound
  int max_depth_ = 0;         // reached since it was set to 0
  int64_t expanded_ = 0;      // nodes that uses of constants and views have copied
  int split_launch_ = kNoId;  // latest launch with a split axis

  // Where the statement being bound stands.
  bool in_launch_ = false;
  bool in_parallel_ = false;
  bool in_group_ = false;
  bool lag_allowed_ = false;  // directly inside a pipelined loop
  int groups_ = 1;
  bool groups_own_ = false;  // tiles
};

}  // namespace tl

#endif  // TILEJIT_IR_BINDER_H_
