#include "backends/reference/lag.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"
#include "ir/visit.h"

namespace tl::reference {
namespace {

struct Uses {
  std::unordered_set<BufferId> any, written;
};

Uses UsesOf(const Module& module, const Block& body) {
  Uses uses;
  VisitStmts(body, [&](const StmtRef& s) {
    VisitRegions(*s, [&](const Region& r, bool write) {
      uses.any.insert(r.buffer);
      if (write) uses.written.insert(r.buffer);
    });
    if (const auto* store = As<Store>(s)) {
      uses.any.insert(store->buffer);
      uses.written.insert(store->buffer);
    }
  });
  VisitAllExprs(body, [&](const ExprRef& e) {
    if (const auto* load = As<Load>(e)) uses.any.insert(load->buffer);
  });
  (void)module;
  return uses;
}

// Walks the statements that stand directly in a loop, in order.
class LoopScan {
 public:
  LoopScan(const Module& module, const For& loop) : module_(module) { vars_.push_back(loop.var); }

  Status Scan(const Block& body) {
    for (const StmtRef& s : body) {
      if (const auto* turn = As<InTurn>(s)) {
        TL_RETURN_IF_ERROR(Scan(turn->body));
      } else if (const auto* let = As<Let>(s)) {
        vars_.push_back(let->var);
      } else if (const auto* copy = As<Copy>(s)) {
        NoteCopy(*copy);
      } else if (const auto* lag = As<Lag>(s)) {
        TL_RETURN_IF_ERROR(AddSite(*s, *lag));
      }
    }
    return absl::OkStatus();
  }

  LagLoop Take() && { return std::move(loop_); }

 private:
  void NoteCopy(const Copy& copy) {
    const bool fills = module_.buffer(copy.src.buffer).scope == Scope::kGlobal &&
                       module_.buffer(copy.dst.buffer).scope != Scope::kGlobal;
    const auto found = std::find(tiles_.begin(), tiles_.end(), copy.dst.buffer);
    if (fills && found == tiles_.end()) tiles_.push_back(copy.dst.buffer);
  }

  Status AddSite(const Stmt& s, const Lag& lag) {
    const Uses uses = UsesOf(module_, lag.body);
    LagSite site{&lag, vars_, {}};
    for (BufferId tile : tiles_) {
      if (uses.written.contains(tile)) {
        return SemanticError(s.span,
                             absl::StrCat("the body of 'lag' writes '", module_.buffer(tile).name,
                                          "', a tile of the iteration that it replays"));
      }
      if (uses.any.contains(tile)) site.tiles.push_back(tile);
    }
    loop_.sites.push_back(std::move(site));
    return absl::OkStatus();
  }

  const Module& module_;
  std::vector<VarId> vars_;
  std::vector<BufferId> tiles_;
  LagLoop loop_;
};

}  // namespace

StatusOr<std::unordered_map<const For*, LagLoop>> FindLagLoops(const Module& module) {
  std::unordered_map<const For*, LagLoop> found;
  Status status;
  for (const Launch& launch : module.launches) {
    VisitStmts(launch.body, [&](const StmtRef& s) {
      const auto* loop = As<For>(s);
      if (loop == nullptr || loop->kind != LoopKind::kPipelined) return;
      LoopScan scan(module, *loop);
      status.Update(scan.Scan(loop->body));
      LagLoop lags = std::move(scan).Take();
      if (!lags.sites.empty()) found[loop] = std::move(lags);
    });
  }
  TL_RETURN_IF_ERROR(status);
  return found;
}

Agent::Snapshot Agent::TakeSnapshot(const LagSite& site) {
  Snapshot snapshot;
  for (VarId v : site.vars) snapshot.vars.push_back(vars_[v]);
  for (BufferId t : site.tiles) {
    snapshot.tiles.push_back(tiles_[t] != nullptr ? tiles_[t]->data : Elements{});
  }
  return snapshot;
}

void Agent::SwapTiles(const LagSite& site, Snapshot* snapshot) {
  for (size_t i = 0; i < site.vars.size(); ++i) std::swap(vars_[site.vars[i]], snapshot->vars[i]);
  for (size_t i = 0; i < site.tiles.size(); ++i) {
    if (Tile* tile = tiles_[site.tiles[i]]) std::swap(tile->data, snapshot->tiles[i]);
  }
}

bool Agent::RunLagged(const LagSite& site, Snapshot snapshot) {
  SwapTiles(site, &snapshot);
  const bool ok = Run(site.lag->body);
  SwapTiles(site, &snapshot);
  return ok;
}

bool Agent::Exec(const Stmt& s, const Lag& lag) {
  const auto it = lags_.find(&lag);
  if (it == lags_.end()) {
    Fail(s.span, "'lag' stands directly in a pipelined loop only");
    return false;
  }
  LagState& state = it->second;
  state.waiting.push_back(TakeSnapshot(*state.site));
  if (state.waiting.size() <= static_cast<size_t>(lag.distance)) return true;
  Snapshot oldest = std::move(state.waiting.front());
  state.waiting.pop_front();
  return RunLagged(*state.site, std::move(oldest));
}

// After the loop: as if more iterations ran that hold nothing but the lags.
bool Agent::DrainLags(const LagLoop& loop, int64_t trips) {
  int64_t longest = 0;
  for (const LagSite& site : loop.sites) longest = std::max<int64_t>(longest, site.lag->distance);
  for (int64_t i = trips; i < trips + longest; ++i) {
    for (const LagSite& site : loop.sites) {
      const int64_t replayed = i - site.lag->distance;
      std::deque<Snapshot>& waiting = lags_[site.lag].waiting;
      if (replayed < 0 || replayed >= trips || waiting.empty()) continue;
      Snapshot oldest = std::move(waiting.front());
      waiting.pop_front();
      if (!RunLagged(site, std::move(oldest))) return false;
    }
  }
  return true;
}

}  // namespace tl::reference
