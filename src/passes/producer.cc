#include "passes/producer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/own_tiles.h"

namespace tl {
namespace {

class Slicer {
 public:
  Slicer(const Module& module, const Launch& launch, const Block& body, const LaunchFacts& facts,
         const ProducerLoops& loops)
      : m_(module), launch_(launch), body_(body), facts_(facts), loops_(loops) {}

  // Values are needed because of others: until there are no more.
  Block Run() {
    Block slice = Slice(body_);
    for (size_t before = needed_.size() + 1; before != needed_.size();) {
      before = needed_.size();
      NoteNeeded(slice);
      slice = Slice(body_);
    }
    return slice;
  }

  std::string WhyNot(const Block& slice) const {
    std::string reason;
    VisitAllExprs(slice, [&](const ExprRef& e) {
      const Load* load = As<Load>(e);
      if (!load || !reason.empty()) return;
      const std::string& name = m_.buffer(load->buffer).name;
      if (m_.buffer(load->buffer).scope != Scope::kGlobal) {
        reason = absl::StrCat("what it copies depends on elements of ", name);
      } else if (facts_.IsWritten(load->buffer)) {
        reason = absl::StrCat("what it copies depends on ", name, ", which the launch writes");
      }
    });
    return reason;
  }

 private:
  Block Slice(const Block& block) const {
    Block out;
    for (const StmtRef& s : block) {
      if (const For* loop = As<For>(s)) {
        SliceLoop(s, *loop, out);
      } else if (const OnGroup* on = As<OnGroup>(s)) {
        if (launch_.owns != kNoId) Append(Slice(on->body), out);
      } else if (const If* branch = As<If>(s); branch && IsOfOwner(launch_, *branch)) {
        Append(Slice(branch->then_body), out);
      } else if (branch) {
        If copy{branch->cond, Slice(branch->then_body), Slice(branch->else_body)};
        if (copy.then_body.empty() && copy.else_body.empty()) continue;
        out.push_back(MakeStmt(std::move(copy), s->span, s->id));
      } else if (Needs(s)) {
        out.push_back(s);
      }
    }
    return out;
  }

  static void Append(const Block& more, Block& out) {
    out.insert(out.end(), more.begin(), more.end());
  }

  void SliceLoop(const StmtRef& s, const For& loop, Block& out) const {
    Block inside = Slice(loop.body);
    const auto it = loops_.find(loop.var);
    if (it == loops_.end()) {
      if (inside.empty()) return;
      For copy = loop;
      copy.body = std::move(inside);
      out.push_back(MakeStmt(std::move(copy), s->span, s->id));
      return;
    }
    out.insert(out.end(), it->second.begin(), it->second.end());
    For copy = *As<For>(out.back());
    copy.body.insert(copy.body.end(), inside.begin(), inside.end());
    out.back() = MakeStmt(std::move(copy), s->span, s->id);
  }

  bool Needs(const StmtRef& s) const {
    if (const Let* let = As<Let>(s)) return needed_.contains(let->var);
    const Assign* assign = As<Assign>(s);
    return assign && needed_.contains(assign->var);
  }

  void NoteNeeded(const Block& slice) {
    VisitAllExprs(slice, [&](const ExprRef& e) {
      const VarRef* ref = As<VarRef>(e);
      if (!ref) return;
      needed_.insert(ref->var);
      // Axes of persistent launches are decoded where the tile's number is named.
      const auto is = [&](const GridAxis& axis) { return axis.var == ref->var; };
      if (absl::c_any_of(launch_.axes, is)) needed_.insert(launch_.block);
    });
  }

  const Module& m_;
  const Launch& launch_;
  const Block& body_;
  const LaunchFacts& facts_;
  const ProducerLoops& loops_;
  absl::flat_hash_set<VarId> needed_;
};

}  // namespace

Block SliceForProducer(const Module& module, const Launch& launch, const Block& body,
                       const LaunchFacts& facts, const ProducerLoops& loops, std::string& reason) {
  Slicer slicer(module, launch, body, facts, loops);
  Block slice = slicer.Run();
  reason = slicer.WhyNot(slice);
  return reason.empty() ? slice : Block{};
}

// Registers are handed over four warps by four, and shared out to warps in four parts of the
// multiprocessor: fewer producers would leave the others no more of them.
void AddProducers(const Target& target, Launch& launch) {
  constexpr int kWarps = 4, kStep = 8;
  // Room for the addresses of the copies, and for those element by element.
  constexpr int kRegistersOfProducer = 40;
  const int others = (launch.threads > 0 ? launch.threads : target.default_threads) * launch.groups;
  launch.producers = kWarps * target.warp_size;
  const int threads = others + launch.producers;
  const int each = target.registers / launch.blocks / threads / kStep * kStep;
  if (!target.moves_registers || each >= target.most_registers) return;
  const int rest = each * threads - kRegistersOfProducer * launch.producers;
  launch.producer_registers = kRegistersOfProducer;
  launch.registers = std::min(rest / others, target.most_registers) / kStep * kStep;
}

}  // namespace tl
