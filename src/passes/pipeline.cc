#include "passes/pipeline.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/verify.h"
#include "passes/await_stores.h"
#include "passes/cache_hints.h"
#include "passes/clusters.h"
#include "passes/delay_waits.h"
#include "passes/expand_lag.h"
#include "passes/expand_persistent.h"
#include "passes/expand_split.h"
#include "passes/fence_proxies.h"
#include "passes/infer_layouts.h"
#include "passes/insert_barriers.h"
#include "passes/lower_tiles.h"
#include "passes/partition_loops.h"
#include "passes/plan_arena.h"
#include "passes/plan_pipelines.h"
#include "passes/select_atoms.h"
#include "passes/simplify.h"
#include "passes/turns.h"

namespace tl {
namespace {

template <Status (*kRun)(Module&, const Target&)>
Status Plain(Module& module, const Target& target, const PassOptions&) {
  return kRun(module, target);
}

Status Arena(Module& module, const Target& target, const PassOptions& options) {
  return PlanArena(module, target, options.shared_budget);
}

Status Tiles(Module& module, const Target& target, const PassOptions& options) {
  return LowerTiles(module, target, options.may_stage);
}

Status Pipelines(Module& module, const Target& target, const PassOptions& options) {
  return PlanPipelines(module, target, options.shared_budget, options.max_slots);
}

constexpr Pass kPasses[] = {
    {"check_clusters", Plain<CheckClusters>,
     "first: what follows need not ask the target, nor count blocks"},
    {"check_hints", Plain<CheckHints>, "the same of copies' hints for caches"},
    {"expand_split", Plain<ExpandSplit>,
     "before all others: the loops it makes around a launch's body are loops like any other "
     "afterwards"},
    {"expand_persistent", Plain<ExpandPersistent>,
     "after expand_split, whose runs are tiles too; before plans, which see one more loop"},
    {"expand_lag", Plain<ExpandLag>,
     "while copies are still statements, so that what a copy fills in the loop is seen"},
    {"select_atoms", Plain<SelectAtoms>,
     "before copies are planned: the order of shared rows follows from the instructions"},
    {"plan_pipelines", Pipelines,
     "before layouts: it makes tiles; after lags: what they replay is copied in the loop"},
    {"plan_turns", Plain<PlanTurns>,
     "after plan_pipelines, which knows no turns and makes what the launch begins with"},
    {"infer_layouts", Plain<InferLayouts>,
     "after the plan: the tiles that it adds need a place too"},
    {"lower_tiles", Tiles, "only plain tile operations are left to expand"},
    {"plan_arena", Arena, "needs every use of every tile, scratch of the expansions included"},
    {"insert_barriers", Plain<InsertBarriers>,
     "after plan_arena: tiles that share memory must wait for each other too"},
    {"await_stores", Plain<AwaitStores>, "after insert_barriers: waits stand before barriers"},
    {"fence_proxies", Plain<FenceProxies>, "after insert_barriers: fences stand before barriers"},
    {"delay_waits", Plain<DelayWaits>, "after insert_barriers: no wait may pass a barrier"},
    {"end_turns", Plain<EndTurns>,
     "after delay_waits: a turn ends before the waits for what was begun in it"},
    {"partition_loops", Plain<PartitionLoops>,
     "after all that places waits: it copies them, and no iteration runs other statements"},
    {"simplify", Plain<Simplify>, "last: tidies the names that all of the above made"},
};

Status NameThePass(const Status& status, std::string_view when) {
  return absl::InternalError(absl::StrCat(when, ": ", status.message()));
}

StatusOr<Module> RunPasses(const Module& tile, const Target& target, const PassOptions& options) {
  Module module = tile;
  for (const Pass& pass : kPasses) {
    TL_RETURN_IF_ERROR(pass.run(module, target, options));
    const bool finished = &pass == &kPasses[std::size(kPasses) - 1];
    const Status s = Verify(module, module.level, finished);
    if (!s.ok()) return NameThePass(s, absl::StrCat("after ", pass.name));
  }
  return module;
}

}  // namespace

absl::Span<const Pass> Passes() { return kPasses; }

StatusOr<Module> Lower(const Module& tile, const Target& target, int64_t shared_budget) {
  if (Status s = Verify(tile, Level::kTile); !s.ok()) return NameThePass(s, "before all passes");
  // What is spent for speed alone must not refuse a program that fits: results that leave in order,
  // then slots of rings (whose plan cannot tell yet which fragments will lie in shared memory).
  PassOptions options{.shared_budget = shared_budget};
  StatusOr<Module> lowered = RunPasses(tile, target, options);
  options.may_stage = false;
  for (int slots : {options.max_slots, 2, 1}) {
    if (lowered.ok() || !absl::IsResourceExhausted(lowered.status())) break;
    options.max_slots = slots;
    lowered = RunPasses(tile, target, options);
  }
  return lowered;
}

}  // namespace tl
