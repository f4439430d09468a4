#include "passes/partition_loops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/visit.h"
#include "passes/index_conditions.h"
#include "passes/notes.h"
#include "passes/varying.h"

namespace tl {
namespace {

using Choices = absl::flat_hash_map<const Stmt*, bool>;  // by If: which branch

// Branches take the place of the conditions that are known.
class Chooser : public StmtMapper {
 public:
  explicit Chooser(const Choices& choices) : choices_(choices) {}

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const auto known = choices_.find(s.get());
      if (known == choices_.end()) {
        out.push_back(MapStmt(s));
        continue;
      }
      const If& branch = *As<If>(s);
      const Block chosen = MapBlock(known->second ? branch.then_body : branch.else_body);
      out.insert(out.end(), chosen.begin(), chosen.end());
    }
    return out;
  }

 private:
  const Choices& choices_;
};

// One loop.
class Partition {
 public:
  Partition(Module& module, const Varying& varying, const StmtRef& stmt, const For& loop)
      : m_(module),
        stmt_(stmt),
        loop_(loop),
        begin_(NewLet("begin", loop.begin)),
        end_(NewLet("end", loop.end)),
        conditions_(module, varying, loop, begin_, end_) {}

  // The statements that stand in place of the loop.
  Block Run() {
    Choose();
    Note();
    if (chosen_.empty()) return {Piece(loop_.begin, loop_.end, {})};
    if (!from_ && !to_) return {Piece(loop_.begin, loop_.end, steady_)};
    const ExprRef from = from_ ? NewLet("from", from_->at) : begin_;
    ExprRef to = to_ ? to_->at : end_;
    if (from_ && to_) to = MakeBinary(BinaryOp::kMax, to, from);
    if (to_) to = NewLet("to", to);
    std::vector<StmtRef> pieces;
    if (from_) pieces.push_back(Copy(Piece(begin_, from, ChoicesBefore())));
    pieces.push_back(Piece(from, to, steady_));
    if (to_) pieces.push_back(Copy(Piece(to, end_, ChoicesBehind())));
    if (loop_.down) std::reverse(pieces.begin(), pieces.end());
    out_.insert(out_.end(), pieces.begin(), pieces.end());
    return std::move(out_);
  }

 private:
  // What is known of a condition in the steady iterations.
  struct Chosen {
    StmtRef stmt;
    bool value;
    IndexRange range;
  };

  // What does not change where it is read again needs no name.
  ExprRef NewLet(const char* name, ExprRef value) {
    const VarRef* ref = As<VarRef>(value);
    if (IntValue(value) || (ref && m_.var(ref->var).role != VarRole::kMutable)) return value;
    const VarId v = m_.AddVar(name, ScalarType::kInt, VarRole::kLet, stmt_->span);
    out_.push_back(MakeStmt(Let{v, std::move(value)}));
    return MakeVar(v, ScalarType::kInt);
  }

  // ---- Plan

  void Choose() {
    Visit(loop_.body, true, [&](const StmtRef& s, bool uniform) {
      if (!IsWritten(s)) return;
      std::string why;
      const auto chosen = BestOf(s, why);
      if (chosen) {
        Keep(*chosen);
      } else if (!why.empty() && uniform && why_not_.empty()) {
        why_not_ = absl::StrCat("the condition", At(As<If>(s)->cond->span), " ", why);
      }
    });
    Visit(loop_.body, true, [&](const StmtRef& s, bool) {
      std::string why;
      if (IsWritten(s)) return;
      const auto chosen = BestOf(s, why);
      if (chosen && MayJoin(chosen->range)) Keep(*chosen);
    });
  }

  // `uniform`: outside of loops over threads and registers.
  static void Visit(const Block& block, bool uniform,
                    absl::FunctionRef<void(const StmtRef&, bool)> visit) {
    for (const StmtRef& s : block) {
      if (As<If>(s)) visit(s, uniform);
      const bool inside = uniform && !As<ThreadFor>(s) && !As<SlotFor>(s);
      VisitBlocks(*s, [&](const Block& b) { Visit(b, inside, visit); });
    }
  }

  // Plans of pipelines make conditions in the loop's name.
  bool IsWritten(const StmtRef& s) const { return s->id != 0 && s->id != stmt_->id; }

  std::optional<Chosen> BestOf(const StmtRef& s, std::string& why) const {
    const ExprRef& cond = As<If>(s)->cond;
    const auto yes = conditions_.Known(cond, true, why);
    const auto no = conditions_.Known(cond, false, why);
    if (!yes && !no) return std::nullopt;
    const auto use = [&](bool value) { return Chosen{s, value, value ? *yes : *no}; };
    const bool most_yes = yes && yes->IsMost(), most_no = no && no->IsMost();
    if (most_yes && most_no) return use(yes->Outside() < no->Outside());
    if (most_yes || most_no) return use(most_yes);
    if (no && !no->IsFew()) return use(false);
    if (yes && !yes->IsFew()) return use(true);
    why = "is known in a few iterations only";
    return std::nullopt;
  }

  // At the cost of a few more iterations in loops that there are anyway.
  bool MayJoin(const IndexRange& range) const {
    return range.IsMost() && (!range.from || from_) && (!range.to || to_);
  }

  void Keep(const Chosen& chosen) {
    const IndexRange steady = Intersection({from_, to_}, chosen.range);
    from_ = steady.from;
    to_ = steady.to;
    steady_[chosen.stmt.get()] = chosen.value;
    chosen_.push_back(chosen);
  }

  // Where the steady iterations begin at the very place from which on a condition is known, it is
  // known in front of it too.
  Choices ChoicesBefore() const {
    return ChoicesWhere([&](const IndexRange& range, const IndexRange& other) {
      return IsAt(range.from, from_) && !other.from && IsAt(other.to, from_);
    });
  }
  Choices ChoicesBehind() const {
    return ChoicesWhere([&](const IndexRange& range, const IndexRange& other) {
      return IsAt(range.to, to_) && !other.to && IsAt(other.from, to_);
    });
  }
  Choices ChoicesWhere(
      absl::FunctionRef<bool(const IndexRange& range, const IndexRange& other)> test) const {
    Choices out;
    for (const Chosen& c : chosen_) {
      std::string why;
      const auto other = conditions_.Known(As<If>(c.stmt)->cond, !c.value, why);
      if (other && test(c.range, *other)) out[c.stmt.get()] = !c.value;
    }
    return out;
  }
  static bool IsAt(const std::optional<Cut>& cut, const std::optional<Cut>& other) {
    return cut && other && Equal(cut->at, other->at);
  }

  // ---- Apply

  StmtRef Piece(ExprRef begin, ExprRef end, const Choices& choices) const {
    For piece = loop_;
    piece.partition = false;
    piece.begin = std::move(begin);
    piece.end = std::move(end);
    piece.body = Chooser(choices).MapBlock(loop_.body);
    return MakeStmt(std::move(piece), stmt_->span, stmt_->id);
  }
  StmtRef Copy(const StmtRef& piece) { return CloneBlock(m_, {piece}, {}).front(); }

  void Note() {
    const std::string loop = absl::StrCat("loop", At(stmt_->span));
    if (chosen_.empty()) {
      m_.notes.push_back(absl::StrCat(
          loop, " is not partitioned: ",
          why_not_.empty() ? "no condition in it is one on its index alone" : why_not_));
      return;
    }
    std::vector<std::string> known;
    for (const Chosen& c : chosen_) {
      if (IsWritten(c.stmt)) known.push_back(FormatSpan(c.stmt->span));
    }
    const int pieces = 1 + (from_ ? 1 : 0) + (to_ ? 1 : 0);
    m_.notes.push_back(absl::StrCat(
        loop, pieces == 1 ? ": " : absl::StrCat(": ", pieces, " loops, the steady one "),
        "without the conditions at ", absl::StrJoin(known, ", ")));
  }

  Module& m_;
  const StmtRef stmt_;
  const For& loop_;
  Block out_;
  const ExprRef begin_, end_;
  const IndexConditions conditions_;
  std::optional<Cut> from_, to_;  // of the steady iterations
  std::vector<Chosen> chosen_;
  Choices steady_;
  std::string why_not_;
};

class Partitioner : public StmtMapper {
 public:
  Partitioner(Module& module, const Launch& launch) : m_(module), varying_(module, launch) {}

  // Loops in the loop first.
  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const StmtRef inner = MapStmt(s);
      const For* loop = As<For>(inner);
      if (!loop || !loop->partition) {
        out.push_back(inner);
        continue;
      }
      const Block pieces =
          producer_ ? Block{Whole(inner)} : Partition(m_, varying_, inner, *loop).Run();
      out.insert(out.end(), pieces.begin(), pieces.end());
    }
    return out;
  }

  // Producers wait for others most of the time: nothing is gained by telling them less.
  StmtRef MapStmt(const StmtRef& s) override {
    const bool outer = std::exchange(producer_, producer_ || As<OnProducer>(s));
    StmtRef out = StmtMapper::MapStmt(s);
    producer_ = outer;
    return out;
  }

 private:
  static StmtRef Whole(const StmtRef& s) {
    For loop = *As<For>(s);
    loop.partition = false;
    return MakeStmt(std::move(loop), s->span, s->id);
  }

  Module& m_;
  const Varying varying_;
  bool producer_ = false;
};

bool SaysPartition(const Launch& launch) {
  bool found = false;
  VisitStmts(launch.body, [&](const StmtRef& s) {
    const For* loop = As<For>(s);
    found = found || (loop && loop->partition);
  });
  return found;
}

}  // namespace

Status PartitionLoops(Module& module, const Target&) {
  for (Launch& launch : module.launches) {
    if (SaysPartition(launch)) launch.body = Partitioner(module, launch).MapBlock(launch.body);
  }
  return absl::OkStatus();
}

}  // namespace tl
