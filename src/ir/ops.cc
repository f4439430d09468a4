#include "ir/ops.h"

#include <algorithm>

#include "ir/lexer.h"

namespace tl::syntax {
namespace {

constexpr std::string_view kPolicies[] = {"square", "full_row", "full_col"};
constexpr std::string_view kOrders[] = {"row", "col", "longest"};

constexpr AttrSpec kSharedAttrs[] = {{"boxes", AttrKind::kValue}};
constexpr AttrSpec kChanAttrs[] = {{"depth", AttrKind::kValue}};
constexpr AttrSpec kCopyAttrs[] = {
    {"rows", AttrKind::kValue},
    {"transpose", AttrKind::kFlag},
    {"evict", AttrKind::kValue},  // a word, or what stands for one when compiling
};
constexpr AttrSpec kGemmAttrs[] = {
    {"transpose_a", AttrKind::kFlag},  {"transpose_b", AttrKind::kFlag},
    {"clear", AttrKind::kFlag},        {"policy", AttrKind::kChoice, kPolicies},
    {"precision", AttrKind::kValue},    // a choice that may depend on parameters
    {"orientation", AttrKind::kValue},  // the same
};
constexpr AttrSpec kReduceAttrs[] = {{"dim", AttrKind::kValue}, {"clear", AttrKind::kFlag}};
constexpr AttrSpec kArgMaxAttrs[] = {{"dim", AttrKind::kValue}};
constexpr AttrSpec kCumSumAttrs[] = {{"dim", AttrKind::kValue}, {"reverse", AttrKind::kFlag}};
constexpr AttrSpec kLoopAttrs[] = {{"down", AttrKind::kFlag}};
constexpr AttrSpec kSerialAttrs[] = {{"down", AttrKind::kFlag}, {"partition", AttrKind::kFlag}};
constexpr AttrSpec kPipelinedAttrs[] = {
    {"down", AttrKind::kFlag}, {"stages", AttrKind::kValue}, {"partition", AttrKind::kFlag}};
constexpr AttrSpec kLaunchAttrs[] = {
    {"persistent", AttrKind::kFlag},
    {"groups", AttrKind::kValue},
    {"threads", AttrKind::kValue},
    {"blocks", AttrKind::kValue},
    {"order", AttrKind::kChoice, kOrders, /*argument=*/true},
    {"producer", AttrKind::kValue},  // the same
    {"stores", AttrKind::kValue},    // the same
    {"owner", AttrKind::kValue},     // the same
    {"cluster", AttrKind::kList},
};

constexpr OperandKind kRegion = OperandKind::kRegion;
constexpr OperandKind kExpr = OperandKind::kExpr;

constexpr OpSpec kOps[] = {
    {"let", Form::kLet},
    {"store", Form::kStore},
    {"alloc_shared", Form::kAlloc, 1, kRegion, kSharedAttrs},
    {"alloc_fragment", Form::kAlloc},
    {"alloc_acc", Form::kAlloc},
    {"alloc_reducer", Form::kAlloc, 2},
    {"alloc_local", Form::kAlloc},
    {"alloc_var", Form::kAllocVar},
    {"alloc_chan", Form::kAlloc, 1, kRegion, kChanAttrs},
    {"view", Form::kView},
    {"copy", Form::kMove, 1, kRegion, kCopyAttrs},
    {"clear", Form::kList, 0},
    {"fill", Form::kList, 2, kExpr},
    {"gemm", Form::kMove, 2, kRegion, kGemmAttrs},
    {"reduce_sum", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_max", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_min", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_absmax", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_prod", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_any", Form::kMove, 1, kRegion, kReduceAttrs},
    {"reduce_all", Form::kMove, 1, kRegion, kReduceAttrs},
    {"argmax", Form::kMove, 1, kRegion, kArgMaxAttrs},
    {"cumsum", Form::kMove, 1, kRegion, kCumSumAttrs},
    {"finish", Form::kList, 1},
    {"atomic_add", Form::kMove, 1, kExpr},
    {"atomic_max", Form::kMove, 1, kExpr},
    {"atomic_min", Form::kMove, 1, kExpr},
    {"parallel", Form::kParallel},
    {"serial", Form::kLoop, 1, kRegion, kSerialAttrs},
    {"unrolled", Form::kLoop, 1, kRegion, kLoopAttrs},
    {"vectorized", Form::kLoop, 1, kRegion, kLoopAttrs},
    {"pipelined", Form::kLoop, 1, kRegion, kPipelinedAttrs},
    {"if", Form::kIf},
    {"on", Form::kOn},
    {"lag", Form::kBlock, 1},
    {"in_turn", Form::kBlock, 0},
    {"send", Form::kMove},
    {"recv", Form::kMove},
};

constexpr std::string_view kReserved[] = {"if",   "then",  "else", "and", "or",  "not", "in",
                                          "true", "false", "on",   "off", "inf", "nan"};

struct OperatorRow {
  std::string_view text;
  Precedence precedence;
};
constexpr OperatorRow kOperators[] = {
    {"*", kPrecProduct},  {"+", kPrecSum},      {"-", kPrecSum},      {"/", kPrecProduct},
    {"%", kPrecProduct},  {"<", kPrecCompare},  {"<=", kPrecCompare}, {">", kPrecCompare},
    {">=", kPrecCompare}, {"==", kPrecCompare}, {"!=", kPrecCompare}, {"and", kPrecAnd},
    {"or", kPrecOr},      {"&", kPrecBits},     {"^", kPrecBits},     {"|", kPrecBits},
    {"<<", kPrecShift},   {">>", kPrecShift},
};

bool IsAlloc(const OpSpec& op) { return op.form == Form::kAlloc || op.form == Form::kAllocVar; }

}  // namespace

absl::Span<const OpSpec> Ops() { return kOps; }

const OpSpec* FindOp(std::string_view name) {
  for (const OpSpec& op : kOps) {
    if (SameWord(op.name, name)) return &op;
  }
  return nullptr;
}

bool StartsStatement(const OpSpec& op) { return op.form >= Form::kMove; }

absl::Span<const AttrSpec> LaunchAttrs() { return kLaunchAttrs; }

const AttrSpec* FindAttr(absl::Span<const AttrSpec> attrs, std::string_view name) {
  for (const AttrSpec& attr : attrs) {
    if (SameWord(attr.name, name)) return &attr;
  }
  return nullptr;
}

bool IsAttrOfSomeOp(std::string_view name) {
  return std::any_of(std::begin(kOps), std::end(kOps),
                     [&](const OpSpec& op) { return FindAttr(op.attrs, name) != nullptr; });
}

bool IsReserved(std::string_view word) {
  return word.size() <= 5 && std::any_of(std::begin(kReserved), std::end(kReserved),
                                         [&](std::string_view w) { return SameWord(w, word); });
}

Precedence BinaryPrecedence(std::string_view op) {
  if (op.size() > 3) return kPrecNone;
  for (const OperatorRow& row : kOperators) {
    if (SameWord(row.text, op)) return row.precedence;
  }
  return kPrecNone;
}

std::vector<std::string_view> StatementWords() {
  std::vector<std::string_view> words = {"for"};
  for (const OpSpec& op : kOps) {
    if (StartsStatement(op)) words.push_back(op.name);
  }
  return words;
}

std::vector<std::string_view> AllocWords() {
  std::vector<std::string_view> words;
  for (const OpSpec& op : kOps) {
    if (IsAlloc(op)) words.push_back(op.name);
  }
  return words;
}

std::vector<std::string_view> AttrNames(absl::Span<const AttrSpec> attrs) {
  std::vector<std::string_view> names;
  for (const AttrSpec& attr : attrs) names.push_back(attr.name);
  return names;
}

}  // namespace tl::syntax
