#include "passes/plan_loops.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/visit.h"
#include "passes/clusters.h"
#include "passes/notes.h"
#include "passes/producer.h"
#include "passes/select_atoms.h"

namespace tl {
namespace {

std::string Describe(const StmtRef& loop) {
  const std::string at = FormatSpan(loop->span);
  return at.empty() ? "loop" : absl::StrCat("loop at ", at);
}

std::vector<KeptTile> FindKeptTiles(const Module& m, const Launch& launch, const For& loop,
                                    const std::vector<BufferId>& ring) {
  std::vector<KeptTile> kept;
  for (const StmtRef& s : loop.body) {
    const Copy* copy = As<Copy>(s);
    if (!copy || !absl::c_linear_search(ring, copy->src.buffer)) continue;
    const Buffer &tile = m.buffer(copy->src.buffer), &lag = m.buffer(copy->dst.buffer);
    std::vector<int64_t> extents = tile.extents;
    extents.insert(extents.begin(), 1);
    const bool whole = IsWhole(tile, copy->src) && copy->dst.extents == tile.extents;
    if (whole && lag.extents == extents && lag.scope == Scope::kFragment) {
      kept.push_back({copy->src.buffer, copy->dst.buffer});
    }
  }
  // Nothing else writes the copy, and it is read before it is made anew.
  std::erase_if(kept, [&](const KeptTile& k) {
    int writes = 0, loads = 0, late = 0;
    VisitStmts(launch.body, [&](const StmtRef& s) {
      VisitRegions(*s, [&](const Region& r, bool write) { writes += write && r.buffer == k.lag; });
      VisitStmtExprs(*s, [&](const ExprRef& e) {
        loads += AnyNode(e, [&](const ExprRef& node) {
          const Load* load = As<Load>(node);
          return load && load->buffer == k.lag;
        });
      });
    });
    const auto made = absl::c_find_if(loop.body, [&](const StmtRef& s) {
      return As<Copy>(s) && As<Copy>(s)->dst.buffer == k.lag;
    });
    VisitStmts(Block(made + 1, loop.body.end()), [&](const StmtRef& s) {
      VisitRegions(*s, [&](const Region& r, bool) { late += r.buffer == k.lag; });
    });
    return writes != 1 || loads > 0 || late > 0;
  });
  return kept;
}

// May the copy come as boxes: rows of a tile in panels, from a tensor that a tensor map describes?
bool IsBox(const Module& m, const LaunchFacts& facts, const Copy& copy) {
  constexpr int kMostDims = 5;
  const Buffer &tensor = m.buffer(copy.src.buffer), &tile = m.buffer(copy.dst.buffer);
  const Region& r = copy.src;
  if (!tile.in_place || !IsWhole(tile, copy.dst) || copy.transpose) return false;
  if (tensor.dtype != tile.dtype || !tensor.packed.empty()) return false;
  const bool workspace = tensor.role == BufferRole::kWorkspace;
  if (workspace ? facts.IsWritten(copy.src.buffer) : tensor.role != BufferRole::kIn) return false;
  return r.rank() == 2 && tensor.rank() <= kMostDims && r.dims[1] == tensor.rank() - 1 &&
         IsInt(tensor.strides.back(), 1);
}

// The sum of the product whose instructions may run on into the next iteration: it is the ring's
// only reader, and nothing else in the loop touches the sum. kNoId: there is none.
BufferId TrailingSum(const Module& m, const Target& target, const For& loop,
                     const std::vector<BufferId>& ring) {
  const auto is_ring = [&](BufferId b) { return absl::c_linear_search(ring, b); };
  const Gemm* found = nullptr;
  for (const StmtRef& s : loop.body) {
    const Gemm* g = As<Gemm>(s);
    if (!g || (!is_ring(g->a.buffer) && !is_ring(g->b.buffer))) continue;
    if (found || g->atom == kNoAtom || !target.matrix_atoms[g->atom].in_place()) return kNoId;
    found = g;
  }
  if (!found || found->clear) return kNoId;
  // Registers of a factor, and the tile that one goes through, are the next iteration's.
  const auto is_fragment = [&](const Region& r) {
    return m.buffer(r.buffer).scope == Scope::kFragment;
  };
  if (is_fragment(found->a) || is_fragment(found->b)) return kNoId;
  const BufferId c = found->c.buffer;
  bool others = false;
  VisitStmts(loop.body, [&](const StmtRef& s) {
    const Alloc* alloc = As<Alloc>(s);
    others = others || (alloc && alloc->buffer == c);
    VisitStmtExprs(*s, [&](const ExprRef& e) {
      others = others || AnyNode(e, [&](const ExprRef& node) {
                 const Load* load = As<Load>(node);
                 return load && (load->buffer == c || is_ring(load->buffer));
               });
    });
    if (As<Gemm>(s) == found) return;
    const Store* store = As<Store>(s);
    others = others || (store && store->buffer == c);
    VisitRegions(*s, [&](const Region& r, bool write) {
      others = others || r.buffer == c || (is_ring(r.buffer) && !write);
    });
  });
  return others ? kNoId : c;
}

class LaunchPlanner {
 public:
  // `limit`: bytes of on-chip memory, 0: none. `shared_rings`: groups that own tiles may use slots
  // that a producer fills for all of them.
  LaunchPlanner(Module& module, const Target& target, int64_t limit, int max_slots,
                const Launch& launch, bool shared_rings)
      : m_(module),
        target_(target),
        transport_(target.async_copies ? Transport::kAsyncCopy : Transport::kRegisters),
        limit_(limit),
        max_slots_(max_slots),
        launch_(launch),
        shared_rings_(shared_rings),
        facts_(module, launch) {}

  StatusOr<PlannedLoops> Run() {
    // Each group has its own.
    VisitStmts(launch_.body, [&](const StmtRef& s) {
      if (const Alloc* alloc = As<Alloc>(s)) facts_.SetDepth(alloc->buffer, owners());
    });
    Walk(launch_.body, Team::kBlock, false);
    if (!status_.ok()) return status_;
    return std::move(planned_);
  }

 private:
  // Inner loops first: where memory is short they make better use of it. `again`: in a loop.
  void Walk(const Block& block, Team team, bool again) {
    for (const StmtRef& s : block) {
      const Team inside = As<OnGroup>(s) ? Team::kGroup : team;
      VisitBlocks(*s, [&](const Block& b) { Walk(b, inside, again || As<For>(s)); });
      if (IsPipelined(s)) PlanOne(s, *As<For>(s), team, again);
    }
  }

  void PlanOne(const StmtRef& s, const For& loop, Team team, bool again) {
    const ExprRef trips = MakeBinary(BinaryOp::kSub, loop.end, loop.begin);
    if (loop.stages < 2) return Note(s, " is not pipelined: it has one stage");
    if (IntValue(trips) && *IntValue(trips) < 2) {
      return Note(s, " is not pipelined: it has less than two iterations");
    }
    PlannedLoop planned{FindEarlyCopies(m_, facts_, loop), {}, kNoId};
    if (transport_ == Transport::kRegisters) DropParts(loop, planned.copies);
    if (!planned.copies.tiles.empty()) {
      Ring ring{planned.copies.tiles, 1, transport_};
      ring.again = again;
      if (transport_ == Transport::kAsyncCopy) {
        planned.kept = FindKeptTiles(m_, launch_, loop, ring.tiles);
      }
      ring.depth = DepthOf(s, loop, trips, ring, planned.kept.empty() ? 0 : 1);
      if (ring.depth > 1) Keep(s, loop, team, std::move(ring), std::move(planned));
    } else if (planned.copies.refused.empty()) {
      Note(s, " is not pipelined: it copies from no tensor");
    }
    m_.notes.insert(m_.notes.end(), planned.copies.refused.begin(), planned.copies.refused.end());
  }

  // Groups that each work on a tile of their own; 1: all work on one.
  int owners() const { return launch_.owns == kNoId ? 1 : launch_.groups; }

  // One thread of the block moves them.
  bool ComeAsBoxes(const For& loop, const std::vector<BufferId>& ring) const {
    return target_.bulk_copies && absl::c_all_of(loop.body, [&](const StmtRef& s) {
             const Copy* copy = As<Copy>(s);
             return !copy || !absl::c_linear_search(ring, copy->dst.buffer) ||
                    IsBox(m_, facts_, *copy);
           });
  }

  // Each group has its own, where no producer fills one for all.
  int RingsOf(const For& loop, const std::vector<BufferId>& ring) const {
    return shared_rings_ && ComeAsBoxes(loop, ring) ? 1 : owners();
  }

  // A fragment in between cannot be filled in parts and stay in registers.
  void DropParts(const For& loop, LoopCopies& copies) {
    std::erase_if(copies.tiles, [&](BufferId tile) {
      const auto fills = [&](const StmtRef& s) {
        const Copy* copy = As<Copy>(s);
        return copy && copy->dst.buffer == tile && !IsWhole(m_.buffer(tile), copy->dst);
      };
      if (absl::c_none_of(loop.body, fills)) return false;
      copies.refused.push_back(absl::StrCat("copies to ", m_.buffer(tile).name,
                                            " are not overlapped: each fills a part of it, which "
                                            "takes asynchronous copies"));
      return true;
    });
  }

  // The stages that the author asks for, fewer if they do not fit; 1: no overlap.
  // `kept`: slots of iterations that are over.
  int DepthOf(const StmtRef& s, const For& loop, const ExprRef& trips, const Ring& ring, int kept) {
    // Registers hold one iteration, so a third slot would gain nothing.
    int64_t most = transport_ == Transport::kRegisters ? 2 : loop.stages + kept;
    if (const int64_t* n = IntValue(trips)) most = std::min(most, *n);
    int64_t slot = 0;
    for (BufferId tile : ring.tiles) slot += ArenaBytes(m_.buffer(tile));
    const int64_t others = facts_.LiveBytes(loop.var) - owners() * slot;
    slot *= RingsOf(loop, ring.tiles);
    int64_t depth = most;
    if (limit_ > 0) depth = std::min(depth, (limit_ - others) / std::max<int64_t>(slot, 1));
    if (depth < most) {
      Note(s, absl::StrCat(": ", most, " slots would take ", others + most * slot,
                           " bytes of on-chip memory, ", limit_, " are there"));
    }
    depth = std::min<int64_t>(depth, max_slots_);
    if (depth < 2) Note(s, " is not pipelined: there is no room for a second slot");
    return static_cast<int>(std::max<int64_t>(depth, 1));
  }

  void Keep(const StmtRef& s, const For& loop, Team team, Ring ring, PlannedLoop planned) {
    const int rings = RingsOf(loop, ring.tiles);
    for (BufferId tile : ring.tiles) facts_.SetDepth(tile, rings * ring.depth);
    planned.trailing = TrailingSum(m_, target_, loop, ring.tiles);
    // With fewer slots a product under way would leave one iteration ahead alone, which is worse.
    constexpr int kFewestForTrailing = 4;
    if (ring.transport != Transport::kRegisters && ring.depth >= kFewestForTrailing) {
      ring.trailing = planned.trailing == kNoId ? 0 : 1;
    }
    constexpr int kFewestForKept = 3;
    if (ring.depth < kFewestForKept) planned.kept.clear();
    if (!planned.kept.empty()) ring.trailing = 1;
    // The readers of the copy chose the order of its rows; who reads in place permits one alone.
    for (const KeptTile& k : planned.kept) {
      Buffer& tile = m_.buffers[k.tile];
      if (tile.in_place) continue;
      tile.swizzle = m_.buffer(k.lag).swizzle;
      tile.in_place = m_.buffer(k.lag).in_place;
    }
    const bool one = team == Team::kBlock || (launch_.owns != kNoId && shared_rings_);
    if (one && ComeAsBoxes(loop, ring.tiles)) ring.transport = Transport::kBoxes;
    Note(s, absl::StrCat(": ", ring.depth, " slots of ", NamesOf(ring.tiles), " filled by ",
                         Name(ring.transport), Asked(loop, ring.depth)));
    planned.plan = MakeLoopPlan(std::move(ring));
    if (Status valid = VerifyPlan(planned.plan); !valid.ok() && status_.ok()) {
      status_ = absl::InternalError(absl::StrCat(Describe(s), ": ", valid.message()));
    }
    planned_.emplace(loop.var, std::move(planned));
  }

  static std::string Asked(const For& loop, int depth) {
    return depth >= loop.stages ? "" : absl::StrCat("; ", loop.stages, " stages were asked for");
  }

  std::string NamesOf(const std::vector<BufferId>& tiles) const {
    return absl::StrJoin(
        tiles, ", ", [&](std::string* out, BufferId tile) { out->append(m_.buffer(tile).name); });
  }

  void Note(const StmtRef& loop, std::string_view what) {
    m_.notes.push_back(absl::StrCat(Describe(loop), what));
  }

  Module& m_;
  const Target& target_;
  const Transport transport_;
  const int64_t limit_;
  const int max_slots_;
  const Launch& launch_;
  const bool shared_rings_;
  LaunchFacts facts_;
  PlannedLoops planned_;
  Status status_;
};

// ---- Producers

// As far as what they depend on goes: the copies of a planned loop, in a loop.
Block PlainProducerLoop(const StmtRef& s, const PlannedLoop& planned) {
  For loop = *As<For>(s);
  std::erase_if(loop.body, [&](const StmtRef& inside) {
    const Copy* copy = As<Copy>(inside);
    const Let* let = As<Let>(inside);
    const bool early =
        (copy && absl::c_linear_search(planned.plan.rings[0].tiles, copy->dst.buffer)) ||
        (let && planned.copies.lets.contains(let->var));
    return !early;
  });
  return {MakeStmt(std::move(loop), s->span, s->id)};
}

// Why not; "": the launch has producers.
std::string WhyNoProducer(const Module& m, const Target& target, const Launch& launch,
                          const LaunchFacts& facts, const PlannedLoops& planned) {
  if (launch.producer == Producer::kSelf) return "the program says so";
  // Measured on an H200: a persistent gemm of 8192^3 takes 1534 us with a producer, which loads for
  // the next tile while this one's results leave, and 1554 us without; steps of mla_decode, whose
  // threads meet in between anyway, 221 us with and 211 us without.
  // Loads for a whole cluster take one.
  const bool asks = launch.persistent || !launch.cluster.empty();
  if (launch.producer == Producer::kAuto && !asks) return "the program does not ask";
  ProducerLoops loops;
  VisitStmts(launch.body, [&](const StmtRef& s) {
    const auto it = As<For>(s) ? planned.find(As<For>(s)->var) : planned.end();
    if (it == planned.end() || it->second.plan.rings[0].transport != Transport::kBoxes) return;
    loops[it->first] = PlainProducerLoop(s, it->second);
  });
  if (loops.empty()) return "no loop is filled by boxes";
  Launch with = launch;
  AddProducers(target, with);
  const int threads = with.producers + WarpsOf(launch, target) * target.warp_size;
  if (threads > target.max_threads_per_block) {
    return absl::StrCat("a block would have ", threads, " threads");
  }
  std::string reason;
  SliceForProducer(m, launch, launch.body, facts, loops, reason);
  return reason;
}

// Loops that boxes fill, planned anew where producers can fill them. `reason`: why they cannot.
Status PlanProducers(Module& m, const Target& target, Launch& launch, const LaunchFacts& facts,
                     PlannedLoops& planned, std::string& reason) {
  reason = WhyNoProducer(m, target, launch, facts, planned);
  const std::string place = absl::StrCat("launch", At(launch.span), ": ");
  if (!reason.empty()) {
    if (launch.producer == Producer::kWarp && target.bulk_copies) {
      m.notes.push_back(absl::StrCat(place, "all threads copy: ", reason));
    }
    return absl::OkStatus();
  }
  for (auto& [var, loop] : planned) {
    const Ring& ring = loop.plan.rings[0];
    if (ring.transport != Transport::kBoxes) continue;
    loop.plan = MakeLoopPlan(Ring(ring), true);
    TL_RETURN_IF_ERROR(VerifyPlan(loop.plan));
  }
  AddProducers(target, launch);
  m.notes.push_back(absl::StrCat(
      place, launch.producers, " threads more, which only copy",
      launch.registers > 0 ? absl::StrCat("; ", launch.producer_registers,
                                          " registers each, the others ", launch.registers)
                           : ""));
  return absl::OkStatus();
}

// ---- Clusters

// Rows are permuted by 8: shares are whole eights of them.
bool CanShare(const Copy& copy, int blocks) { return copy.dst.extents[0] % (8 * blocks) == 0; }

// What a loop's blocks load for each other. `reason`: why nothing.
absl::flat_hash_map<BufferId, unsigned> SharedCopies(const Module& m, const ClusterFacts& facts,
                                                     const For& loop, const Ring& ring,
                                                     std::string& reason) {
  absl::flat_hash_map<BufferId, unsigned> together;
  if (const unsigned axes = facts.TripsVaryAlong(loop)) {
    reason = absl::StrCat("its iterations may differ along ", facts.NamesOf(axes));
    return together;
  }
  for (const StmtRef& s : loop.body) {
    const Copy* copy = As<Copy>(s);
    if (!copy || !absl::c_linear_search(ring.tiles, copy->dst.buffer)) continue;
    // Whether boxes serve or elements are copied is one decision for all blocks.
    if (copy->rows && facts.VariesAlong(copy->rows) != 0) {
      reason = "the rows that it copies may differ";
      return {};
    }
    const unsigned axes = facts.axes() & ~facts.VariesAlong(*copy);
    const int blocks = facts.BlocksAlong(axes);
    if (blocks == 1) continue;
    if (CanShare(*copy, blocks)) {
      together[copy->dst.buffer] = axes;
    } else {
      reason = absl::StrCat("shares of ", m.buffer(copy->dst.buffer).name,
                            " would not be multiples of 8 rows");
    }
  }
  if (together.empty() && reason.empty()) {
    reason = absl::StrCat("all that it copies differs along ", facts.NamesOf(facts.axes()));
  }
  return together;
}

// Loops of several blocks where producers fill them, planned anew; none: the cluster is no use.
Status PlanClusters(Module& m, Launch& launch, const LaunchFacts& launch_facts,
                    PlannedLoops& planned) {
  const ClusterFacts facts(m, launch, launch_facts);
  bool any = false;
  std::vector<std::string> notes;
  Status status;
  VisitStmts(launch.body, [&](const StmtRef& s) {
    const auto it = As<For>(s) ? planned.find(As<For>(s)->var) : planned.end();
    if (it == planned.end() || it->second.plan.rings[0].transport != Transport::kBoxes) return;
    PlannedLoop& loop = it->second;
    Ring ring = loop.plan.rings[0];
    std::string reason;
    loop.together = SharedCopies(m, facts, *As<For>(s), ring, reason);
    for (BufferId tile : ring.tiles) {
      const auto shared = loop.together.find(tile);
      if (shared == loop.together.end()) continue;
      notes.push_back(absl::StrCat(Describe(s), ": each of ", facts.BlocksAlong(shared->second),
                                   " blocks loads its share of ", m.buffer(tile).name,
                                   " for all of them"));
    }
    if (!reason.empty()) {
      notes.push_back(absl::StrCat(Describe(s), " loads nothing for other blocks",
                                   loop.together.empty() ? "" : " besides", ": ", reason));
    }
    if (loop.together.empty()) return;
    any = true;
    ring.blocks = launch.cluster_size();
    loop.plan = MakeLoopPlan(std::move(ring), true);
    if (Status valid = VerifyPlan(loop.plan); !valid.ok() && status.ok()) status = valid;
  });
  m.notes.insert(m.notes.end(), notes.begin(), notes.end());
  if (!any) DropCluster(m, launch, "no loop loads for a whole cluster");
  return status;
}

bool ComesAsBoxes(const PlannedLoops::value_type& loop) {
  return loop.second.plan.rings[0].transport == Transport::kBoxes;
}

}  // namespace

int WarpsOf(const Launch& launch, const Target& target) {
  const int threads = launch.threads > 0 ? launch.threads : target.default_threads;
  return threads * launch.groups / target.warp_size;
}

StatusOr<PlannedLoops> PlanLoops(Module& module, const Target& target, int64_t limit, int max_slots,
                                 Launch& launch) {
  const size_t notes = module.notes.size();
  const auto plan = [&](bool shared_rings) {
    return LaunchPlanner(module, target, limit, max_slots, launch, shared_rings).Run();
  };
  TL_ASSIGN_OR_RETURN(PlannedLoops planned, plan(true));
  const LaunchFacts facts(module, launch);
  std::string reason;
  TL_RETURN_IF_ERROR(PlanProducers(module, target, launch, facts, planned, reason));
  if (launch.owns != kNoId && !reason.empty() && absl::c_any_of(planned, ComesAsBoxes)) {
    module.notes.resize(notes);  // what the first plan said
    TL_ASSIGN_OR_RETURN(planned, plan(false));
    module.notes.push_back(
        absl::StrCat("launch", At(launch.span), ": each group fills slots of its own: ", reason));
  }
  if (launch.cluster.empty()) return planned;
  if (reason.empty()) {
    TL_RETURN_IF_ERROR(PlanClusters(module, launch, facts, planned));
  } else {
    DropCluster(module, launch, absl::StrCat("all threads copy: ", reason));
  }
  return planned;
}

}  // namespace tl
