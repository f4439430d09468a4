#include "passes/pipeline.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/verify.h"
#include "passes/expand_lag.h"
#include "passes/expand_split.h"
#include "passes/insert_barriers.h"
#include "passes/lower_tiles.h"
#include "passes/plan_arena.h"
#include "passes/simplify.h"

namespace tl {
namespace {

template <Status (*kRun)(Module&, const Target&)>
Status Plain(Module& module, const Target& target, const PassOptions&) {
  return kRun(module, target);
}

Status Arena(Module& module, const Target& target, const PassOptions& options) {
  return PlanArena(module, target, options.shared_budget);
}

constexpr Pass kPasses[] = {
    {"expand_split", Plain<ExpandSplit>,
     "first: the loops it makes around a launch's body are loops like any other afterwards"},
    {"expand_lag", Plain<ExpandLag>,
     "while copies are still statements, so that what a copy fills in the loop is seen"},
    {"lower_tiles", Plain<LowerTiles>, "only plain tile operations are left to expand"},
    {"plan_arena", Arena, "needs every use of every tile, scratch of the expansions included"},
    {"insert_barriers", Plain<InsertBarriers>,
     "after plan_arena: tiles that share memory must wait for each other too"},
    {"simplify", Plain<Simplify>, "last: tidies the names that all of the above made"},
};

Status NameThePass(const Status& status, std::string_view when) {
  return absl::InternalError(absl::StrCat(when, ": ", status.message()));
}

}  // namespace

absl::Span<const Pass> Passes() { return kPasses; }

StatusOr<Module> Lower(const Module& tile, const Target& target, int64_t shared_budget) {
  if (Status s = Verify(tile, Level::kTile); !s.ok()) return NameThePass(s, "before all passes");
  Module module = tile;
  const PassOptions options{shared_budget};
  for (const Pass& pass : kPasses) {
    TL_RETURN_IF_ERROR(pass.run(module, target, options));
    const bool finished = &pass == &Passes().back();
    const Status s = Verify(module, module.level, finished);
    if (!s.ok()) return NameThePass(s, absl::StrCat("after ", pass.name));
  }
  return module;
}

}  // namespace tl
