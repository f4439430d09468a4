// Parallel loops and the statements on single elements in them.
#include "ir/visit.h"
#include "passes/fragment_uses.h"
#include "passes/lowering.h"

namespace tl {
namespace {

Coords LoweredAll(Lowering& l, const std::vector<ExprRef>& exprs) {
  Coords out;
  for (const ExprRef& e : exprs) out.push_back(l.Lowered(e));
  return out;
}

void StoreValue(Lowering& l, const Store& store, ExprRef offset, const ExprRef& value) {
  const DType dtype = l.buffer(store.buffer).dtype;
  if (store.op == StoreOp::kSet) {
    l.Emit(Store{store.buffer, {offset}, StoreOp::kSet, ConvertTo(dtype, value)});
    return;
  }
  offset = l.Named("at", offset);
  const ExprRef old = MakeLoad(store.buffer, dtype, {offset});
  const ExprRef updated =
      MakeBinary(OperatorOf(store.op), old, ConvertTo(WideDType(old->type), value));
  l.Emit(Store{store.buffer, {offset}, StoreOp::kSet, updated});
}

void LowerStore(Lowering& l, const Store& store) {
  const ExprRef value = l.Lowered(store.value);
  const ExprRef offset = l.Offset(store.buffer, LoweredAll(l, store.index));
  const bool own = l.buffer(store.buffer).scope == Scope::kLocal || l.LayoutOf(store.buffer);
  if (own) return StoreValue(l, store, offset, value);
  l.EmitOnce([&] { StoreValue(l, store, offset, value); });
}

void LowerAtomicElement(Lowering& l, const AtomicElement& a) {
  const DType dtype = l.buffer(a.buffer).dtype;
  const ExprRef value = ElementValue(dtype, l.Lowered(a.value));
  const ExprRef offset = l.Offset(a.buffer, LoweredAll(l, a.index));
  l.EmitOnce([&] { l.Emit(AtomicElement{a.op, a.buffer, {offset}, value}); });
}

void LowerElementBlock(Lowering& l, const Block& block) {
  for (const StmtRef& s : block) LowerElementStmt(l, s);
}

}  // namespace

void LowerElementStmt(Lowering& l, const StmtRef& s) {
  l.At(*s);
  if (const Let* let = As<Let>(s)) {
    const ExprRef value = l.Lowered(let->value);
    l.intervals().Set(let->var, l.intervals().Of(l.module(), value));
    l.Emit(Let{let->var, value});
  } else if (const Assign* assign = As<Assign>(s)) {
    l.Set(assign->var, l.Lowered(assign->value));
  } else if (const Alloc* alloc = As<Alloc>(s)) {
    l.Emit(*alloc);
  } else if (const Store* store = As<Store>(s)) {
    LowerStore(l, *store);
  } else if (const AtomicElement* atomic = As<AtomicElement>(s)) {
    LowerAtomicElement(l, *atomic);
  } else if (const For* loop = As<For>(s)) {
    For out{loop->kind, loop->var, l.Fixed("begin", l.Lowered(loop->begin)),
            l.Fixed("end", l.Lowered(loop->end)), loop->down};
    out.partition = loop->partition;
    if (out.kind == LoopKind::kPipelined) out.kind = LoopKind::kSerial;
    l.intervals().SetLoop(l.module(), out.var, out.begin, out.end);
    out.body = l.Capture([&] { LowerElementBlock(l, loop->body); });
    l.At(*s);
    l.Emit(std::move(out));
  } else if (const If* branch = As<If>(s)) {
    If out{l.Lowered(branch->cond)};
    out.then_body = l.Capture([&] { LowerElementBlock(l, branch->then_body); });
    out.else_body = l.Capture([&] { LowerElementBlock(l, branch->else_body); });
    l.At(*s);
    l.Emit(std::move(out));
  }
}

void LowerParallel(Lowering& l, const Parallel& parallel) {
  const auto body = [&] { l.Apart([&] { LowerElementBlock(l, parallel.body); }); };
  if (parallel.layout) {
    const bool all_holders = WritesRegisters(l.module(), parallel.body);
    return l.ForEachMapped(*parallel.layout, parallel.vars, all_holders, body);
  }
  l.ForEachVar(parallel.vars, parallel.extents, body);
}

}  // namespace tl
