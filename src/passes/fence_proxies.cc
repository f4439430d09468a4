#include "passes/fence_proxies.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"
#include "passes/plan_arena.h"

namespace tl {
namespace {

using Buffers = absl::flat_hash_set<BufferId>;

// What statements do by way of the async proxy.
struct AsyncUse {
  bool products = false;  // read tiles in place
  Buffers filled;         // tiles that boxes fill
  Buffers sent;           // tiles that leave in boxes

  void Add(const AsyncUse& other) {
    products = products || other.products;
    filled.insert(other.filled.begin(), other.filled.end());
    sent.insert(other.sent.begin(), other.sent.end());
  }
};

AsyncUse UseOf(const StmtRef& root) {
  AsyncUse use;
  VisitStmts({root}, [&](const StmtRef& s) {
    if (As<Wgmma>(s)) use.products = true;
    if (const BulkLoad* load = As<BulkLoad>(s)) use.filled.insert(load->dst);
    if (const BulkStore* store = As<BulkStore>(s)) use.sent.insert(store->src);
  });
  return use;
}

class Fencer : public StmtMapper {
 public:
  explicit Fencer(const Module& module) : m_(module) {}

  Block MapBlock(const Block& b) override {
    const AsyncUse behind = later_;
    std::vector<AsyncUse> later(b.size() + 1, behind);  // from this statement on
    for (size_t i = b.size(); i-- > 0;) {
      later[i] = later[i + 1];
      later[i].Add(UseOf(b[i]));
    }
    Block out;
    for (size_t i = 0; i < b.size(); ++i) {
      // The next iteration comes behind this one.
      later_ = later[As<For>(b[i]) ? i : i + 1];
      if (As<Barrier>(b[i]) && NeedsFence()) {
        out.push_back(MakeStmt(ProxyFence{}));
        written_.clear();
      }
      out.push_back(MapStmt(b[i]));
    }
    later_ = behind;
    return out;
  }

  StmtRef MapStmt(const StmtRef& s) override {
    if (const If* branch = As<If>(s)) return MapIf(s, *branch);
    const For* loop = As<For>(s);
    if (!loop) {
      NoteWrites(*s);
      return StmtMapper::MapStmt(s);
    }
    // What an iteration leaves behind meets the next one's barriers.
    const Buffers before = written_, left = LeftBy(s, *loop);
    written_.insert(left.begin(), left.end());
    StmtRef mapped = StmtMapper::MapStmt(s);
    written_.insert(before.begin(), before.end());
    return mapped;
  }

 private:
  // What an iteration writes and does not fence itself. Asked for once for each loop: a walk of a
  // loop around asks again.
  Buffers LeftBy(const StmtRef& s, const For& loop) {
    const auto known = left_by_.find(s.get());
    if (known != left_by_.end()) return known->second;
    Buffers outer = std::exchange(written_, {});
    (void)MapBlock(loop.body);
    return left_by_.emplace(s.get(), std::exchange(written_, std::move(outer))).first->second;
  }

  StmtRef MapIf(const StmtRef& s, const If& branch) {
    const Buffers before = written_;
    If out{branch.cond, MapBlock(branch.then_body), {}};
    const Buffers after = std::exchange(written_, before);
    out.else_body = MapBlock(branch.else_body);
    written_.insert(after.begin(), after.end());
    return MakeStmt(std::move(out), s->span, s->id);
  }

  void NoteWrites(const Stmt& s) {
    if (std::holds_alternative<ProxyFence>(s.node)) written_.clear();
    if (std::holds_alternative<BulkLoad>(s.node)) return;  // by the same way as the products
    VisitAccesses(s, [&](BufferId id, const ExprRef&, bool write) {
      const Buffer& b = m_.buffer(id);
      const bool shared = b.scope != Scope::kLocal && b.scope != Scope::kGlobal;
      if (write && shared && b.role != BufferRole::kMbarriers) written_.insert(id);
    });
  }

  // A tile that products or boxes read where it lies, or memory that boxes will fill as another
  // tile's.
  bool NeedsFence() const {
    return absl::c_any_of(written_, [&](BufferId w) {
      if (later_.products && m_.buffer(w).in_place) return true;
      if (later_.sent.contains(w)) return true;
      return absl::c_any_of(later_.filled, [&](BufferId f) {
        return f != w && ShareMemory(m_.buffer(w), m_.buffer(f));
      });
    });
  }

  const Module& m_;
  AsyncUse later_;                                     // behind the statement at hand
  Buffers written_;                                    // by threads, since the last fence
  absl::flat_hash_map<const Stmt*, Buffers> left_by_;  // by loop
};

}  // namespace

Status FenceProxies(Module& module, const Target&) {
  if (absl::c_none_of(module.buffers, [](const Buffer& b) { return b.in_place; })) {
    return absl::OkStatus();
  }
  for (Launch& launch : module.launches) launch.body = Fencer(module).MapBlock(launch.body);
  return absl::OkStatus();
}

}  // namespace tl
