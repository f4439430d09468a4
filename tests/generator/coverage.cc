#include "tests/generator/coverage.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/visit.h"

namespace tl::generator {
namespace {

constexpr DType kTypes[] = {DType::kBool, DType::kI8,   DType::kU8,  DType::kI16,  DType::kU16,
                            DType::kI32,  DType::kU32,  DType::kI64, DType::kE4M3, DType::kE5M2,
                            DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

constexpr std::string_view kReduceNames[] = {"sum", "max", "min", "absmax", "prod", "any", "all"};
constexpr std::string_view kStoreNames[] = {"=", "+=", "-=", "*=", "/="};
constexpr std::string_view kAtomicNames[] = {"atomic_add", "atomic_max", "atomic_min"};

bool Any(DType) { return true; }
bool Number(DType t) { return t != DType::kBool; }
bool Bool(DType t) { return t == DType::kBool; }
bool Int(DType t) { return Number(t) && !IsFloat(t); }
bool Computed(DType t) {  // what arithmetic happens in: i64 stands for every int
  return t == DType::kI64 || t == DType::kF32 || t == DType::kF64;
}
bool ComputedFloat(DType t) { return t == DType::kF32 || t == DType::kF64; }
bool ComputedInt(DType t) { return t == DType::kI64; }
bool Comparable(DType t) { return Computed(t); }
bool Equal(DType t) { return Computed(t) || t == DType::kBool; }
bool Operand(DType t) { return t == DType::kI8 || t == DType::kU8 || (IsFloat(t)); }
bool Sum(DType t) {
  return t == DType::kI32 || t == DType::kF16 || t == DType::kF32 || t == DType::kF64;
}
bool Atomic(DType t) {
  return t == DType::kI32 || t == DType::kU32 || t == DType::kI64 || t == DType::kF16 ||
         t == DType::kBF16 || t == DType::kF32 || t == DType::kF64;
}

struct Row {
  std::string_view op;
  bool (*allowed)(DType);
};
constexpr Row kRows[] = {
    {"copy from tensor", Any},
    {"copy to tensor", Any},
    {"copy from tile", Any},
    {"copy to tile", Any},
    {"copy transpose", Any},
    {"fill", Any},
    {"gemm a", Operand},
    {"gemm b", Operand},
    {"gemm c", Sum},
    {"reduce_sum", Number},
    {"reduce_max", Number},
    {"reduce_min", Number},
    {"reduce_absmax", Number},
    {"reduce_prod", Number},
    {"reduce_any", Bool},
    {"reduce_all", Bool},
    {"argmax of", Number},
    {"argmax to", Int},
    {"cumsum", Number},
    {"reducer sum", Number},
    {"reducer max", Number},
    {"reducer min", Number},
    {"atomic_add tile", Atomic},
    {"atomic_max tile", Atomic},
    {"atomic_min tile", Atomic},
    {"atomic_add", Atomic},
    {"atomic_max", Atomic},
    {"atomic_min", Atomic},
    {"load", Any},
    {"store =", Any},
    {"store +=", Number},
    {"store -=", Number},
    {"store *=", Number},
    {"store /=", Number},
    {"local", Any},
    {"var", Any},
    {"scalar", Any},
    {"channel", Any},
    {"cast", Number},
    {"+", Computed},
    {"-", Computed},
    {"*", Computed},
    {"/", Computed},
    {"%", ComputedInt},
    {"ceildiv", ComputedInt},
    {"min", Computed},
    {"max", Computed},
    {"<<", ComputedInt},
    {">>", ComputedInt},
    {"&", ComputedInt},
    {"|", ComputedInt},
    {"^", ComputedInt},
    {"<", Comparable},
    {"<=", Comparable},
    {">", Comparable},
    {">=", Comparable},
    {"==", Equal},
    {"!=", Equal},
    {"and", Bool},
    {"or", Bool},
    {"not", Bool},
    {"negate", Computed},
    {"if then else", Equal},
    {"exp", ComputedFloat},
    {"exp2", ComputedFloat},
    {"log", ComputedFloat},
    {"log2", ComputedFloat},
    {"sqrt", ComputedFloat},
    {"rsqrt", ComputedFloat},
    {"tanh", ComputedFloat},
    {"erf", ComputedFloat},
    {"sigmoid", ComputedFloat},
    {"sin", ComputedFloat},
    {"cos", ComputedFloat},
    {"pow", ComputedFloat},
    {"abs", Computed},
    {"floor", ComputedFloat},
    {"ceil", ComputedFloat},
    {"round", ComputedFloat},
    {"fin", ComputedFloat},
};

DType TypeOf(ScalarType t) {
  return t == ScalarType::kBool  ? DType::kBool
         : t == ScalarType::kInt ? DType::kI64
         : t == ScalarType::kF32 ? DType::kF32
                                 : DType::kF64;
}

class Counter {
 public:
  Counter(const Module& module, std::map<std::pair<std::string, DType>, int64_t>& counts)
      : m_(module), counts_(counts) {}

  void Run() {
    for (VarId v : m_.scalars) Add("scalar", m_.var(v).dtype);
    for (const Var& v : m_.vars) {
      if (v.role == VarRole::kMutable) Add("var", v.dtype);
    }
    for (const Buffer& b : m_.buffers) {
      if (b.scope == Scope::kLocal) Add("local", b.dtype);
      if (b.scope == Scope::kChannel) Add("channel", b.dtype);
    }
    for (const Launch& launch : m_.launches) {
      VisitStmts(launch.body, [&](const StmtRef& s) { Statement(s); });
      VisitAllExprs(launch.body, [&](const ExprRef& e) { Expression(e); });
    }
  }

 private:
  void Add(std::string_view op, DType t) { ++counts_[{std::string(op), t}]; }
  DType Type(BufferId b) const { return m_.buffer(b).dtype; }
  DType Type(const Region& r) const { return Type(r.buffer); }
  bool Global(const Region& r) const { return m_.buffer(r.buffer).scope == Scope::kGlobal; }

  void Statement(const StmtRef& s) {
    if (const Copy* x = As<Copy>(s)) {
      Add(Global(x->src) ? "copy from tensor" : "copy from tile", Type(x->src));
      Add(Global(x->dst) ? "copy to tensor" : "copy to tile", Type(x->dst));
      if (x->transpose) Add("copy transpose", Type(x->dst));
    } else if (const Fill* x = As<Fill>(s)) {
      Add("fill", Type(x->dst));
    } else if (const Gemm* x = As<Gemm>(s)) {
      Add("gemm a", Type(x->a));
      Add("gemm b", Type(x->b));
      Add("gemm c", Type(x->c));
    } else if (const Reduce* x = As<Reduce>(s)) {
      const std::string_view op = kReduceNames[static_cast<int>(x->op)];
      if (m_.buffer(x->dst.buffer).role == BufferRole::kReducer)
        return Add(absl::StrCat("reducer ", op), Type(x->dst));
      Add(absl::StrCat("reduce_", op), Type(x->src));
    } else if (const ArgMax* x = As<ArgMax>(s)) {
      Add("argmax of", Type(x->src));
      Add("argmax to", Type(x->dst));
    } else if (const CumSum* x = As<CumSum>(s)) {
      Add("cumsum", Type(x->dst));
    } else if (const tl::Atomic* x = As<tl::Atomic>(s)) {
      Add(absl::StrCat(kAtomicNames[static_cast<int>(x->op)], " tile"), Type(x->dst));
    } else if (const AtomicElement* x = As<AtomicElement>(s)) {
      Add(kAtomicNames[static_cast<int>(x->op)], Type(x->buffer));
    } else if (const Store* x = As<Store>(s)) {
      if (x->op <= StoreOp::kDiv)
        Add(absl::StrCat("store ", kStoreNames[static_cast<int>(x->op)]), Type(x->buffer));
    }
  }

  void Expression(const ExprRef& e) {
    if (const Binary* x = As<Binary>(e)) {
      Add(Symbol(x->op), TypeOf(x->lhs->type));
    } else if (const Unary* x = As<Unary>(e)) {
      Add(x->op == UnaryOp::kNot ? "not" : "negate", TypeOf(e->type));
    } else if (As<Select>(e)) {
      Add("if then else", TypeOf(e->type));
    } else if (const Call* x = As<Call>(e)) {
      Add(tl::Name(x->fn), TypeOf(e->type));
    } else if (const Cast* x = As<Cast>(e)) {
      Add("cast", x->to);
    } else if (const Load* x = As<Load>(e)) {
      Add("load", Type(x->buffer));
    }
  }

  const Module& m_;
  std::map<std::pair<std::string, DType>, int64_t>& counts_;
};

}  // namespace

void Coverage::Add(const Module& module) { Counter(module, counts_).Run(); }

std::string Coverage::Table() const {
  std::string out = absl::StrFormat("%-18s", "");
  for (DType t : kTypes) absl::StrAppend(&out, absl::StrFormat("%8s", tl::Name(t)));
  out += "\n";
  for (const Row& row : kRows) {
    absl::StrAppend(&out, absl::StrFormat("%-18s", row.op));
    for (DType t : kTypes) {
      const auto it = counts_.find({std::string(row.op), t});
      const std::string cell = it != counts_.end() ? absl::StrCat(it->second)
                               : row.allowed(t)    ? "0"
                                                   : ".";
      absl::StrAppend(&out, absl::StrFormat("%8s", cell));
    }
    out += "\n";
  }
  return out;
}

std::vector<std::string> Coverage::Missing() const {
  std::vector<std::string> missing;
  for (const Row& row : kRows) {
    for (DType t : kTypes) {
      if (row.allowed(t) && !counts_.contains({std::string(row.op), t})) {
        missing.push_back(absl::StrCat(row.op, " ", tl::Name(t)));
      }
    }
  }
  return missing;
}

}  // namespace tl::generator
