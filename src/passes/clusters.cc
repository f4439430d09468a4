#include "passes/clusters.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/visit.h"
#include "passes/notes.h"

namespace tl {
namespace {

// "": nothing stands against it.
std::string WhyNoCluster(const Module& m, const Launch& launch, const Target& target) {
  if (target.max_cluster < 2) return absl::StrCat("clusters are not made for ", target.name);
  if (launch.cluster_size() > target.max_cluster) {
    return absl::StrCat("a cluster has at most ", target.max_cluster, " of them, not ",
                        launch.cluster_size());
  }
  for (size_t i = 0; i < launch.cluster.size(); ++i) {
    const int along = launch.cluster[i];
    if (along == 1) continue;
    const GridAxis& axis = launch.axes[i];
    const int64_t* extent = IntValue(axis.extent);
    const std::string& name = m.var(axis.var).name;
    if (!extent) return absl::StrCat("how many there are along ", name, " is not known");
    if (*extent % along != 0) {
      return absl::StrCat(*extent, " along ", name, " are not whole clusters of ", along);
    }
  }
  return "";
}

}  // namespace

void DropCluster(Module& m, Launch& launch, std::string_view reason) {
  launch.cluster.clear();
  m.notes.push_back(absl::StrCat("launch", At(launch.span), ": blocks run alone: ", reason));
}

Status CheckClusters(Module& module, const Target& target) {
  for (Launch& launch : module.launches) {
    if (launch.cluster_size() == 1) {
      launch.cluster.clear();
      continue;
    }
    // The axis of a split comes last.
    const bool split = launch.cluster.size() > launch.axes.size() && launch.cluster.back() > 1;
    launch.cluster.resize(launch.axes.size(), 1);  // those left out are 1
    const std::string reason =
        split ? "the runs of a split are not shared" : WhyNoCluster(module, launch, target);
    if (!reason.empty()) DropCluster(module, launch, reason);
  }
  return absl::OkStatus();
}

// ---- ClusterFacts

ClusterFacts::ClusterFacts(const Module& module, const Launch& launch, const LaunchFacts& facts)
    : m_(module), launch_(launch), facts_(facts) {
  for (size_t i = 0; i < launch.cluster.size(); ++i) {
    if (launch.cluster[i] == 1) continue;
    axes_ |= 1u << i;
    vars_[launch.axes[i].var] = 1u << i;
  }
  // Of a persistent launch's own loop the iterations do not vary, though they follow from the
  // number of the block: blocks and tiles are whole clusters.
  if (launch.block != kNoId) vars_[launch.block] = axes_;
  do {
    changed_ = false;
    Walk(launch.body, 0);
  } while (changed_);
}

unsigned ClusterFacts::VariesAlong(const ExprRef& e) const {
  unsigned axes = 0;
  VisitExpr(e, [&](const ExprRef& node) {
    if (const VarRef* ref = As<VarRef>(node)) {
      const auto it = vars_.find(ref->var);
      if (it != vars_.end()) axes |= it->second;
    }
    // What a block computes is its own, and what the launch writes may be another moment's.
    const Load* load = As<Load>(node);
    const bool same = !load || (m_.buffer(load->buffer).scope == Scope::kGlobal &&
                                !facts_.IsWritten(load->buffer));
    if (!same) axes |= axes_;
  });
  return axes;
}

unsigned ClusterFacts::TripsVaryAlong(const For& loop) const {
  const auto it = trips_.find(loop.var);
  return it == trips_.end() ? axes_ : it->second;
}

unsigned ClusterFacts::VariesAlong(const Copy& copy) const {
  unsigned axes = 0;
  for (const ExprRef& e : copy.src.offset) axes |= VariesAlong(e);
  return copy.rows ? axes | VariesAlong(copy.rows) : axes;
}

int ClusterFacts::BlocksAlong(unsigned axes) const {
  int blocks = 1;
  for (size_t i = 0; i < launch_.cluster.size(); ++i) {
    if (axes >> i & 1) blocks *= launch_.cluster[i];
  }
  return blocks;
}

std::string ClusterFacts::NamesOf(unsigned axes) const {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < launch_.cluster.size(); ++i) {
    if (axes >> i & 1) names.push_back(m_.var(launch_.axes[i].var).name);
  }
  return absl::StrJoin(names, ", ");
}

// `control`: along which axes blocks may differ in whether, or how often, they come here.
void ClusterFacts::Walk(const Block& block, unsigned control) {
  for (const StmtRef& s : block) {
    unsigned inside = control;
    if (const Let* x = As<Let>(s)) Note(x->var, VariesAlong(x->value));
    if (const Assign* x = As<Assign>(s)) Note(x->var, control | VariesAlong(x->value));
    if (const If* x = As<If>(s)) inside |= VariesAlong(x->cond);
    if (const For* x = As<For>(s)) {
      const unsigned begin = VariesAlong(x->begin);
      inside |= begin | VariesAlong(x->end);
      trips_[x->var] = inside;
      // Counted from the end where it goes down.
      Note(x->var, x->down ? inside : begin);
    }
    VisitBlocks(*s, [&](const Block& b) { Walk(b, inside); });
  }
}

void ClusterFacts::Note(VarId var, unsigned axes) {
  unsigned& known = vars_[var];
  changed_ = changed_ || (axes & ~known) != 0;
  known |= axes;
}

}  // namespace tl
