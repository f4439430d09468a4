#include "passes/fence_proxies.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/visit.h"

namespace tl {
namespace {

class Fencer : public StmtMapper {
 public:
  explicit Fencer(const Module& module) : m_(module) {}

  Block MapBlock(const Block& b) override {
    const bool behind = read_later_;
    std::vector<bool> later(b.size() + 1, behind);  // from this statement on
    for (size_t i = b.size(); i-- > 0;) later[i] = later[i + 1] || HoldsProducts(b[i]);
    Block out;
    for (size_t i = 0; i < b.size(); ++i) {
      // The next iteration comes behind this one.
      read_later_ = later[i + 1] || (As<For>(b[i]) && HoldsProducts(b[i]));
      if (As<Barrier>(b[i]) && read_later_ && std::exchange(written_, false)) {
        out.push_back(MakeStmt(ProxyFence{}));
      }
      out.push_back(MapStmt(b[i]));
    }
    read_later_ = behind;
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
    const bool before = written_;
    (void)MapBlock(loop->body);
    written_ = written_ || before;
    StmtRef mapped = StmtMapper::MapStmt(s);
    written_ = written_ || before;
    return mapped;
  }

 private:
  StmtRef MapIf(const StmtRef& s, const If& branch) {
    const bool before = written_;
    If out{branch.cond, MapBlock(branch.then_body), {}};
    const bool after = std::exchange(written_, before);
    out.else_body = MapBlock(branch.else_body);
    written_ = written_ || after;
    return MakeStmt(std::move(out), s->span, s->id);
  }

  void NoteWrites(const Stmt& s) {
    if (std::holds_alternative<ProxyFence>(s.node)) written_ = false;
    if (std::holds_alternative<BulkLoad>(s.node)) return;  // by the same way as the products
    VisitAccesses(s, [&](BufferId id, const ExprRef&, bool write) {
      written_ =
          written_ || (write && m_.buffer(id).in_place && m_.buffer(id).scope != Scope::kLocal);
    });
  }
  static bool HoldsProducts(const StmtRef& s) {
    bool found = false;
    VisitStmts({s}, [&](const StmtRef& inner) { found = found || As<Wgmma>(inner); });
    return found;
  }

  const Module& m_;
  bool read_later_ = false;  // by products behind the statement at hand
  bool written_ = false;     // such a tile, since the last fence
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
