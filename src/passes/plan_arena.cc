#include "passes/plan_arena.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int_math.h"
#include "ir/visit.h"
#include "passes/early_copies.h"

namespace tl {
namespace {

bool IsInArena(const Buffer& b) { return b.scope != Scope::kGlobal && b.scope != Scope::kLocal; }

// From the first to the last statement of use, as positions in program order.
struct Range {
  int first = 0, last = -1;

  bool empty() const { return last < first; }
  void Cover(Range r) {
    *this = empty() ? r : Range{std::min(first, r.first), std::max(last, r.last)};
  }
  bool Meets(Range r) const { return first <= r.last && r.first <= last; }
};

// Walks the statements of a launch and finds each tile's range.
class Liveness {
 public:
  explicit Liveness(const Module& module) : module_(module) {}

  void Run(const Block& body) {
    absl::flat_hash_set<BufferId> outside;
    Walk(body, outside);
    for (Tile& tile : tiles_) {
      // Their place must never hold anything else.
      if (module_.buffer(tile.buffer).role == BufferRole::kMbarriers) tile.range = {0, position_};
    }
  }

  struct Tile {
    BufferId buffer;
    Range range;
  };
  const std::vector<Tile>& tiles() const { return tiles_; }

 private:
  // `outer` receives the tiles that the block uses without allocating them.
  void Walk(const Block& block, absl::flat_hash_set<BufferId>& outer) {
    absl::flat_hash_map<BufferId, size_t> own;  // index into tiles_
    for (const StmtRef& s : block) {
      if (const Alloc* alloc = As<Alloc>(s)) {
        ++position_;
        if (!IsInArena(module_.buffer(alloc->buffer))) continue;
        own[alloc->buffer] = tiles_.size();
        tiles_.push_back({alloc->buffer, {}});
        continue;
      }
      const size_t tiles_before = tiles_.size();
      Range here{position_, 0};
      absl::flat_hash_set<BufferId> used;
      Uses(s, used);
      here.last = position_++;
      for (BufferId b : used) {
        const auto it = own.find(b);
        if (it != own.end()) {
          tiles_[it->second].range.Cover(here);
        } else {
          outer.insert(b);
        }
      }
      // Groups pass through the statement at their own pace: inside, nothing may be reused.
      if (!As<OnGroup>(s)) continue;
      for (size_t i = tiles_before; i < tiles_.size(); ++i) tiles_[i].range = here;
    }
  }

  void Uses(const StmtRef& s, absl::flat_hash_set<BufferId>& used) {
    VisitStmtExprs(*s, [&](const ExprRef& e) {
      VisitExpr(e, [&](const ExprRef& node) {
        if (const Load* load = As<Load>(node)) Use(load->buffer, used);
      });
    });
    VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool) { Use(id, used); });
    if (const ChannelAcquire* acquire = As<ChannelAcquire>(s)) Use(acquire->channel, used);
    if (const ChannelRelease* release = As<ChannelRelease>(s)) Use(release->channel, used);
    VisitBlocks(*s, [&](const Block& b) {
      ++position_;
      Walk(b, used);
    });
  }

  void Use(BufferId b, absl::flat_hash_set<BufferId>& used) {
    if (IsInArena(module_.buffer(b))) used.insert(b);
  }

  const Module& module_;
  int position_ = 0;
  std::vector<Tile> tiles_;
};

int64_t AlignUp(int64_t v, int64_t alignment) {
  return (v + alignment - 1) / alignment * alignment;
}

struct Placed {
  int64_t begin, end;
  Range range;
};

// Lowest place that no tile alive at the same time takes.
int64_t FindPlace(const std::vector<Placed>& placed, Range range, int64_t bytes,
                  int64_t alignment) {
  std::vector<const Placed*> others;
  for (const Placed& p : placed) {
    if (p.range.Meets(range)) others.push_back(&p);
  }
  std::sort(others.begin(), others.end(),
            [](const Placed* a, const Placed* b) { return a->begin < b->begin; });
  int64_t at = 0;
  for (const Placed* p : others) {
    if (at + bytes <= p->begin) break;
    at = std::max(at, AlignUp(p->end, alignment));
  }
  return at;
}

// Large tiles first: small ones fill the gaps.
int64_t PlaceTiles(Module& module, std::vector<Liveness::Tile> tiles) {
  std::stable_sort(tiles.begin(), tiles.end(), [&](const auto& a, const auto& b) {
    return module.buffer(a.buffer).stored_bytes() > module.buffer(b.buffer).stored_bytes();
  });
  std::vector<Placed> placed;
  int64_t total = 0;
  for (const Liveness::Tile& tile : tiles) {
    Buffer& b = module.buffers[tile.buffer];
    const int64_t bytes = b.stored_bytes();
    if (b.scope != Scope::kChannel) b.scope = Scope::kShared;
    b.arena_offset = 0;
    if (tile.range.empty()) continue;  // never touched
    b.arena_offset = FindPlace(placed, tile.range, bytes, ArenaAlignment(b));
    placed.push_back({b.arena_offset, b.arena_offset + bytes, tile.range});
    total = std::max(total, b.arena_offset + bytes);
  }
  return AlignUp(total, 16);
}

// Placed tiles need no statement; channels and local arrays come into being at theirs.
class DropAllocs : public StmtMapper {
 public:
  explicit DropAllocs(const Module& module) : module_(module) {}

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const Alloc* alloc = As<Alloc>(s);
      if (alloc && module_.buffer(alloc->buffer).scope == Scope::kShared) continue;
      out.push_back(MapStmt(s));
    }
    return out;
  }

 private:
  const Module& module_;
};

std::string Describe(const Buffer& b) {
  return absl::StrCat(b.name, " ", Name(b.dtype), "[", absl::StrJoin(b.extents, ", "), "] ",
                      b.stored_bytes());
}

// `limit`: the target's, or a smaller one that the caller has set.
Status TooLarge(const Module& module, const Launch& launch, const Target& target, int64_t limit,
                std::vector<Liveness::Tile> tiles) {
  std::stable_sort(tiles.begin(), tiles.end(), [&](const auto& a, const auto& b) {
    return module.buffer(a.buffer).stored_bytes() > module.buffer(b.buffer).stored_bytes();
  });
  constexpr size_t kMost = 12;
  constexpr int64_t kLargestFactor = 64;
  std::vector<std::string> list;
  for (size_t i = 0; i < std::min(kMost, tiles.size()); ++i) {
    list.push_back(Describe(module.buffer(tiles[i].buffer)));
  }
  if (tiles.size() > kMost) list.push_back(absl::StrCat(tiles.size() - kMost, " smaller"));
  const bool budget = limit != target.max_shared_bytes;
  const std::string allowed = budget ? absl::StrCat("the budget given is ", limit)
                                     : absl::StrCat(target.name, " has ", limit);
  // Tiles of a few elements are no cure.
  const int64_t factor = CeilDiv(launch.arena_bytes, limit);
  const std::string cure =
      budget && factor > kLargestFactor
          ? absl::StrCat("Give a budget of at least ", launch.arena_bytes, ", or none")
          : absl::StrCat("Make tile extents, stages or channel depths smaller by a factor of ",
                         factor, budget ? ", or the budget larger" : "");
  return LimitError(
      launch.span,
      absl::StrCat("the tiles of one block take ", launch.arena_bytes, " bytes of on-chip memory, ",
                   allowed, " per block; in bytes: ", absl::StrJoin(list, "; "), ". ", cure));
}

}  // namespace

Status PlanArena(Module& module, const Target& target, int64_t shared_budget) {
  int64_t limit = target.max_shared_bytes;
  if (shared_budget > 0 && (limit == 0 || shared_budget < limit)) limit = shared_budget;
  for (Launch& launch : module.launches) {
    Liveness liveness(module);
    liveness.Run(launch.body);
    launch.arena_bytes = PlaceTiles(module, liveness.tiles());
    if (limit > 0 && launch.arena_bytes > limit) {
      return TooLarge(module, launch, target, limit, liveness.tiles());
    }
    launch.body = DropAllocs(module).MapBlock(launch.body);
  }
  return absl::OkStatus();
}

bool ShareMemory(const Buffer& a, const Buffer& b) {
  if (a.arena_offset < 0 || b.arena_offset < 0) return false;
  return a.arena_offset < b.arena_offset + b.stored_bytes() &&
         b.arena_offset < a.arena_offset + a.stored_bytes();
}

}  // namespace tl
