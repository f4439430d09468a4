// Visits every statement of a lowered block.
#ifndef TILEJIT_BACKENDS_C_FAMILY_WALK_H_
#define TILEJIT_BACKENDS_C_FAMILY_WALK_H_

#include "ir/module.h"

namespace tl {

// Calls visit(const Stmt&) for each statement, outer ones first.
template <typename Visit>
void ForEachStmt(const Block& block, const Visit& visit) {
  for (const StmtRef& s : block) {
    visit(*s);
    if (const auto* x = As<For>(s)) ForEachStmt(x->body, visit);
    if (const auto* x = As<ThreadFor>(s)) ForEachStmt(x->body, visit);
    if (const auto* x = As<OnFirstThread>(s)) ForEachStmt(x->body, visit);
    if (const auto* x = As<If>(s)) {
      ForEachStmt(x->then_body, visit);
      ForEachStmt(x->else_body, visit);
    }
  }
}

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_WALK_H_
