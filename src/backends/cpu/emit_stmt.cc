#include "absl/strings/str_cat.h"
#include "backends/cpu/kernel_emitter.h"
#include "ir/visit.h"

namespace tl::cpu {
namespace {

bool Mentions(const ExprRef& e, VarId var) {
  return AnyNode(e, [var](const ExprRef& node) {
    const VarRef* ref = As<VarRef>(node);
    return ref && ref->var == var;
  });
}

std::string_view LoopHint(LoopKind kind) {
  switch (kind) {
    case LoopKind::kUnrolled:
      return "!{!\"llvm.loop.unroll.enable\"}";
    case LoopKind::kVectorized:
      return "!{!\"llvm.loop.vectorize.enable\", i1 true}";
    default:
      return "";
  }
}

bool IsUnsigned(DType type) {
  return type == DType::kU8 || type == DType::kU16 || type == DType::kU32;
}

// atomicrmw's name of the operation on elements of `type`.
std::string_view AtomicName(AtomicOp op, DType type) {
  if (op == AtomicOp::kAdd) return IsFloat(type) ? "fadd" : "add";
  if (op == AtomicOp::kMax) return IsFloat(type) ? "fmax" : IsUnsigned(type) ? "umax" : "max";
  return IsFloat(type) ? "fmin" : IsUnsigned(type) ? "umin" : "min";
}

}  // namespace

void KernelEmitter::Emit(const Block& block) {
  for (const StmtRef& s : block) Emit(s);
}

void KernelEmitter::Emit(const StmtRef& s) {
  std::visit([this](const auto& node) { EmitStmt(node); }, s->node);
}

void KernelEmitter::EmitStmt(const Let& s) { vars_[s.var] = Emit(s.value); }

void KernelEmitter::EmitStmt(const Assign& s) {
  const Var& var = module_.var(s.var);
  if (var.role != VarRole::kMutable) return Fail("assignment to a value that is not mutable");
  Text value;
  const Binary* sum = As<Binary>(s.value);
  if (sum && sum->op == BinaryOp::kAdd && IsFloat(var.type) && ComputeType(var.dtype) == var.type &&
      SizeOf(var.dtype) >= 4) {
    value = EmitAccumulation(s.var, *sum);
  }
  // Rounded to the declared type, then widened again.
  if (value.empty()) value = Widen(var.dtype, EmitRaw(s.value, var.dtype));
  const Text slot = Slot(s.var);
  f_.Line(absl::StrCat("store ", TypeOf(var.type), " ", value, ", ptr ", slot, ", align 8"));
}

// v = v + e in a loop may sum in another order, so that the loop can use vectors. The order depends
// on the program and the target only: every run of one kernel gives the same bits.
KernelEmitter::Text KernelEmitter::EmitAccumulation(VarId var, const Binary& sum) {
  const VarRef* left = As<VarRef>(sum.lhs);
  if (!left || left->var != var || Mentions(sum.rhs, var)) return "";
  const Text old = Emit(sum.lhs);
  const Text term = Emit(sum.rhs);
  return f_.Binary("fadd reassoc contract", TypeOf(module_.var(var).type), old, term);
}

KernelEmitter::Text KernelEmitter::Combine(StoreOp op, ScalarType type, const Text& old,
                                           const Text& value) {
  // The two operands as variables of an expression: one place knows how operators are written.
  const BinaryOp binary = OperatorOf(op);
  const VarId first = static_cast<VarId>(vars_.size()) - 2;
  vars_[first] = old;
  vars_[first + 1] = value;
  return EmitBinary(Binary{binary, MakeVar(first, type), MakeVar(first + 1, type)});
}

void KernelEmitter::EmitStmt(const Store& s) {
  const DType type = module_.buffer(s.buffer).dtype;
  if (s.op == StoreOp::kSet) {
    const Text raw = EmitRaw(s.value, type);
    const Text address = Address(s.buffer, s.index);
    return StoreRaw(s.buffer, address, raw);
  }
  const ScalarType compute = ComputeType(type);
  if (s.value->type != compute) return Fail("an update of an element by a value of another type");
  const Text value = Emit(s.value);
  const Text address = Address(s.buffer, s.index);
  const Text old = Widen(type, LoadRaw(s.buffer, address));
  StoreRaw(s.buffer, address, Narrow(type, compute, Combine(s.op, compute, old, value)));
}

void KernelEmitter::EmitStmt(const AtomicElement& s) {
  const DType type = module_.buffer(s.buffer).dtype;
  const bool narrow_float = IsFloat(type) && SizeOf(type) < 4;
  if (type == DType::kBool) return Fail("an atomic operation on bool");
  if (narrow_float) {
    const Text address = Address(s.buffer, s.index);
    return EmitCompareAndSwap(s, address);
  }
  const Text value = Narrow(type, s.value->type, Emit(s.value));
  const Text address = Address(s.buffer, s.index);
  f_.Value(absl::StrCat("atomicrmw ", AtomicName(s.op, type), " ptr ", address, ", ",
                        StorageType(type, facts_), " ", value, " monotonic, align ", SizeOf(type)));
}

// Narrow floats are combined in float and exchanged as integers.
void KernelEmitter::EmitCompareAndSwap(const AtomicElement& s, const Text& address) {
  const DType type = module_.buffer(s.buffer).dtype;
  const std::string_view storage = StorageType(type, facts_);
  const std::string_view bits = SizeOf(type) == 1 ? "i8" : "i16";
  const StoreOp op = s.op == AtomicOp::kAdd   ? StoreOp::kAdd
                     : s.op == AtomicOp::kMax ? StoreOp::kMax
                                              : StoreOp::kMin;
  const size_t align = SizeOf(type);
  const Text value = Emit(s.value);
  const Text first =
      f_.Value(absl::StrCat("load atomic ", bits, ", ptr ", address, " monotonic, align ", align));
  const Text before = f_.block(), loop = f_.NewLabel(), done = f_.NewLabel();
  const Text found = f_.NextName();
  f_.Branch(loop);
  f_.Begin(loop);
  const Text expected = f_.Value(
      absl::StrCat("phi ", bits, " [ ", first, ", %", before, " ], [ ", found, ", %", loop, " ]"));
  const bool convert = bits != storage;
  const Text raw = convert ? f_.Convert("bitcast", bits, expected, storage) : expected;
  Text next =
      Narrow(type, ScalarType::kF32, Combine(op, ScalarType::kF32, Widen(type, raw), value));
  if (convert) next = f_.Convert("bitcast", storage, next, bits);
  const Text pair = f_.Value(absl::StrCat("cmpxchg ptr ", address, ", ", bits, " ", expected, ", ",
                                          bits, " ", next, " monotonic monotonic, align ", align));
  f_.Line(absl::StrCat(found, " = extractvalue { ", bits, ", i1 } ", pair, ", 0"));
  const Text stored = f_.Value(absl::StrCat("extractvalue { ", bits, ", i1 } ", pair, ", 1"));
  // Widening, combining and narrowing have no branches: this is still the loop's block.
  f_.BranchIf(stored, done, loop);
  f_.Begin(done);
}

// for (i = begin; i < end; i += step)
void KernelEmitter::EmitLoop(const Text& begin, const Text& end, const Text& step,
                             std::string_view metadata, absl::FunctionRef<void(const Text&)> body) {
  const Text before = f_.block();
  const Text head = f_.NewLabel(), inside = f_.NewLabel(), latch = f_.NewLabel(),
             exit = f_.NewLabel();
  const Text next = f_.NextName();
  f_.Branch(head);
  f_.Begin(head);
  const Text i = f_.Value(
      absl::StrCat("phi i64 [ ", begin, ", %", before, " ], [ ", next, ", %", latch, " ]"));
  f_.BranchIf(f_.Binary("icmp slt", "i64", i, end), inside, exit);
  f_.Begin(inside);
  body(i);
  f_.Branch(latch);
  f_.Begin(latch);
  // i < end, so adding a step overflows only beyond any real extent.
  f_.Line(absl::StrCat(next, " = add nsw i64 ", i, ", ", step));
  const Text loop = text_.SelfMetadata(metadata);
  f_.Branch(head, absl::StrCat(", !llvm.loop ", loop));
  f_.Begin(exit);
}

void KernelEmitter::EmitStmt(const For& s) {
  const Text begin = Emit(s.begin);
  const Text end = Emit(s.end);
  Text hints = "!{!\"llvm.loop.mustprogress\"}";
  if (const std::string_view hint = LoopHint(s.kind); !hint.empty()) {
    absl::StrAppend(&hints, ", ", hint);
  }
  EmitLoop(begin, end, "1", hints, [&](const Text& i) {
    vars_[s.var] = i;
    if (s.down) {
      // begin + end - 1 - i walks the same values from the top.
      const Text sum = f_.Binary("add", "i64", begin, end);
      vars_[s.var] = f_.Binary("sub", "i64", f_.Binary("sub", "i64", sum, "1"), i);
    }
    Emit(s.body);
  });
}

void KernelEmitter::EmitStmt(const ThreadFor& s) {
  const Text extent = Emit(s.extent);
  const bool shared_out = s.team == Team::kBlock && launch_.groups > 1;
  const Text outer = access_group_;
  // The iterations are independent; accesses to memory private to an iteration carry no group,
  // which takes the promise back for such loops.
  access_group_ = text_.Metadata("distinct !{}");
  const Text parallel = absl::StrCat("!{!\"llvm.loop.parallel_accesses\", ", access_group_,
                                     "}, !{!\"llvm.loop.mustprogress\"}");
  EmitLoop(shared_out ? "%group" : "0", extent, shared_out ? absl::StrCat(launch_.groups) : "1",
           parallel, [&](const Text& i) {
             vars_[s.var] = i;
             Emit(s.body);
           });
  access_group_ = outer;
}

void KernelEmitter::EmitStmt(const If& s) {
  const Text cond = Emit(s.cond);
  const Text yes = f_.NewLabel(), no = s.else_body.empty() ? "" : f_.NewLabel(),
             join = f_.NewLabel();
  f_.BranchIf(cond, yes, no.empty() ? join : no);
  f_.Begin(yes);
  Emit(s.then_body);
  f_.Branch(join);
  if (!no.empty()) {
    f_.Begin(no);
    Emit(s.else_body);
    f_.Branch(join);
  }
  f_.Begin(join);
}

void KernelEmitter::EmitGuarded(const Text& cond, absl::FunctionRef<void()> body) {
  const Text yes = f_.NewLabel(), join = f_.NewLabel();
  f_.BranchIf(cond, yes, join);
  f_.Begin(yes);
  body();
  f_.Branch(join);
  f_.Begin(join);
}

// A group has one thread.
void KernelEmitter::EmitStmt(const OnFirstThread& s) {
  if (s.team == Team::kGroup || launch_.groups == 1) return Emit(s.body);
  EmitGuarded(f_.Binary("icmp eq", "i64", "%group", "0"), [&] { Emit(s.body); });
}

// Function pointer number `index` of Runtime.
KernelEmitter::Text KernelEmitter::Callback(int index) {
  const Text address =
      f_.Value(absl::StrCat("getelementptr inbounds ptr, ptr %runtime, i64 ", index));
  return f_.Value(absl::StrCat("load ptr, ptr ", address, ", align 8"));
}

void KernelEmitter::GiveUpIf(const Text& cond) {
  gives_up_ = true;
  const Text go_on = f_.NewLabel();
  f_.BranchIf(cond, "give_up", go_on);
  f_.Begin(go_on);
}

void KernelEmitter::EmitStmt(const Barrier& s) {
  if (s.team == Team::kGroup || launch_.groups == 1) return;
  const Text function = Callback(0);
  const Text result = f_.Value(absl::StrCat("call i32 ", function, "(ptr %runtime, i64 %group)"));
  GiveUpIf(f_.Binary("icmp ne", "i32", result, "0"));
}

int KernelEmitter::ChannelNumber(BufferId id) const {
  int number = 0;
  for (BufferId i = 0; i < id; ++i) number += module_.buffer(i).scope == Scope::kChannel;
  return number;
}

void KernelEmitter::EmitStmt(const ChannelAcquire& s) {
  if (launch_.groups == 1) return Fail("a channel in a launch without groups");
  const Text function = Callback(1);
  const Text slot = f_.Value(absl::StrCat("call i64 ", function, "(ptr %runtime, i64 ",
                                          ChannelNumber(s.channel), ", i32 ", s.send ? 1 : 0, ")"));
  GiveUpIf(f_.Binary("icmp slt", "i64", slot, "0"));
  vars_[s.slot] = slot;
}

void KernelEmitter::EmitStmt(const ChannelRelease& s) {
  if (launch_.groups == 1) return Fail("a channel in a launch without groups");
  const Text function = Callback(2);
  f_.Line(absl::StrCat("call void ", function, "(ptr %runtime, i64 ", ChannelNumber(s.channel),
                       ", i32 ", s.send ? 1 : 0, ")"));
}

}  // namespace tl::cpu
