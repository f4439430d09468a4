#include "passes/varying.h"

#include "ir/visit.h"

namespace tl {

Varying::Varying(const Module& module, const Launch& launch)
    : module_(module), vars_{launch.thread, launch.group, launch.group_thread} {
  VisitStmts(launch.body, [&](const StmtRef& s) {
    VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool write) {
      if (write && module_.buffer(id).scope == Scope::kGlobal) written_.insert(id);
    });
  });
  for (size_t before = 0; before != size();) {
    before = size();
    Walk(launch.body, false);
  }
}

bool Varying::Has(const ExprRef& e) const {
  return AnyNode(e, [&](const ExprRef& node) {
    if (const VarRef* ref = As<VarRef>(node)) return vars_.contains(ref->var);
    const Load* load = As<Load>(node);
    return load && (module_.buffer(load->buffer).layout || arrays_.contains(load->buffer) ||
                    written_.contains(load->buffer));
  });
}

void Varying::Walk(const Block& block, bool apart) {
  for (const StmtRef& s : block) {
    bool varies = apart || As<LoadMatrix>(s) || As<Mma>(s) || As<Wgmma>(s) || As<LaneExchange>(s);
    VisitStmtExprs(*s, [&](const ExprRef& e) { varies = varies || Has(e); });
    if (varies) NoteResults(*s);
    const bool shared_out = As<ThreadFor>(s) || As<OnFirstThread>(s);
    VisitBlocks(*s, [&](const Block& b) { Walk(b, varies || shared_out); });
  }
}

void Varying::NoteResults(const Stmt& s) {
  if (const Let* x = std::get_if<Let>(&s.node)) vars_.insert(x->var);
  if (const Assign* x = std::get_if<Assign>(&s.node)) vars_.insert(x->var);
  if (const For* x = std::get_if<For>(&s.node)) vars_.insert(x->var);
  if (const LaneExchange* x = std::get_if<LaneExchange>(&s.node)) vars_.insert(x->var);
  VisitAccesses(s, [&](BufferId id, const ExprRef&, bool write) {
    if (write && module_.buffer(id).scope == Scope::kLocal) arrays_.insert(id);
  });
}

}  // namespace tl
