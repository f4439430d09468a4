// Where fences and waits of products by warpgroups and of boxes that leave come to stand, on
// sequences of statements written as words.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/cuda/targets.h"
#include "ir/module.h"
#include "passes/await_stores.h"
#include "passes/delay_waits.h"
#include "passes/fence_proxies.h"

namespace tl {
namespace {

using Op = WgmmaSync::Op;

// Tiles k and v lie in shared memory and are read in place, y and z are not; z has y's memory. s
// and o are sums in registers, p and x other registers.
class Words {
 public:
  Words() {
    for (const char* name : {"k", "v", "y", "z", "s", "o", "p", "x"}) {
      Buffer b;
      b.name = name;
      b.dtype = DType::kF16;
      b.extents = {64};
      const size_t tile = std::string_view("kvyz").find(*name);
      b.scope = tile != std::string_view::npos ? Scope::kShared : Scope::kLocal;
      if (b.scope == Scope::kShared)
        b.arena_offset = 128 * static_cast<int64_t>(std::min(tile, size_t{2}));
      b.in_place = *name == 'k' || *name == 'v';
      m_.AddBuffer(std::move(b));
    }
    m_.level = Level::kThread;
    m_.launches.emplace_back();
  }

  BufferId Id(char name) const {
    for (BufferId id = 0;; ++id) {
      if (m_.buffer(id).name[0] == name) return id;
    }
  }

  StmtRef Sync(Op op, char c = 0, int pending = 0) const {
    return MakeStmt(WgmmaSync{op, c == 0 ? kNoId : Id(c), pending});
  }
  // c += a * b, not waited for.
  Block Product(char c, char a, char b) const {
    Wgmma w{0, 8, 1};
    w.a.buffer = Id(a), w.a.offset = MakeInt(0);
    w.b.buffer = Id(b), w.b.offset = MakeInt(0);
    w.c = Id(c), w.c_offset = MakeInt(0), w.add = true;
    return {Sync(Op::kFence, c), MakeStmt(std::move(w)), Sync(Op::kCommit)};
  }
  Block Waited(char c, char a, char b) const {
    Block out = Product(c, a, b);
    out.push_back(Sync(Op::kWait, c));
    return out;
  }
  Block Write(char to) const {
    return {MakeStmt(Store{Id(to), {MakeInt(0)}, StoreOp::kSet, MakeFloat(0, ScalarType::kF32)})};
  }
  // to = from
  Block Move(char from, char to) const {
    return {MakeStmt(
        Store{Id(to), {MakeInt(0)}, StoreOp::kSet, MakeLoad(Id(from), DType::kF16, {MakeInt(0)})})};
  }
  // Leaves in a box.
  Block Send(char tile) const {
    return {MakeStmt(OnFirstThread{Team::kBlock,
                                   {MakeStmt(BulkStore{0, {}, Id(tile), MakeInt(0)}),
                                    MakeStmt(BulkSync{BulkSync::Op::kCommit})}})};
  }
  static Block Meet() { return {MakeStmt(Barrier{Team::kBlock})}; }
  Block When(Block then_body, Block else_body = {}) {
    const VarId v = m_.AddVar("b", ScalarType::kBool, VarRole::kLet);
    return {
        MakeStmt(If{MakeVar(v, ScalarType::kBool), std::move(then_body), std::move(else_body)})};
  }
  Block Loop(Block body) {
    const VarId v = m_.AddVar("i", ScalarType::kInt, VarRole::kLoop);
    return {MakeStmt(For{LoopKind::kSerial, v, MakeInt(0), MakeInt(4), false, 1, std::move(body)})};
  }

  std::string After(Status (*pass)(Module&, const Target&), const std::vector<Block>& parts) {
    Block& body = m_.launches[0].body;
    body.clear();
    for (const Block& part : parts) body.insert(body.end(), part.begin(), part.end());
    const Status status = pass(m_, *FindCudaTarget("sm_90a"));
    EXPECT_TRUE(status.ok()) << status;
    return Text(m_.launches[0].body);
  }

 private:
  std::string Text(const Block& block) const {
    std::vector<std::string> words;
    for (const StmtRef& s : block) words.push_back(Word(s));
    return absl::StrJoin(words, " ");
  }
  std::string Word(const StmtRef& s) const {
    if (const Wgmma* w = As<Wgmma>(s)) return m_.buffer(w->c).name + "+=";
    if (const Store* store = As<Store>(s)) return m_.buffer(store->buffer).name + "=";
    if (const For* loop = As<For>(s)) return absl::StrCat("loop{", Text(loop->body), "}");
    if (const If* branch = As<If>(s)) {
      return absl::StrCat("if{", Text(branch->then_body), "}{", Text(branch->else_body), "}");
    }
    if (As<Alloc>(s)) return "alloc";
    if (As<Barrier>(s)) return "barrier";
    if (As<ProxyFence>(s)) return "proxy";
    if (const OnFirstThread* first = As<OnFirstThread>(s)) return Text(first->body);
    if (const BulkStore* store = As<BulkStore>(s)) return m_.buffer(store->src).name + ">";
    if (const BulkSync* bulk = As<BulkSync>(s)) {
      static constexpr std::string_view kNames[] = {"sent", "await_read", "await_all"};
      return std::string(kNames[static_cast<size_t>(bulk->op)]);
    }
    const WgmmaSync* sync = As<WgmmaSync>(s);
    if (!sync) return "?";
    if (sync->op == Op::kFence) return "fence";
    if (sync->op == Op::kCommit) return "commit";
    return absl::StrCat("wait", sync->pending);
  }

  Module m_;
};

// ---- Waits

TEST(DelayWaits, UntilTheSumIsNeeded) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('s', 'k', 'v'), w.Write('x'), w.Move('s', 'x')}),
            "fence s+= commit x= wait0 x=");
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('s', 'k', 'v'), w.Write('x'), w.Write('s')}),
            "fence s+= commit x= wait0 s=");
}

TEST(DelayWaits, YoungerGroupsStayUnderWay) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('s', 'k', 'v'), w.Waited('o', 'p', 'v'), w.Move('s', 'x'),
                                 w.Move('o', 'x')}),
            "fence s+= commit fence o+= commit wait1 x= wait0 x=");
}

TEST(DelayWaits, NotPastABarrier) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('s', 'k', 'v'), w.Write('x'), w.Meet(), w.Write('x')}),
            "fence s+= commit x= wait0 barrier x=");
}

TEST(DelayWaits, NotPastWritesToWhatIsMultiplied) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('o', 'p', 'v'), w.Write('x'), w.Write('p')}),
            "fence o+= commit x= wait0 p=");
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('o', 'p', 'v'), w.Write('x'), w.Write('v')}),
            "fence o+= commit x= wait0 v=");
  // Reading it is no harm.
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('o', 'p', 'v'), w.Move('p', 'x'), w.Move('o', 'x')}),
            "fence o+= commit x= wait0 x=");
}

// What is waited for before a barrier is not between a fence and its product.
TEST(DelayWaits, FencesStandBehindBarriers) {
  Words w;
  Block second = w.Waited('o', 'p', 'v');
  second.insert(second.begin() + 1, w.Meet()[0]);
  EXPECT_EQ(w.After(DelayWaits, {w.Waited('s', 'k', 'v'), second}),
            "fence s+= commit wait0 barrier fence o+= commit wait0");
}

// A wait that ends a branch stands behind it, and knows what the branch multiplies.
TEST(DelayWaits, BehindABranch) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits, {w.When(w.Waited('o', 'p', 'v')), w.Write('x'), w.Move('o', 'x')}),
            "if{fence o+= commit}{} x= wait0 x=");
  EXPECT_EQ(w.After(DelayWaits, {w.When(w.Waited('o', 'p', 'v')), w.Write('x'), w.Write('p')}),
            "if{fence o+= commit}{} x= wait0 p=");
}

// Nobody behind a branch knows the sums that it makes.
TEST(DelayWaits, NotOutOfTheBranchThatMakesTheSum) {
  Words w;
  Block body{MakeStmt(Alloc{w.Id('o')})};
  const Block product = w.Waited('o', 'p', 'v');
  body.insert(body.end(), product.begin(), product.end());
  EXPECT_EQ(w.After(DelayWaits, {w.When(body), w.Write('x')}),
            "if{alloc fence o+= commit wait0}{} x=");
}

// Whether a younger group is under way is the branch's business.
TEST(DelayWaits, IntoABranchThatMultiplies) {
  Words w;
  EXPECT_EQ(w.After(DelayWaits,
                    {w.Waited('s', 'k', 'v'), w.When(w.Waited('o', 'p', 'v')), w.Move('s', 'x')}),
            "fence s+= commit if{fence o+= commit wait1}{wait0} x= wait0");
}

TEST(DelayWaits, LeavesWaitsForOlderGroups) {
  Words w;
  Block trailing = w.Product('s', 'k', 'v');
  trailing.push_back(w.Sync(Op::kWait, 's', 1));
  EXPECT_EQ(w.After(DelayWaits, {trailing, w.Write('x')}), "fence s+= commit wait1 x=");
}

// ---- Fences

TEST(FenceProxies, BetweenAWriteAndTheBarrierBeforeAProduct) {
  Words w;
  EXPECT_EQ(w.After(FenceProxies, {w.Write('k'), w.Meet(), w.Waited('s', 'k', 'v')}),
            "k= proxy barrier fence s+= commit wait0");
}

TEST(FenceProxies, OncePerWrite) {
  Words w;
  EXPECT_EQ(w.After(FenceProxies, {w.Write('k'), w.Meet(), w.Meet(), w.Waited('s', 'k', 'v')}),
            "k= proxy barrier barrier fence s+= commit wait0");
}

TEST(FenceProxies, NotForOtherTiles) {
  Words w;
  EXPECT_EQ(w.After(FenceProxies, {w.Write('y'), w.Meet(), w.Waited('s', 'k', 'v')}),
            "y= barrier fence s+= commit wait0");
  EXPECT_EQ(w.After(FenceProxies, {w.Move('k', 'x'), w.Meet(), w.Waited('s', 'k', 'v')}),
            "x= barrier fence s+= commit wait0");
}

TEST(FenceProxies, NotWhereNoProductFollows) {
  Words w;
  EXPECT_EQ(w.After(FenceProxies, {w.Waited('s', 'k', 'v'), w.Write('k'), w.Meet(), w.Write('y')}),
            "fence s+= commit wait0 k= barrier y=");
}

// What an iteration writes meets the barriers and the products of the next one.
TEST(FenceProxies, AroundALoop) {
  Words w;
  Block body = w.Meet();
  for (const Block& part : {w.Waited('s', 'k', 'v'), w.Write('k')}) {
    body.insert(body.end(), part.begin(), part.end());
  }
  EXPECT_EQ(w.After(FenceProxies, {w.Loop(body), w.Meet()}),
            "loop{proxy barrier fence s+= commit wait0 k=} barrier");
}

TEST(FenceProxies, BetweenAWriteAndTheBarrierBeforeABoxLeaves) {
  Words w;
  EXPECT_EQ(w.After(FenceProxies, {w.Write('k'), w.Write('y'), w.Meet(), w.Send('y')}),
            "k= y= proxy barrier y> sent");
  EXPECT_EQ(w.After(FenceProxies, {w.Write('k'), w.Meet(), w.Send('v')}), "k= barrier v> sent");
}

// Either branch may have written.
TEST(FenceProxies, BehindBranches) {
  Words w;
  for (const auto& [then_body, else_body, text] :
       {std::tuple(w.Write('k'), w.Write('y'), "if{k=}{y=}"),
        std::tuple(w.Write('y'), w.Write('v'), "if{y=}{v=}")}) {
    EXPECT_EQ(
        w.After(FenceProxies, {w.When(then_body, else_body), w.Meet(), w.Waited('s', 'k', 'v')}),
        absl::StrCat(text, " proxy barrier fence s+= commit wait0"));
  }
}

// ---- Waits for boxes

TEST(AwaitStores, AtTheLastBarrierBeforeTheNextWrite) {
  Words w;
  EXPECT_EQ(w.After(AwaitStores, {w.Send('y'), w.Meet(), w.Write('k'), w.Meet(), w.Write('y')}),
            "y> sent barrier k= await_read barrier y= await_all");
  // Another tile in the same memory.
  EXPECT_EQ(w.After(AwaitStores, {w.Send('y'), w.Meet(), w.Write('z'), w.Meet(), w.Write('y')}),
            "y> sent await_read barrier z= barrier y= await_all");
}

TEST(AwaitStores, OnlyAtTheEndWhereNothingIsWritten) {
  Words w;
  EXPECT_EQ(w.After(AwaitStores, {w.Send('y'), w.Meet(), w.Write('k'), w.Meet()}),
            "y> sent barrier k= barrier await_all");
  EXPECT_EQ(w.After(AwaitStores, {w.Write('y'), w.Meet(), w.Write('y')}), "y= barrier y=");
}

// What an iteration sends is waited for by the next one, where it writes.
TEST(AwaitStores, AroundALoop) {
  Words w;
  Block body;
  for (const Block& part : {w.Write('k'), w.Meet(), w.Write('y'), w.Meet(), w.Send('y')}) {
    body.insert(body.end(), part.begin(), part.end());
  }
  EXPECT_EQ(w.After(AwaitStores, {w.Loop(body)}),
            "loop{k= await_read barrier y= barrier y> sent} await_all");
  // Where it begins with a write, the barrier stands at its end.
  body.clear();
  for (const Block& part : {w.Write('y'), w.Meet(), w.Send('y'), w.Meet()}) {
    body.insert(body.end(), part.begin(), part.end());
  }
  EXPECT_EQ(w.After(AwaitStores, {w.Loop(body)}),
            "loop{y= barrier y> sent await_read barrier} await_all");
}

TEST(AwaitStores, AroundBranches) {
  Words w;
  EXPECT_EQ(w.After(AwaitStores, {w.When(w.Send('y')), w.Meet(), w.When({}, w.Write('y'))}),
            "if{y> sent}{} await_read barrier if{}{y=} await_all");
  // A barrier in one branch alone is none for the other.
  Block meets = w.Meet();
  meets.push_back(w.Write('y')[0]);
  EXPECT_EQ(w.After(AwaitStores, {w.Send('y'), w.Meet(), w.When(meets, w.Write('y'))}),
            "y> sent await_read barrier if{barrier y=}{y=} await_all");
  EXPECT_EQ(w.After(AwaitStores, {w.Send('y'), w.Meet(), w.When(meets, meets)}),
            "y> sent barrier if{await_read barrier y=}{await_read barrier y=} await_all");
}

}  // namespace
}  // namespace tl
