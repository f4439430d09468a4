#include "passes/early_copies.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"

namespace tl {
namespace {

// The buffers that one statement touches, without those of the statements nested in it.
void VisitUses(const Stmt& s, absl::FunctionRef<void(BufferId, bool write)> visit) {
  VisitRegions(s, [&](const Region& r, bool write) { visit(r.buffer, write); });
  VisitStmtExprs(s, [&](const ExprRef& e) {
    VisitExpr(e, [&](const ExprRef& node) {
      if (const Load* load = As<Load>(node)) visit(load->buffer, false);
    });
  });
  if (const Store* x = std::get_if<Store>(&s.node)) visit(x->buffer, true);
  if (const AtomicElement* x = std::get_if<AtomicElement>(&s.node)) visit(x->buffer, true);
  if (const Finish* x = std::get_if<Finish>(&s.node)) visit(x->reducer, true);
  if (const Send* x = std::get_if<Send>(&s.node)) visit(x->channel, true);
  if (const Recv* x = std::get_if<Recv>(&s.node)) visit(x->channel, true);
}

}  // namespace

bool IsPipelined(const StmtRef& s) {
  const For* loop = As<For>(s);
  return loop && loop->kind == LoopKind::kPipelined;
}

// Wide enough for any vector access; large tiles start on a line. What matrix instructions read
// in place permutes chunks by bits of the address itself, which repeat after 1024 bytes.
int64_t ArenaAlignment(const Buffer& b) {
  if (b.in_place) return 1024;
  return b.stored_bytes() >= 1024 ? 128 : 16;
}

int64_t ArenaBytes(const Buffer& b) {
  const int64_t bytes = b.stored_bytes();
  const int64_t alignment = ArenaAlignment(b);
  return (bytes + alignment - 1) / alignment * alignment;
}

// ---- LaunchFacts

LaunchFacts::LaunchFacts(const Module& module, const Launch& launch) : module_(module) {
  absl::flat_hash_set<BufferId> outside;
  Walk(launch.body, outside);
}

// A tile's range is told in statements of the block that enters it into scope: a loop there needs
// it from its first to its last iteration. `outer` receives the tiles of blocks further out.
void LaunchFacts::Walk(const Block& block, absl::flat_hash_set<BufferId>& outer) {
  absl::flat_hash_set<BufferId> own;
  for (const StmtRef& s : block) {
    if (const Alloc* alloc = As<Alloc>(s)) {
      own.insert(alloc->buffer);
      continue;
    }
    absl::flat_hash_set<BufferId> used;
    const int first = position_;
    Enter(s, used);
    const int last = position_++;
    for (BufferId b : used) {
      if (!own.contains(b)) {
        outer.insert(b);
        continue;
      }
      const auto [it, inserted] = ranges_.try_emplace(b, Range{first, last});
      if (!inserted) it->second.last = last;
    }
  }
}

void LaunchFacts::Enter(const StmtRef& s, absl::flat_hash_set<BufferId>& used) {
  VisitUses(*s, [&](BufferId b, bool write) {
    NoteUse(b, write);
    if (module_.buffer(b).scope != Scope::kGlobal) used.insert(b);
  });
  const int outer = current_;
  if (IsPipelined(s)) {
    loops_.push_back({As<For>(s)->var, outer, outer < 0 ? 0 : loops_[outer].depth + 1, {}});
    current_ = static_cast<int>(loops_.size()) - 1;
  }
  const int mine = current_;
  const int first = position_;
  VisitBlocks(*s, [&](const Block& b) { Walk(b, used); });
  if (mine != outer) loops_[mine].range = {first, position_};
  current_ = outer;
}

void LaunchFacts::NoteUse(BufferId b, bool write) {
  if (write) written_.insert(b);
  const auto [it, inserted] = home_.try_emplace(b, current_);
  if (!inserted) it->second = Common(it->second, current_);
}

// The innermost loop that holds both; -1: none.
int LaunchFacts::Common(int a, int b) const {
  while (a != b) {
    if (a < 0 || b < 0) return -1;
    int& deeper = loops_[a].depth >= loops_[b].depth ? a : b;
    deeper = loops_[deeper].parent;
  }
  return a;
}

VarId LaunchFacts::HomeOf(BufferId tile) const {
  const auto it = home_.find(tile);
  return it == home_.end() || it->second < 0 ? kNoId : loops_[it->second].var;
}

int64_t LaunchFacts::LiveBytes(VarId loop) const {
  const auto at =
      std::find_if(loops_.begin(), loops_.end(), [&](const Loop& l) { return l.var == loop; });
  if (at == loops_.end()) return 0;
  int64_t bytes = 0;
  for (const auto& [tile, range] : ranges_) {
    const Buffer& b = module_.buffer(tile);
    if (b.scope != Scope::kShared && b.scope != Scope::kChannel) continue;
    if (range.first <= at->range.last && at->range.first <= range.last) {
      const auto slots = depths_.find(tile);
      bytes += ArenaBytes(b) * (slots == depths_.end() ? 1 : slots->second);
    }
  }
  return bytes;
}

// ---- FindEarlyCopies

namespace {

class Finder {
 public:
  Finder(const Module& module, const LaunchFacts& facts, const For& loop)
      : m_(module), facts_(facts), loop_(loop) {
    for (const StmtRef& s : loop_.body) {
      if (const Let* let = As<Let>(s)) lets_[let->var] = let->value;
      if (const Copy* copy = As<Copy>(s); copy && IsFromTensor(*copy)) {
        fillers_[copy->dst.buffer].push_back(s);
      }
    }
    VisitStmts(loop_.body, [&](const StmtRef& s) {
      if (const Assign* assign = As<Assign>(s)) assigned_.insert(assign->var);
      VisitUses(*s, [&](BufferId b, bool write) {
        if (write) writers_[b].push_back(s);
      });
    });
  }

  LoopCopies Run() {
    std::vector<StmtRef> accepted;
    for (const StmtRef& s : loop_.body) {
      if (const Copy* copy = As<Copy>(s); copy && IsFromTensor(*copy)) {
        absl::flat_hash_set<VarId> needed;
        const std::string reason = WhyNot(s, *copy, needed);
        if (!reason.empty()) {
          Refuse(*s, *copy, reason);
          refused_.insert(copy->dst.buffer);
        } else {
          if (!absl::c_linear_search(out_.tiles, copy->dst.buffer)) {
            out_.tiles.push_back(copy->dst.buffer);
          }
          out_.lets.insert(needed.begin(), needed.end());
          accepted.push_back(s);
        }
      }
      RefuseNested(*s);
      NoteUses(s);
    }
    // All parts of a tile or none.
    for (const StmtRef& s : accepted) {
      const Copy& copy = *As<Copy>(s);
      if (refused_.contains(copy.dst.buffer)) {
        Refuse(*s, copy, absl::StrCat("another part of ", NameOf(copy.dst.buffer), " is not"));
      }
    }
    std::erase_if(out_.tiles, [&](BufferId tile) { return refused_.contains(tile); });
    return std::move(out_);
  }

 private:
  bool IsFromTensor(const Copy& copy) const {
    return m_.buffer(copy.src.buffer).scope == Scope::kGlobal &&
           m_.buffer(copy.dst.buffer).scope != Scope::kGlobal;
  }

  void Refuse(const Stmt& s, const Copy& copy, std::string_view reason) {
    const std::string at = FormatSpan(s.span);
    out_.refused.push_back(absl::StrCat("copy of ", NameOf(copy.src.buffer),
                                        at.empty() ? "" : " at ", at,
                                        " is not overlapped: ", reason));
  }

  // Pipelined loops inside tell about their own copies.
  void RefuseNested(const Stmt& outer) {
    const For* loop = std::get_if<For>(&outer.node);
    if (loop && loop->kind == LoopKind::kPipelined) return;
    VisitBlocks(outer, [&](const Block& block) {
      for (const StmtRef& s : block) {
        const Copy* copy = As<Copy>(s);
        if (copy && IsFromTensor(*copy)) {
          Refuse(*s, *copy,
                 loop                                     ? "it stands in a loop inside"
                 : std::holds_alternative<If>(outer.node) ? "it stands under a condition"
                                                          : "it stands in another block");
        }
        RefuseNested(*s);
      }
    });
  }

  // What the body has touched so far, besides tiles by the parts that fill them.
  void NoteUses(const StmtRef& root) {
    const Copy* copy = As<Copy>(root);
    const BufferId filled = copy && FillPart(copy->dst.buffer) ? copy->dst.buffer : kNoId;
    VisitStmts({root}, [&](const StmtRef& s) {
      VisitUses(*s, [&](BufferId b, bool) {
        if (b != filled) used_.insert(b);
      });
    });
  }

  // Do several copies of the body fill a part of the tile each, rows behind rows, and all of it?
  bool FillPart(BufferId tile) const {
    const auto it = fillers_.find(tile);
    if (it == fillers_.end() || it->second.size() < 2) return false;
    const Buffer& b = m_.buffer(tile);
    int64_t rows = 0;
    for (const StmtRef& s : it->second) {
      const Region& part = As<Copy>(s)->dst;
      if (part.rank() != b.rank() || b.rank() == 0 || !IsInt(part.offset[0], rows)) return false;
      for (int d = 1; d < b.rank(); ++d) {
        if (!IsInt(part.offset[d], 0) || part.extents[d] != b.extents[d]) return false;
      }
      rows += part.extents[0];
    }
    return rows == b.extents[0];
  }

  const std::string& NameOf(BufferId b) const { return m_.buffer(b).name; }

  std::string WhyNot(const StmtRef& at, const Copy& copy, absl::flat_hash_set<VarId>& needed) {
    const Buffer& tile = m_.buffer(copy.dst.buffer);
    if (tile.scope != Scope::kShared || tile.role != BufferRole::kTile) {
      return absl::StrCat(tile.name, " is no shared tile");
    }
    if (!IsWhole(tile, copy.dst) && !FillPart(copy.dst.buffer)) {
      return absl::StrCat("it fills only a part of ", tile.name);
    }
    const DType from = m_.buffer(copy.src.buffer).dtype;
    if (from != tile.dtype) {
      return absl::StrCat("it converts ", Name(from), " to ", Name(tile.dtype));
    }
    if (copy.transpose) return "it transposes";
    if (facts_.IsWritten(copy.src.buffer)) {
      return absl::StrCat("the launch also writes ", NameOf(copy.src.buffer));
    }
    if (std::string reason = WhyNotTile(at, copy.dst.buffer); !reason.empty()) return reason;
    for (const ExprRef& e : copy.src.offset) {
      if (std::string reason = WhyNotEarly(e, needed); !reason.empty()) return reason;
    }
    return copy.rows ? WhyNotEarly(copy.rows, needed) : "";
  }

  std::string WhyNotTile(const StmtRef& at, BufferId tile) const {
    const bool parts = FillPart(tile);
    for (const StmtRef& writer : writers_.at(tile)) {
      if (writer == at || (parts && absl::c_linear_search(fillers_.at(tile), writer))) continue;
      const std::string place = FormatSpan(writer->span);
      return absl::StrCat(NameOf(tile), " is also written", place.empty() ? "" : " at ", place);
    }
    if (used_.contains(tile)) return absl::StrCat(NameOf(tile), " is used before it");
    if (facts_.HomeOf(tile) != loop_.var) {
      return absl::StrCat(NameOf(tile), " is used outside the loop");
    }
    return "";
  }

  // Is the value known iterations ahead? `needed` receives the lets of the body that it takes.
  std::string WhyNotEarly(const ExprRef& e, absl::flat_hash_set<VarId>& needed) const {
    std::string reason;
    const auto note = [&](std::string why) {
      if (reason.empty()) reason = std::move(why);
    };
    VisitExpr(e, [&](const ExprRef& node) {
      if (const VarRef* ref = As<VarRef>(node)) note(WhyNotVar(ref->var, needed));
      if (const Load* load = As<Load>(node)) note(WhyNotElement(load->buffer));
    });
    return reason;
  }

  std::string WhyNotVar(VarId v, absl::flat_hash_set<VarId>& needed) const {
    if (assigned_.contains(v)) {
      return absl::StrCat("its place depends on ", m_.var(v).name, ", which the loop assigns");
    }
    const auto it = lets_.find(v);
    if (it == lets_.end()) return "";
    return needed.insert(v).second ? WhyNotEarly(it->second, needed) : "";
  }

  std::string WhyNotElement(BufferId b) const {
    const bool global = m_.buffer(b).scope == Scope::kGlobal;
    if (global ? !facts_.IsWritten(b) : !writers_.contains(b)) return "";
    return absl::StrCat("its place depends on ", NameOf(b), ", which the ",
                        global ? "launch" : "loop", " writes");
  }

  const Module& m_;
  const LaunchFacts& facts_;
  const For& loop_;
  absl::flat_hash_map<VarId, ExprRef> lets_;  // at the top level of the body
  absl::flat_hash_set<VarId> assigned_;
  absl::flat_hash_map<BufferId, std::vector<StmtRef>> writers_;
  absl::flat_hash_map<BufferId, std::vector<StmtRef>> fillers_;  // copies at the top level
  absl::flat_hash_set<BufferId> used_, refused_;
  LoopCopies out_;
};

}  // namespace

LoopCopies FindEarlyCopies(const Module& module, const LaunchFacts& facts, const For& loop) {
  return Finder(module, facts, loop).Run();
}

}  // namespace tl
