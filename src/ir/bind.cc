// Program level: dims, parameters, the choice of tune parameters, operands, launches.
#include "ir/bind.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/edit_distance.h"
#include "ir/binder.h"
#include "ir/host_eval.h"
#include "ir/visit.h"

namespace tl {

using syntax::ExprKind;

namespace {

constexpr int64_t kMaxInt = int64_t{1} << 62;
constexpr int64_t kMaxTensorElements = int64_t{1} << 48;
constexpr int64_t kMaxCombinations = 100000;
constexpr char kConditionUrl[] = "tilejit/condition";
constexpr size_t kMaxLaunches = 16;
constexpr size_t kMaxOperands = 64;
constexpr size_t kMaxWorkspaces = 32;
constexpr size_t kMaxRank = 8;
constexpr size_t kMaxAxes = 8;
constexpr int kMaxClusterBlocks = 8;

bool Applies(const syntax::TuneParam& param, std::string_view target_class) {
  if (param.target_class.empty()) return true;
  for (std::string_view name : absl::StrSplit(target_class, ' ')) {
    if (name == param.target_class) return true;
  }
  return false;
}

// The clause of each tune parameter that counts: the last one that applies, at the place of the
// first.
std::vector<const syntax::TuneParam*> TuneClauses(const syntax::Program& program,
                                                  std::string_view target_class) {
  std::vector<const syntax::TuneParam*> clauses;
  for (const syntax::Decl& decl : program.decls) {
    for (const syntax::TuneParam& param : decl.tune) {
      if (!Applies(param, target_class)) continue;
      auto same = std::find_if(clauses.begin(), clauses.end(), [&](const auto* other) {
        return other->name.text == param.name.text;
      });
      if (same != clauses.end()) {
        *same = &param;
      } else {
        clauses.push_back(&param);
      }
    }
  }
  return clauses;
}

std::string ValueText(const Binding& symbol) {
  if (symbol.kind == Binding::Kind::kDType) return std::string(Name(symbol.dtype));
  if (symbol.kind == Binding::Kind::kEnum) return symbol.text;
  if (const int64_t* v = IntValue(symbol.value)) return absl::StrCat(*v);
  if (const BoolLit* b = As<BoolLit>(symbol.value)) return b->value ? "true" : "false";
  return "?";
}

struct InitRow {
  std::string_view name;
  InitKind kind;
  size_t args;
};
constexpr InitRow kInits[] = {
    {"uniform", InitKind::kUniform, 2},         {"normal", InitKind::kNormal, 2},
    {"constant", InitKind::kConstant, 1},       {"offsets", InitKind::kOffsets, 1},
    {"permutation", InitKind::kPermutation, 0}, {"pages", InitKind::kPages, 1},
};

}  // namespace

std::vector<std::string_view> TuneNames(const syntax::Program& program,
                                        std::string_view target_class) {
  std::vector<std::string_view> names;
  for (const syntax::TuneParam* param : TuneClauses(program, target_class))
    names.push_back(param->name.text);
  return names;
}

StatusOr<TuneSpace> TuneSpaceOf(const syntax::Program& program, const BindOptions& options) {
  return Binder(program, options).RunTuneSpace();
}

StatusOr<Module> Bind(const syntax::Program& program, const BindOptions& options) {
  return Binder(program, options).Run();
}

// ---- scopes ------------------------------------------------------------------------------------

const Binding* Binder::Lookup(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto it = scope->find(name); it != scope->end()) return &it->second;
  }
  return nullptr;
}

Status Binder::Define(const syntax::Name& name, Binding symbol) {
  if (const Binding* old = Lookup(name.text)) {
    return SemanticError(
        name.span,
        absl::StrCat("'", name.text, "' is already defined",
                     old->span.valid() ? absl::StrCat(" at ", FormatSpan(old->span)) : "",
                     "; a name keeps its meaning, choose another or use alloc_var"));
  }
  if (ParseDType(name.text)) {
    return SemanticError(name.span,
                         absl::StrCat("'", name.text, "' is a dtype and cannot be defined"));
  }
  scopes_.back().emplace(name.text, std::move(symbol));
  return absl::OkStatus();
}

Status Binder::DefineVar(const syntax::Name& name, VarId var) {
  return Define(name, {.kind = Binding::Kind::kValue,
                       .span = name.span,
                       .value = MakeVar(var, module_.var(var).type, name.span)});
}

Status Binder::UnknownName(std::string_view name, Span span) const {
  std::vector<std::string_view> known;
  for (const auto& scope : scopes_) {
    for (const auto& [text, symbol] : scope) known.push_back(text);
  }
  std::sort(known.begin(), known.end());
  return SemanticError(span, absl::StrCat("unknown name '", name, "'", DidYouMean(name, known)));
}

const std::string* Binder::FindValue(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : options_.values) {
    if (key == name) found = &value;
  }
  return found;
}

const std::vector<std::string>* Binder::FindChoices(std::string_view name) const {
  for (const auto& [key, values] : options_.choices) {
    if (key == name) return &values;
  }
  return nullptr;
}

// ---- parameters --------------------------------------------------------------------------------

Status Binder::CheckUnusedValues() const {
  std::vector<std::string_view> known;
  const auto add = [&](std::string_view name) {
    // A tune parameter may have several clauses, each for a class of targets.
    if (!absl::c_linear_search(known, name)) known.push_back(name);
  };
  for (const syntax::Name& dim : program_.dims) add(dim.text);
  for (const syntax::Param& param : program_.params) add(param.name.text);
  for (const syntax::Decl& decl : program_.decls) {
    for (const syntax::TuneParam& param : decl.tune) add(param.name.text);
  }
  absl::flat_hash_map<std::string_view, std::string_view> given;
  for (const auto& [name, value] : options_.values) {
    const auto [first, is_new] = given.try_emplace(name, value);
    if (is_new) continue;
    return SemanticError({}, absl::StrCat("'", name, "' is given twice, as '", first->second,
                                          "' and as '", value, "'; give it once"));
  }
  std::vector<std::string_view> names;
  for (const auto& [name, value] : options_.values) names.push_back(name);
  for (const auto& [name, values] : options_.choices) names.push_back(name);
  for (std::string_view name : names) {
    if (absl::c_linear_search(known, name)) continue;
    return SemanticError(
        {}, absl::StrCat("'", program_.name.text, "' has no parameter '", name, "'",
                         DidYouMean(name, known), "; it has ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// The text is the caller's and not the program's: errors point at the name.
StatusOr<syntax::ExprRef> Binder::ParseValue(const syntax::Name& name,
                                             const std::string& text) const {
  StatusOr<syntax::ExprRef> e = syntax::ParseExpr(text);
  if (e.ok()) return e;
  return SemanticError(name.span, absl::StrCat("the value '", text.substr(0, 80), "' of '",
                                               name.text, "': ", e.status().message()));
}

Status Binder::BindDims() {
  for (const syntax::Name& dim : program_.dims) {
    const std::string* text = FindValue(dim.text);
    if (!text) {
      const VarId var = module_.AddVar(dim.text, ScalarType::kInt, VarRole::kDim, dim.span);
      module_.dims.push_back(var);
      TL_RETURN_IF_ERROR(DefineVar(dim, var));
      continue;
    }
    TL_ASSIGN_OR_RETURN(syntax::ExprRef e, ParseValue(dim, *text));
    StatusOr<int64_t> value = BindConstInt(e, absl::StrCat("dim '", dim.text, "'"), 0, kMaxInt);
    if (!value.ok()) return SemanticError(dim.span, value.status().message());
    TL_RETURN_IF_ERROR(
        Define(dim, {.kind = Binding::Kind::kValue, .span = dim.span, .value = MakeInt(*value)}));
    module_.params.push_back({dim.text, absl::StrCat(*value), false});
  }
  return absl::OkStatus();
}

StatusOr<Binding> Binder::ParamValue(const syntax::Param& param, const syntax::ExprRef& e) {
  Binding symbol{.span = param.name.span};
  const std::string what = absl::StrCat("parameter '", param.name.text, "'");
  // Dtypes are no values of expressions, but may depend on a condition.
  if (e->kind == ExprKind::kIf && param.type == "dtype") {
    TL_ASSIGN_OR_RETURN(bool condition, BindConstBool(e->args[0], what));
    return ParamValue(param, e->args[condition ? 1 : 2]);
  }
  if (param.type == "dtype") {
    symbol.kind = Binding::Kind::kDType;
    if (e->kind != ExprKind::kName)
      return SemanticError(e->span, absl::StrCat(what, " is a dtype such as bf16"));
    TL_ASSIGN_OR_RETURN(symbol.dtype, BindDType(e->text, e->span));
    return symbol;
  }
  if (param.type == "enum") {
    symbol.kind = Binding::Kind::kEnum;
    for (const syntax::Name& choice : param.choices) symbol.choices.push_back(choice.text);
    TL_ASSIGN_OR_RETURN(symbol.text, BindChoice(e, what, symbol.choices));
    return symbol;
  }
  if (param.type == "bool") {
    TL_ASSIGN_OR_RETURN(bool value, BindConstBool(e, what));
    symbol.value = MakeBool(value);
    return symbol;
  }
  TL_ASSIGN_OR_RETURN(int64_t value, BindConstInt(e, what, -kMaxInt, kMaxInt));
  symbol.value = MakeInt(value);
  return symbol;
}

Status Binder::BindParam(const syntax::Param& param) {
  const std::string* text = FindValue(param.name.text);
  if (!text && !param.default_value) {
    return SemanticError(param.name.span, absl::StrCat("parameter '", param.name.text,
                                                       "' has no default and must be given"));
  }
  syntax::ExprRef e = param.default_value;
  if (text) {
    TL_ASSIGN_OR_RETURN(e, ParseValue(param.name, *text));
  }
  StatusOr<Binding> symbol = ParamValue(param, e);
  if (!symbol.ok() && text) return SemanticError(param.name.span, symbol.status().message());
  TL_RETURN_IF_ERROR(symbol.status());
  module_.params.push_back({param.name.text, ValueText(*symbol), false});
  return Define(param.name, *std::move(symbol));
}

Status Binder::BindParams() {
  for (const syntax::Param& param : program_.params) TL_RETURN_IF_ERROR(BindParam(param));
  return absl::OkStatus();
}

// The first `where` that does not hold for the tune parameters now in scope; null: all hold.
StatusOr<syntax::ExprRef> Binder::FailingWhere() {
  for (const syntax::Decl& decl : program_.decls) {
    if (!decl.where) continue;
    TL_ASSIGN_OR_RETURN(bool holds, BindConstBool(decl.where, "where"));
    if (!holds) return decl.where;
  }
  return nullptr;
}

// ": 331776 <= 232448" of a condition that compares two numbers, with what is in scope.
std::string Binder::SidesOf(const syntax::Expr& condition) {
  if (condition.kind != ExprKind::kBinary) return "";
  const StatusOr<ExprRef> left = BindExpr(condition.args[0]), right = BindExpr(condition.args[1]);
  if (!left.ok() || !right.ok()) return "";
  const int64_t *a = IntValue(*left), *b = IntValue(*right);
  return a && b ? absl::StrCat(": ", *a, " ", condition.text, " ", *b) : "";
}

Status Binder::WhereFails(const syntax::ExprRef& condition, int64_t combinations) {
  const std::string whose =
      combinations == 1                  ? absl::StrCat("the values given", SidesOf(*condition))
      : combinations == kMaxCombinations ? "the first 100000 combinations of tune parameters"
                                         : "any combination of the tune parameters";
  Status status = SemanticError(condition->span, absl::StrCat("'where ", syntax::Print(condition),
                                                              "' does not hold for ", whose));
  status.SetPayload(kConditionUrl, absl::Cord());
  return status;
}

Status Binder::AddCandidate(const syntax::ExprRef& e, TuneRow& row) {
  const syntax::Name& name = row.clause->name;
  TL_ASSIGN_OR_RETURN(ExprRef value, BindExpr(e));
  if (!IntValue(value) && !As<BoolLit>(value)) {
    return SemanticError(e->span, absl::StrCat("candidates of '", name.text,
                                               "' must be ints or bools known at compile time"));
  }
  const bool known = absl::c_any_of(
      row.candidates, [&](const Binding& other) { return Equal(other.value, value); });
  if (known) return absl::OkStatus();
  row.candidates.push_back({.kind = Binding::Kind::kValue, .span = name.span, .value = value});
  return absl::OkStatus();
}

// What the caller gives instead of the candidates is of their type.
Status Binder::AddGiven(const std::string& text, const TuneRow& written, TuneRow& row) {
  const syntax::Name& name = written.clause->name;
  TL_ASSIGN_OR_RETURN(syntax::ExprRef e, ParseValue(name, text));
  TuneRow given{written.clause, {}};
  const Status status = AddCandidate(e, given);
  const auto type = [](const TuneRow& r) { return r.candidates[0].value->type; };
  if (written.candidates.empty()) {  // they depend on what is not known
    return status.ok() ? AddCandidate(e, row) : SemanticError(name.span, status.message());
  }
  if (status.ok() && type(given) == type(written)) return AddCandidate(e, row);
  const auto append = [](std::string* out, const Binding& candidate) {
    out->append(ValueText(candidate));
  };
  const std::string wanted =
      type(written) == ScalarType::kBool
          ? "a bool, on or off"
          : absl::StrCat("an int, tuned over ", absl::StrJoin(written.candidates, ", ", append));
  return SemanticError(
      name.span, absl::StrCat("parameter '", name.text, "' is ", wanted, "; found '", text, "'"));
}

StatusOr<Binder::TuneRow> Binder::MakeTuneRow(const syntax::TuneParam& clause) {
  TuneRow written{&clause, {}}, row{&clause, {}};
  Status status;
  for (const syntax::ExprRef& e : clause.candidates) status.Update(AddCandidate(e, written));
  if (const std::string* text = FindValue(clause.name.text)) {
    TL_RETURN_IF_ERROR(AddGiven(*text, written, row));
  } else if (const auto* texts = FindChoices(clause.name.text)) {
    for (const std::string& choice : *texts) TL_RETURN_IF_ERROR(AddGiven(choice, written, row));
  } else {
    TL_RETURN_IF_ERROR(status);
    return written;
  }
  return row;
}

StatusOr<std::vector<Binder::TuneRow>> Binder::TuneRows() {
  std::vector<TuneRow> rows;
  for (const syntax::TuneParam* clause : TuneClauses(program_, options_.target_class)) {
    TL_ASSIGN_OR_RETURN(TuneRow row, MakeTuneRow(*clause));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Walks the combinations in the order written (the last parameter varies fastest) and calls `visit`
// with each that satisfies every condition in scope, until it returns false; that one stays in
// scope. Fails when there is none.
Status Binder::ForEachCombination(const std::vector<TuneRow>& rows,
                                  absl::FunctionRef<bool()> visit) {
  int64_t combinations = 1;
  for (const TuneRow& row : rows) {
    combinations =
        std::min(kMaxCombinations, combinations * static_cast<int64_t>(row.candidates.size()));
  }
  bool found = false;
  const auto place = [](const syntax::ExprRef& e) {
    return std::pair(e->span.line, e->span.column);
  };
  syntax::ExprRef furthest;  // of the conditions that combinations come to and fail
  for (int64_t n = 0; n < combinations; ++n) {
    PushScope();
    int64_t rest = n;
    for (size_t i = rows.size(); i-- > 0;) {
      const int64_t size = static_cast<int64_t>(rows[i].candidates.size());
      TL_RETURN_IF_ERROR(Define(rows[i].clause->name, rows[i].candidates[rest % size]));
      rest /= size;
    }
    TL_ASSIGN_OR_RETURN(const syntax::ExprRef failing, FailingWhere());
    if (!failing) {
      found = true;
      if (!visit()) return absl::OkStatus();
    } else if (!furthest || place(furthest) < place(failing)) {
      furthest = failing;
    }
    if (!found && n == combinations - 1) return WhereFails(furthest, combinations);
    PopScope();
  }
  return absl::OkStatus();
}

Status Binder::ChooseTuneParams() {
  TL_ASSIGN_OR_RETURN(const std::vector<TuneRow> rows, TuneRows());
  TL_RETURN_IF_ERROR(ForEachCombination(rows, [] { return false; }));
  for (const TuneRow& row : rows) {
    const std::string& name = row.clause->name.text;
    module_.params.push_back({name, ValueText(*Lookup(name)), true});
  }
  return absl::OkStatus();
}

bool IsConditionFailure(const Status& status) {
  return status.GetPayload(kConditionUrl).has_value();
}

StatusOr<TuneSpace> Binder::RunTuneSpace() {
  TL_RETURN_IF_ERROR(BindParameters());
  TL_ASSIGN_OR_RETURN(const std::vector<TuneRow> rows, TuneRows());
  TuneSpace space;
  double size = 1;
  for (const TuneRow& row : rows) {
    space.names.push_back(row.clause->name.text);
    std::vector<std::string>& candidates = space.candidates.emplace_back();
    for (const Binding& candidate : row.candidates) candidates.push_back(ValueText(candidate));
    size *= static_cast<double>(row.candidates.size());
  }
  space.complete = size <= static_cast<double>(kMaxCombinations);
  TL_RETURN_IF_ERROR(ForEachCombination(rows, [&] {
    std::vector<std::string>& values = space.combinations.emplace_back();
    for (const std::string& name : space.names) values.push_back(ValueText(*Lookup(name)));
    return true;
  }));
  return space;
}

// ---- declarations ------------------------------------------------------------------------------

Status Binder::BindDecl(const syntax::Decl& decl) {
  for (const syntax::Operand& operand : decl.operands) TL_RETURN_IF_ERROR(BindOperand(operand));
  for (const syntax::Init& init : decl.init) TL_RETURN_IF_ERROR(BindInit(init));
  for (const syntax::Stmt& constant : decl.constant) TL_RETURN_IF_ERROR(BindConstant(constant));
  return absl::OkStatus();
}

Status Binder::BindConstant(const syntax::Stmt& s) {
  max_depth_ = 0;
  TL_ASSIGN_OR_RETURN(Typed value, BindTyped(s.operands[0]));
  Binding symbol{.kind = Binding::Kind::kValue, .span = s.names[0].span, .value = value.expr};
  symbol.loose = value.loose;
  symbol.height = max_depth_;
  symbol.size = 0;
  VisitExpr(value.expr, [&](const ExprRef&) { ++symbol.size; });
  return Define(s.names[0], std::move(symbol));
}

StatusOr<ExprRef> Binder::BindHostInt(const syntax::ExprRef& e, std::string_view what) {
  TL_ASSIGN_OR_RETURN(ExprRef x, BindInt(e, what));
  const Status known = HostExpr::Compile(module_, x).status();
  if (known.ok()) return x;
  if (DetailOf(known).reason == Reason::kLimit) return LimitError(e->span, known.message());
  return SemanticError(e->span, absl::StrCat(what, " ", known.message()));
}

Status Binder::BindOperand(const syntax::Operand& operand) {
  if (operand.condition) {
    TL_ASSIGN_OR_RETURN(bool present,
                        BindConstBool(operand.condition, "the condition of an operand"));
    if (!present)
      return Define(operand.name,
                    {.kind = Binding::Kind::kAbsent, .span = operand.condition->span});
  }
  TL_ASSIGN_OR_RETURN(DType dtype, BindDType(operand.dtype, operand.dtype_span));
  if (!operand.is_tensor) {
    if (operand.kind != syntax::Operand::Kind::kIn) {
      return SemanticError(operand.name.span,
                           absl::StrCat("scalar '", operand.name.text,
                                        "' can only be an input; write results to a tensor"));
    }
    const VarId var =
        module_.AddVar(operand.name.text, ComputeType(dtype), VarRole::kScalar, operand.name.span);
    module_.vars[var].dtype = dtype;
    module_.scalars.push_back(var);
    return DefineVar(operand.name, var);
  }
  Buffer b{.name = operand.name.text, .span = operand.name.span, .scope = Scope::kGlobal};
  b.dtype = dtype;
  b.is_const = operand.is_const;
  switch (operand.kind) {
    case syntax::Operand::Kind::kIn:
      b.role = BufferRole::kIn;
      break;
    case syntax::Operand::Kind::kOut:
      b.role = BufferRole::kOut;
      break;
    case syntax::Operand::Kind::kInOut:
      b.role = BufferRole::kInOut;
      break;
    case syntax::Operand::Kind::kWorkspace:
      b.role = BufferRole::kWorkspace;
      break;
  }
  return BindTensor(operand, std::move(b));
}

Status Binder::BindTensor(const syntax::Operand& operand, Buffer b) {
  if (operand.shape.empty() || operand.shape.size() > kMaxRank) {
    return LimitError(operand.name.span,
                      absl::StrCat("tensor '", b.name, "' needs 1 to ", kMaxRank, " dims"));
  }
  int64_t elements = 1;
  for (const syntax::ExprRef& e : operand.shape) {
    TL_ASSIGN_OR_RETURN(ExprRef extent,
                        BindHostInt(e, absl::StrCat("an extent of '", b.name, "'")));
    if (const int64_t* v = IntValue(extent); v && *v < 0) {
      return SemanticError(e->span, absl::StrCat("an extent of '", b.name, "' is negative: ", *v));
    }
    if (const int64_t* v = IntValue(extent);
        v && __builtin_mul_overflow(elements, std::max<int64_t>(*v, 1), &elements)) {
      elements = kMaxInt;
    }
    if (elements > kMaxTensorElements) {
      return LimitError(e->span, absl::StrCat("tensor '", b.name, "' has more than 2^48 elements"));
    }
    b.shape.push_back(std::move(extent));
  }
  if (!operand.packed.empty()) {
    if (b.shape.size() < 2)
      return SemanticError(operand.name.span, "prepacked tensors have at least 2 dims");
    if (!operand.strides.empty())
      return SemanticError(operand.name.span, "a prepacked tensor has no strides of its own");
    for (const syntax::ExprRef& e : operand.packed) {
      TL_ASSIGN_OR_RETURN(int64_t extent, BindConstInt(e, "an extent of a packed tile", 1, 4096));
      b.packed.push_back(extent);
    }
  }
  TL_RETURN_IF_ERROR(BindStrides(operand, b));
  if (!operand.stands_for.text.empty()) {
    TL_ASSIGN_OR_RETURN(b.stands_for, BindStandsFor(operand.stands_for, b));
  }
  const bool workspace = b.role == BufferRole::kWorkspace;
  const BufferId id = module_.AddBuffer(std::move(b));
  std::vector<BufferId>& list = workspace ? module_.workspaces : module_.operands;
  list.push_back(id);
  if (list.size() > (workspace ? kMaxWorkspaces : kMaxOperands)) {
    return LimitError(operand.name.span,
                      absl::StrCat("more than ", workspace ? kMaxWorkspaces : kMaxOperands,
                                   workspace ? " workspaces" : " operands"));
  }
  return Define(operand.name, {.kind = Binding::Kind::kBuffer,
                               .span = operand.name.span,
                               .buffer = id,
                               .extents_as_written = operand.shape});
}

StatusOr<BufferId> Binder::BindStandsFor(const syntax::Name& name, const Buffer& b) {
  const Binding* binding = Lookup(name.text);
  const bool tensor = binding && binding->kind == Binding::Kind::kBuffer;
  const Buffer* operand = tensor ? &module_.buffer(binding->buffer) : nullptr;
  if (operand && operand->role == BufferRole::kIn && operand->dtype == b.dtype &&
      operand->rank() == b.rank() && operand->packed.empty() && b.packed.empty()) {
    return binding->buffer;
  }
  return SemanticError(
      name.span,
      absl::StrCat("workspace '", b.name, "' can stand for an 'in' tensor of ", Name(b.dtype),
                   " with ", b.rank(), " dims, not prepacked; '", name.text, "' is none"));
}

Status Binder::BindStrides(const syntax::Operand& operand, Buffer& b) {
  const size_t rank = b.shape.size();
  b.strides.resize(rank);
  if (operand.strides.empty()) {
    // Packed tensors round their last two dims up to whole tiles.
    ExprRef stride = MakeInt(1);
    for (size_t d = rank; d-- > 0;) {
      b.strides[d] = stride;
      ExprRef extent = b.shape[d];
      if (!b.packed.empty() && d + 2 >= rank) {
        const ExprRef tile = MakeInt(b.packed[d + 2 - rank]);
        extent = MakeBinary(BinaryOp::kMul, MakeBinary(BinaryOp::kCeilDiv, extent, tile), tile);
      }
      stride = MakeBinary(BinaryOp::kMul, stride, extent);
    }
    return absl::OkStatus();
  }
  if (b.role == BufferRole::kWorkspace)
    return SemanticError(operand.name.span, "workspace tensors are contiguous");
  if (operand.strides.size() != rank) {
    return SemanticError(operand.name.span, absl::StrCat("'", b.name, "' has ", rank, " dims, but ",
                                                         operand.strides.size(), " strides"));
  }
  for (size_t d = 0; d < rank; ++d) {
    const syntax::ExprRef& e = operand.strides[d];
    if (e->kind == ExprKind::kAny) {
      const VarId var = module_.AddVar(absl::StrCat(b.name, ".stride", d), ScalarType::kInt,
                                       VarRole::kStride, e->span);
      module_.strides.push_back(var);
      b.strides[d] = MakeVar(var, ScalarType::kInt, e->span);
      continue;
    }
    TL_ASSIGN_OR_RETURN(b.strides[d], BindHostInt(e, absl::StrCat("a stride of '", b.name, "'")));
    if (const int64_t* v = IntValue(b.strides[d]); v && *v < 0)
      return SemanticError(e->span, absl::StrCat("a stride of '", b.name, "' is negative: ", *v));
  }
  return absl::OkStatus();
}

Status Binder::BindInit(const syntax::Init& init) {
  if (init.condition) {
    TL_ASSIGN_OR_RETURN(bool present, BindConstBool(init.condition, "the condition of init"));
    if (!present) return absl::OkStatus();
  }
  const auto* row = std::find_if(std::begin(kInits), std::end(kInits),
                                 [&](const InitRow& r) { return r.name == init.kind.text; });
  if (row == std::end(kInits)) {
    return SemanticError(
        init.kind.span,
        absl::StrCat("unknown init '", init.kind.text,
                     "'; there are uniform, normal, constant, offsets, permutation, pages"));
  }
  if (init.args.size() != row->args) {
    return SemanticError(init.kind.span, absl::StrCat("'", row->name, "' takes ", row->args,
                                                      " arguments, not ", init.args.size()));
  }
  const Binding* symbol = Lookup(init.operand.text);
  if (!symbol) return UnknownName(init.operand.text, init.operand.span);
  if (symbol->kind == Binding::Kind::kAbsent) return absl::OkStatus();
  InitClause clause{.kind = row->kind, .args = {}, .span = init.kind.span};
  if (symbol->kind == Binding::Kind::kBuffer) {
    clause.buffer = symbol->buffer;
  } else if (const VarRef* ref = symbol->value ? As<VarRef>(symbol->value) : nullptr;
             ref && module_.var(ref->var).role == VarRole::kScalar) {
    clause.scalar = ref->var;
  } else {
    return SemanticError(init.operand.span,
                         absl::StrCat("'", init.operand.text, "' is no operand"));
  }
  for (const syntax::ExprRef& e : init.args) {
    TL_ASSIGN_OR_RETURN(ExprRef arg, BindExpr(e));
    clause.args.push_back(std::move(arg));
  }
  module_.inits.push_back(std::move(clause));
  return absl::OkStatus();
}

// ---- launches ----------------------------------------------------------------------------------

Status Binder::BindSegment(const syntax::Axis& axis, Launch& out) {
  SplitAxis split;
  TL_ASSIGN_OR_RETURN(split.items, BindHostInt(axis.items, "the number of items"));
  TL_ASSIGN_OR_RETURN(split.parts, BindHostInt(axis.parts, "the number of runs"));
  if (const int64_t* v = IntValue(split.parts); v && *v < 1) {
    return SemanticError(axis.parts->span,
                         absl::StrCat("a split needs at least 1 run, found ", *v));
  }
  VarId* vars[] = {&split.item, &split.begin, &split.end, &split.part, &split.whole};
  for (int i = 0; i < 5; ++i) {
    const syntax::Name& name = axis.segment[i];
    *vars[i] = module_.AddVar(name.text, i == 4 ? ScalarType::kBool : ScalarType::kInt,
                              VarRole::kGrid, name.span);
  }
  VarId foreign = kNoId;
  // `count` sees the item under the name that the split gives it, usually the same.
  PushScope();
  TL_RETURN_IF_ERROR(DefineVar(axis.item, split.item));
  TL_ASSIGN_OR_RETURN(split.count, BindInt(axis.count, "the count of a split"));
  PopScope();
  // `parts(b)` of a later launch counts again, where this launch's indices are unknown.
  VisitExpr(split.count, [&](const ExprRef& x) {
    const VarRef* ref = As<VarRef>(x);
    if (ref && ref->var != split.item && module_.var(ref->var).role == VarRole::kGrid)
      foreign = ref->var;
  });
  if (foreign != kNoId) {
    return SemanticError(
        axis.count->span,
        absl::StrCat("the count of a split depends on its item only, not on axis '",
                     module_.var(foreign).name, "'"));
  }
  for (int i = 0; i < 5; ++i) TL_RETURN_IF_ERROR(DefineVar(axis.segment[i], *vars[i]));
  out.split = std::move(split);
  split_launch_ = static_cast<int>(module_.launches.size());
  return absl::OkStatus();
}

Status Binder::BindAxis(const syntax::Axis& axis, bool last, Launch& out) {
  if (axis.is_segment) {
    if (!last)
      return SemanticError(axis.segment[0].span, "'segment' must be the last axis of a launch");
    return BindSegment(axis, out);
  }
  TL_ASSIGN_OR_RETURN(ExprRef extent, BindHostInt(axis.extent, absl::StrCat("the extent of axis '",
                                                                            axis.name.text, "'")));
  if (const int64_t* v = IntValue(extent); v && *v < 0) {
    return SemanticError(axis.extent->span,
                         absl::StrCat("axis '", axis.name.text, "' has a negative extent: ", *v));
  }
  const VarId var =
      module_.AddVar(axis.name.text, ScalarType::kInt, VarRole::kGrid, axis.name.span);
  TL_RETURN_IF_ERROR(DefineVar(axis.name, var));
  out.axes.push_back({var, std::move(extent)});
  return absl::OkStatus();
}

Status Binder::BindLaunchAttr(const syntax::Attr& attr, Launch& out) {
  if (attr.name == "persistent") {
    out.persistent = true;
    if (attr.value) {
      TL_ASSIGN_OR_RETURN(out.persistent, BindConstBool(attr.value, "persistent"));
    }
  } else if (attr.name == "groups") {
    TL_ASSIGN_OR_RETURN(int64_t n, BindConstInt(attr.value, "groups", 1, 16));
    out.groups = static_cast<int>(n);
  } else if (attr.name == "threads") {
    TL_ASSIGN_OR_RETURN(int64_t n, BindConstInt(attr.value, "threads", 1, 1024));
    out.threads = static_cast<int>(n);
  } else if (attr.name == "blocks") {
    TL_ASSIGN_OR_RETURN(int64_t n, BindConstInt(attr.value, "blocks", 1, 32));
    out.blocks = static_cast<int>(n);
  } else if (attr.name == "producer") {
    TL_ASSIGN_OR_RETURN(std::string name,
                        BindChoice(attr.value, "producer", {"auto", "warp", "self"}));
    out.producer = name == "warp"   ? Producer::kWarp
                   : name == "self" ? Producer::kSelf
                                    : Producer::kAuto;
  } else if (attr.name == "stores") {
    TL_ASSIGN_OR_RETURN(std::string name,
                        BindChoice(attr.value, "stores", {"auto", "threads", "bulk"}));
    out.stores = name == "threads" ? Stores::kThreads
                 : name == "bulk"  ? Stores::kBulk
                                   : Stores::kAuto;
  } else if (attr.name == "owner") {
    TL_ASSIGN_OR_RETURN(std::string name, BindChoice(attr.value, "owner", {"block", "group"}));
    out.owner = name == "group" ? Owner::kGroup : Owner::kBlock;
  } else if (attr.name == "order") {
    const bool call = attr.value->kind == ExprKind::kCall;
    const std::string& order = attr.value->text;
    if (order == "longest" && call && attr.value->args.size() == 1) {
      const syntax::ExprRef& axis = attr.value->args[0];
      for (const GridAxis& a : out.axes) {
        if (axis->kind == ExprKind::kName && module_.var(a.var).name == axis->text)
          out.longest = a.var;
      }
      if (out.longest == kNoId)
        return SemanticError(axis->span, "order=longest(…) names an axis of this launch");
      out.order = Order::kLongest;
    } else if (order == "row" || order == "col") {
      out.order = order == "row" ? Order::kRow : Order::kCol;
      if (call && attr.value->args.size() == 1) {
        TL_ASSIGN_OR_RETURN(int64_t n,
                            BindConstInt(attr.value->args[0], "the panel of order", 1, 1024));
        out.panel = static_cast<int>(n);
      } else if (call) {
        return SemanticError(attr.value->span,
                             absl::StrCat("'", order, "' takes 1 argument, the tiles per panel"));
      }
    } else {
      return SemanticError(
          attr.value->span,
          absl::StrCat("order is row, col, row(n), col(n) or longest(axis), found '",
                       syntax::Print(attr.value), "'"));
    }
  } else {
    return SemanticError(
        attr.span,
        absl::StrCat(
            "a launch has no attribute '", attr.name,
            "'; it has persistent, groups, threads, blocks, order, producer, stores, owner, "
            "cluster"));
  }
  return absl::OkStatus();
}

Status Binder::BindLaunch(const syntax::Launch& launch) {
  if (launch.axes.size() > kMaxAxes)
    return LimitError(launch.span, absl::StrCat("a launch has at most ", kMaxAxes, " axes"));
  Launch out;
  out.span = launch.span;
  PushScope();
  in_launch_ = true;
  for (size_t i = 0; i < launch.axes.size(); ++i) {
    TL_RETURN_IF_ERROR(BindAxis(launch.axes[i], i + 1 == launch.axes.size(), out));
  }
  for (const syntax::Attr& attr : launch.attrs) TL_RETURN_IF_ERROR(BindLaunchAttr(attr, out));
  for (const syntax::ExprRef& e : launch.cluster) {
    TL_ASSIGN_OR_RETURN(int64_t n, BindConstInt(e, "an extent of cluster", 1, kMaxClusterBlocks));
    out.cluster.push_back(static_cast<int>(n));
    if (out.cluster_size() > kMaxClusterBlocks) {
      return SemanticError(e->span,
                           absl::StrCat("a cluster has at most ", kMaxClusterBlocks,
                                        " blocks; with this extent it has ", out.cluster_size()));
    }
  }
  if (out.cluster.size() > launch.axes.size()) {
    return SemanticError(launch.span, "cluster has more extents than the launch has axes");
  }
  if (out.threads * out.groups > 1024) {
    return SemanticError(
        launch.span,
        absl::StrCat("threads=", out.threads, " for each of groups=", out.groups, " makes ",
                     out.threads * out.groups, " threads in a block; at most 1024 are possible"));
  }
  if (out.owner == Owner::kGroup && !out.persistent) {
    return SemanticError(launch.span,
                         "groups that own tiles go on to further ones: owner=group takes a "
                         "persistent launch");
  }
  groups_ = out.groups;
  groups_own_ = out.owner == Owner::kGroup;
  TL_ASSIGN_OR_RETURN(out.body, BindBlock(launch.body));
  in_launch_ = false;
  PopScope();
  module_.launches.push_back(std::move(out));
  return absl::OkStatus();
}

// Those that are known to have no blocks are left out, and what only they define; one stays.
Status Binder::BindLaunches() {
  for (size_t i = 0; i < program_.launches.size(); ++i) {
    const size_t vars = module_.vars.size(), buffers = module_.buffers.size();
    TL_RETURN_IF_ERROR(BindLaunch(program_.launches[i]));
    const Launch& launch = module_.launches.back();
    const bool runs = launch.split || absl::c_none_of(launch.axes, [](const GridAxis& axis) {
                        return IsInt(axis.extent, 0);
                      });
    const bool only = module_.launches.size() == 1 && i + 1 == program_.launches.size();
    if (runs || only) continue;
    module_.launches.pop_back();
    module_.vars.resize(vars);
    module_.buffers.resize(buffers);
  }
  return absl::OkStatus();
}

// Everything but the tune parameters, which depend on the rest.
Status Binder::BindParameters() {
  if (program_.major != 1 || program_.minor != 0) {
    return SemanticError({}, absl::StrCat("the program is written in tile IR ", program_.major, ".",
                                          program_.minor, "; this library reads 1.0"));
  }
  module_.name = program_.name.text;
  PushScope();
  TL_RETURN_IF_ERROR(CheckUnusedValues());
  TL_RETURN_IF_ERROR(BindDims());
  return BindParams();
}

StatusOr<Module> Binder::Run() {
  TL_RETURN_IF_ERROR(BindParameters());
  TL_RETURN_IF_ERROR(ChooseTuneParams());
  for (const syntax::Decl& decl : program_.decls) TL_RETURN_IF_ERROR(BindDecl(decl));
  if (program_.launches.empty())
    return SemanticError(program_.name.span, "the kernel has no launch");
  if (program_.launches.size() > kMaxLaunches) {
    return LimitError(program_.launches[kMaxLaunches].span,
                      absl::StrCat("a kernel has at most ", kMaxLaunches, " launches"));
  }
  TL_RETURN_IF_ERROR(BindLaunches());
  return std::move(module_);
}

}  // namespace tl
