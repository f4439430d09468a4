#include "passes/simplify.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"

namespace tl {
namespace {

// Forwards: literals take the place of their names, known conditions choose their branch.
class Folder : public StmtMapper {
 public:
  explicit Folder(const Module& module) : m_(module) {}

  ExprRef MapExpr(const ExprRef& e) override { return Substitute(m_, e, literals_); }

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) Fold(MapStmt(s), out);
    return out;
  }

 private:
  void Fold(StmtRef s, Block& out) {
    if (const Let* let = As<Let>(s)) {
      const ExprRef& v = let->value;
      if (As<IntLit>(v) || As<FloatLit>(v) || As<BoolLit>(v)) {
        literals_.vars[let->var] = v;
        return;
      }
    }
    const If* branch = As<If>(s);
    const BoolLit* known = branch ? As<BoolLit>(branch->cond) : nullptr;
    if (!known) {
      out.push_back(std::move(s));
      return;
    }
    const Block& chosen = known->value ? branch->then_body : branch->else_body;
    out.insert(out.end(), chosen.begin(), chosen.end());
  }

  const Module& m_;
  Substitution literals_;
};

// Backwards: a definition is met after all its uses.
class DeadCode {
 public:
  Block Run(const Block& block) {
    Block out;
    for (auto it = block.rbegin(); it != block.rend(); ++it) {
      StmtRef kept = Keep(*it);
      if (kept) out.push_back(std::move(kept));
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

 private:
  // Null: drop.
  StmtRef Keep(const StmtRef& s) {
    if (const Let* let = As<Let>(s); let && !used_.contains(let->var)) return nullptr;
    const auto note = [&](const ExprRef& e) {
      if (const VarRef* ref = As<VarRef>(e)) used_.insert(ref->var);
    };
    StmtRef out = s;
    if (const For* loop = As<For>(s)) {
      For copy = *loop;
      copy.body = Run(loop->body);
      if (copy.body.empty() || NoTrip(copy)) return nullptr;
      out = MakeStmt(std::move(copy), s->span, s->id);
    } else if (const If* branch = As<If>(s)) {
      If copy{branch->cond, Run(branch->then_body), Run(branch->else_body)};
      if (copy.then_body.empty() && copy.else_body.empty()) return nullptr;
      out = MakeStmt(std::move(copy), s->span, s->id);
    } else if (const ThreadFor* loop = As<ThreadFor>(s)) {
      ThreadFor copy = *loop;
      copy.body = Run(loop->body);
      if (copy.body.empty()) return nullptr;
      out = MakeStmt(std::move(copy), s->span, s->id);
    } else if (const SlotFor* loop = As<SlotFor>(s)) {
      SlotFor copy = *loop;
      copy.body = Run(loop->body);
      if (copy.body.empty()) return nullptr;
      out = MakeStmt(std::move(copy), s->span, s->id);
    } else if (const OnProducer* producer = As<OnProducer>(s)) {
      out = MakeStmt(OnProducer{Run(producer->body)}, s->span, s->id);
    } else if (const OnFirstThread* first = As<OnFirstThread>(s)) {
      out = MakeStmt(OnFirstThread{first->team, Run(first->body)}, s->span, s->id);
    } else {
      // Bodies of other statements stay whole.
      VisitBlocks(*s, [&](const Block& b) { VisitAllExprs(b, note); });
    }
    VisitStmtExprs(*out, [&](const ExprRef& e) { VisitExpr(e, note); });
    return out;
  }

  static bool NoTrip(const For& loop) {
    const int64_t* begin = IntValue(loop.begin);
    const int64_t* end = IntValue(loop.end);
    return begin && end && *begin >= *end;
  }

  absl::flat_hash_set<VarId> used_;
};

}  // namespace

Status Simplify(Module& module, const Target&) {
  for (Launch& launch : module.launches) {
    launch.body = DeadCode().Run(Folder(module).MapBlock(launch.body));
  }
  return absl::OkStatus();
}

}  // namespace tl
