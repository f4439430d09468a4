#include "passes/cache_hints.h"

#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/notes.h"

namespace tl {
namespace {

bool HasHint(const StmtRef& s) {
  const Copy* copy = As<Copy>(s);
  return copy && copy->evict != Eviction::kNormal;
}

// The first in the order of the program; null: there is none.
StmtRef FirstHint(const Module& module) {
  StmtRef first;
  for (const Launch& launch : module.launches) {
    VisitStmts(launch.body, [&](const StmtRef& s) {
      if (!first && HasHint(s)) first = s;
    });
  }
  return first;
}

class DropHints : public StmtMapper {
 public:
  StmtRef MapStmt(const StmtRef& s) override {
    if (!HasHint(s)) return StmtMapper::MapStmt(s);
    Copy copy = *As<Copy>(s);
    copy.evict = Eviction::kNormal;
    return MakeStmt(std::move(copy), s->span, s->id);
  }
};

}  // namespace

Status CheckHints(Module& module, const Target& target) {
  if (target.cache_hints) return absl::OkStatus();
  const StmtRef first = FirstHint(module);
  if (!first) return absl::OkStatus();
  DropHints drop;
  for (Launch& launch : module.launches) launch.body = drop.MapBlock(launch.body);
  module.notes.push_back(absl::StrCat("evict", At(first->span), ": no effect: ", target.name,
                                      " takes no hints for a cache"));
  return absl::OkStatus();
}

}  // namespace tl
