#include "passes/turns.h"

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/mbarriers.h"
#include "passes/notes.h"

namespace tl {
namespace {

void Note(Module& m, const StmtRef& turn, std::string_view what) {
  m.notes.push_back(absl::StrCat("in_turn", At(turn->span), ": ", what));
}
void NoteWhyNot(Module& m, const StmtRef& turn, std::string_view why) {
  Note(m, turn, absl::StrCat("groups take no turns: ", why));
}

bool Begins(const StmtRef& s) { return As<Turn>(s) && As<Turn>(s)->begins; }

// ---- Planned

class Planner : public StmtMapper {
 public:
  Planner(Module& module, const Target& target, Launch& launch)
      : m_(module), target_(target), launch_(launch) {}

  void Run() {
    launch_.body = MapBlock(launch_.body);
    if (barriers_ != kNoId) Enter();
  }

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const Turn* turn = As<Turn>(s);
      if (!turn) {
        out.push_back(MapStmt(s));
        continue;
      }
      const std::string_view why = WhyNot();
      if (turn->begins && !why.empty()) NoteWhyNot(m_, s, why);
      if (why.empty()) out.push_back(MakeStmt(Turn{turn->begins, Barriers()}, s->span, s->id));
    }
    return out;
  }

  StmtRef MapStmt(const StmtRef& s) override {
    const bool outer = in_group_;
    in_group_ = outer || As<OnGroup>(s) != nullptr;
    StmtRef out = StmtMapper::MapStmt(s);
    in_group_ = outer;
    return out;
  }

 private:
  std::string_view WhyNot() const {
    if (launch_.groups == 1) return "the launch has one";
    if (!target_.simt || !target_.channels) return "there are no barriers in memory";
    if (launch_.owns != kNoId) return "each has a tile of its own";
    if (in_group_) return "inside 'on' they may come by different numbers of times";
    return "";
  }

  BufferId Barriers() {
    if (barriers_ != kNoId) return barriers_;
    const int threads = launch_.threads > 0 ? launch_.threads : target_.default_threads;
    barriers_ = AddMbarriers(m_, "turns", launch_.groups, threads / target_.warp_size);
    return barriers_;
  }

  // Before the first barrier that all pass.
  void Enter() {
    const StmtRef alloc = MakeStmt(Alloc{barriers_}, launch_.span);
    if (!StartsWithBarrier()) {
      launch_.body.insert(launch_.body.begin(), MakeStmt(Barrier{Team::kBlock}));
    }
    launch_.body.insert(launch_.body.begin(), alloc);
  }
  bool StartsWithBarrier() const {
    for (const StmtRef& s : launch_.body) {
      if (As<Barrier>(s)) return true;
      const bool makes = As<Alloc>(s) || As<Assign>(s) || As<ProxyFence>(s) || As<MbarrierFence>(s);
      if (!makes) return false;
    }
    return false;
  }

  Module& m_;
  const Target& target_;
  Launch& launch_;
  BufferId barriers_ = kNoId;
  bool in_group_ = false;
};

// ---- Thread

// Why a block whose statements [begin, end) are a turn's takes none; "": it does.
std::string_view WhyNoTurn(const Block& block, size_t begin, size_t end) {
  std::string_view why;
  const auto from = block.begin() + static_cast<ptrdiff_t>(begin);
  const auto to = block.begin() + static_cast<ptrdiff_t>(end);
  VisitStmts(Block(from, to), [&](const StmtRef& s) {
    const Mbarrier* m = As<Mbarrier>(s);
    const Barrier* barrier = As<Barrier>(s);
    if (barrier && barrier->team != Team::kWarp) why = "all threads of the block meet in between";
    if (m && m->op == Mbarrier::Op::kWait) why = "what is copied is waited for in between";
  });
  return why;
}

size_t EndOfTurn(const Block& block, size_t begin) {
  size_t end = begin + 1;
  while (end < block.size() && !As<Turn>(block[end])) ++end;
  return end;
}

bool IsWait(const StmtRef& s) {
  const WgmmaSync* sync = As<WgmmaSync>(s);
  return sync && sync->op == WgmmaSync::Op::kWait;
}

class Ender : public StmtMapper {
 public:
  Ender(Module& module, Launch& launch) : m_(module), launch_(launch) {}

  void Run() {
    launch_.body = MapBlock(launch_.body);
    if (parity_ != kNoId) {
      // The turn of the first group comes as if one had ended before.
      launch_.body.insert(
          launch_.body.begin(),
          MakeStmt(Assign{parity_, MakeSelect(IsGroup(0), MakeInt(1), MakeInt(0))}));
    } else if (barriers_ != kNoId) {
      launch_.body = WithoutMbarriers(launch_.body);
    }
  }

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) out.push_back(MapStmt(s));
    for (size_t i = 0; i < out.size(); ++i) {
      if (Begins(out[i])) Place(out, i);
    }
    return out;
  }

 private:
  // The turn that begins at `begin`.
  void Place(Block& block, size_t begin) {
    const StmtRef mark = block[begin];
    barriers_ = As<Turn>(mark)->barriers;
    const size_t end = EndOfTurn(block, begin);
    const std::string_view why = WhyNoTurn(block, begin, end);
    block.erase(block.begin() + static_cast<ptrdiff_t>(end));
    if (why.empty()) {
      Note(m_, mark, absl::StrCat("the ", launch_.groups, " groups take turns"));
      End(block, end, mark);
      block[begin] = MakeStmt(Mbarrier{Mbarrier::Op::kWait, barriers_, Group(), Parity()},
                              mark->span, mark->id);
      block.insert(block.begin() + static_cast<ptrdiff_t>(begin) + 1, NextPhase());
    } else {
      NoteWhyNot(m_, mark, why);
      block.erase(block.begin() + static_cast<ptrdiff_t>(begin));
    }
  }

  // The turn whose statements end at `end`, before the waits among the last ones of them.
  void End(Block& block, size_t end, const StmtRef& mark) {
    while (end > 0 && IsWait(block[end - 1])) --end;
    const If* branch = end > 0 ? As<If>(block[end - 1]) : nullptr;
    if (branch && (EndsWithWait(branch->then_body) || EndsWithWait(branch->else_body))) {
      If copy = *branch;
      End(copy.then_body, copy.then_body.size(), mark);
      End(copy.else_body, copy.else_body.size(), mark);
      block[end - 1] = MakeStmt(std::move(copy), block[end - 1]->span, block[end - 1]->id);
    } else {
      // One lane arrives for its warp. Another one that still waited for this turn would miss its
      // phase, once the next turns are over.
      const StmtRef arrival[] = {MakeStmt(Barrier{Team::kWarp}), Arrival(mark)};
      block.insert(block.begin() + static_cast<ptrdiff_t>(end), std::begin(arrival),
                   std::end(arrival));
    }
  }
  static bool EndsWithWait(const Block& block) { return !block.empty() && IsWait(block.back()); }

  StmtRef Arrival(const StmtRef& mark) const {
    const ExprRef next = MakeSelect(IsGroup(launch_.groups - 1), MakeInt(0),
                                    MakeBinary(BinaryOp::kAdd, Group(), MakeInt(1)));
    const StmtRef arrive = MakeStmt(Mbarrier{Mbarrier::Op::kArrive, barriers_, next, nullptr});
    return MakeStmt(OnFirstThread{Team::kWarp, {arrive}}, mark->span, mark->id);
  }

  ExprRef Group() const { return MakeVar(launch_.group, ScalarType::kInt); }
  ExprRef IsGroup(int group) const { return MakeBinary(BinaryOp::kEq, Group(), MakeInt(group)); }
  // Of the phase that ends as this group's next turn begins.
  ExprRef Parity() {
    if (parity_ == kNoId) {
      parity_ = m_.AddVar("turn", ScalarType::kInt, VarRole::kMutable, launch_.span);
      m_.vars[parity_].dtype = DType::kU8;
    }
    return MakeVar(parity_, ScalarType::kInt);
  }
  StmtRef NextPhase() {
    return MakeStmt(Assign{parity_, MakeBinary(BinaryOp::kBitXor, Parity(), MakeInt(1))});
  }

  // As if they had never been made.
  Block WithoutMbarriers(const Block& block) const {
    Block out;
    for (const StmtRef& s : block) {
      const Alloc* alloc = As<Alloc>(s);
      const OnFirstThread* first = As<OnFirstThread>(s);
      const Mbarrier* made =
          first && !first->body.empty() ? As<Mbarrier>(first->body.front()) : nullptr;
      const bool of_turns =
          (alloc && alloc->buffer == barriers_) || (made && made->barriers == barriers_);
      if (!of_turns) out.push_back(s);
    }
    return out;
  }

  Module& m_;
  Launch& launch_;
  BufferId barriers_ = kNoId;
  VarId parity_ = kNoId;
};

}  // namespace

Status PlanTurns(Module& module, const Target& target) {
  for (Launch& launch : module.launches) Planner(module, target, launch).Run();
  return absl::OkStatus();
}

Status EndTurns(Module& module, const Target&) {
  for (Launch& launch : module.launches) Ender(module, launch).Run();
  return absl::OkStatus();
}

}  // namespace tl
