// The check of plans of pipelined loops: it accepts what is made and what runs, and finds faults.
#include <algorithm>
#include <ctime>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/pipeline_plan.h"

namespace tl {
namespace {

using ::testing::HasSubstr;

LoopPlan PlanOf(Transport transport, int depth, int trailing = 0, bool again = true,
                bool producer = false, int blocks = 1) {
  return MakeLoopPlan({.tiles = {0},
                       .depth = depth,
                       .transport = transport,
                       .trailing = trailing,
                       .again = again,
                       .blocks = blocks},
                      producer);
}
constexpr Transport kTransports[] = {Transport::kAsyncCopy, Transport::kRegisters,
                                     Transport::kBoxes};

using Steps = std::vector<Step>;
Steps& Body(LoopPlan& p) { return p.agents.back().body; }
Steps& Prologue(LoopPlan& p) { return p.agents.back().prologue; }
Steps& Epilogue(LoopPlan& p) { return p.agents.back().epilogue; }
// Of who fills.
Steps& FillerBody(LoopPlan& p) { return p.agents.front().body; }

bool Erase(Steps& steps, StepKind kind) {
  const auto it =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.kind == kind; });
  if (it == steps.end()) return false;
  steps.erase(it);
  return true;
}
bool Change(Steps& steps, StepKind kind, const std::function<void(Step&)>& change) {
  const auto it =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.kind == kind; });
  if (it == steps.end()) return false;
  change(*it);
  return true;
}
// The step comes right behind another one.
bool Move(Steps& steps, StepKind kind, StepKind behind) {
  const auto is = [&](StepKind k) { return [k](const Step& s) { return s.kind == k; }; };
  const auto from = std::find_if(steps.begin(), steps.end(), is(kind));
  if (from == steps.end()) return false;
  const Step step = *from;
  steps.erase(from);
  const auto to = std::find_if(steps.begin(), steps.end(), is(behind));
  if (to == steps.end()) return false;
  steps.insert(to + 1, step);
  return true;
}

// "; 2 slots: acquire 0, issue 0 | …".
std::string Text(const LoopPlan& plan) {
  static constexpr std::string_view kNames[] = {"issue",   "commit",  "wait",      "await",
                                                "acquire", "release", "fetch",     "put",
                                                "barrier", "use",     "next fill", "next use"};
  std::string text = absl::StrCat("; ", plan.rings[0].depth, " slots");
  for (const Agent& agent : plan.agents) {
    for (const Steps* steps : {&agent.prologue, &agent.body, &agent.epilogue}) {
      absl::StrAppend(&text, steps == &agent.prologue ? ": " : " | ");
      for (const Step& s : *steps) {
        absl::StrAppend(&text, kNames[static_cast<size_t>(s.kind)], " ", s.iteration, ", ");
      }
    }
  }
  return text;
}

TEST(VerifyPlan, AcceptsWhatIsMade) {
  for (Transport t : kTransports) {
    for (int depth = 2; depth <= 16; ++depth) {
      for (bool again : {false, true}) {
        for (bool producer : {false, t == Transport::kBoxes}) {
          const LoopPlan plan = PlanOf(t, depth, 0, again, producer);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << Name(t) << Text(plan) << ": " << s;
        }
      }
    }
  }
}

// Blocks that fill each other's slots.
TEST(VerifyPlan, AcceptsSlotsOfClusters) {
  for (int blocks : {2, 3, 4, 8}) {
    for (int depth = 2; depth <= (blocks > 2 ? 3 : 6); ++depth) {
      for (bool again : {false, true}) {
        for (int trailing = 0; trailing <= (depth < 3 ? 0 : 1); ++trailing) {
          const LoopPlan plan = PlanOf(Transport::kBoxes, depth, trailing, again, true, blocks);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << blocks << " blocks" << Text(plan) << ": " << s;
        }
      }
    }
  }
  // Who fills for others fills nothing else, and by boxes.
  for (Transport t : kTransports) {
    EXPECT_EQ(VerifyPlan(PlanOf(t, 2, 0, true, false, 2)).code(), absl::StatusCode::kInternal);
  }
}

// A use that reads its slot for one iteration longer leaves one slot fewer to fill.
TEST(VerifyPlan, UsesThatTrailTakeASlot) {
  for (Transport t : {Transport::kAsyncCopy, Transport::kBoxes}) {
    for (int depth = 3; depth <= 16; ++depth) {
      for (bool again : {false, true}) {
        for (bool producer : {false, t == Transport::kBoxes}) {
          const LoopPlan plan = PlanOf(t, depth, 1, again, producer);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << Name(t) << Text(plan) << ": " << s;
        }
      }
      // The same steps with a use that nobody told the plan about.
      LoopPlan plan = PlanOf(t, depth);
      plan.rings[0].trailing = 1;
      EXPECT_EQ(VerifyPlan(plan).code(), absl::StatusCode::kInternal) << Name(t) << " " << depth;
    }
    EXPECT_EQ(VerifyPlan(PlanOf(t, 2, 1)).code(), absl::StatusCode::kInternal) << Name(t);
  }
}

TEST(VerifyPlan, FindsPlantedFaults) {
  using K = StepKind;
  struct Fault {
    std::string_view name;
    std::function<bool(LoopPlan&)> plant;  // false: not in this plan
  };
  const Fault faults[] = {
      {"waits for one group less",
       [](LoopPlan& p) { return Change(Body(p), K::kWait, [](Step& s) { ++s.pending; }); }},
      {"no wait",
       [](LoopPlan& p) { return Erase(Body(p), K::kWait) || Erase(Body(p), K::kAwait); }},
      {"no barrier", [](LoopPlan& p) { return Erase(Body(p), K::kBarrier); }},
      {"barrier before the wait", [](LoopPlan& p) { return Move(Body(p), K::kWait, K::kBarrier); }},
      {"copies before the barrier",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kIssue); }},
      {"barrier behind the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kUse); }},
      {"no commit", [](LoopPlan& p) { return Erase(Body(p), K::kCommit); }},
      {"no commit in the prologue", [](LoopPlan& p) { return Erase(Prologue(p), K::kCommit); }},
      {"commit before the copies",
       [](LoopPlan& p) { return Move(Body(p), K::kIssue, K::kCommit); }},
      {"a slot too far",
       [](LoopPlan& p) {
         if (p.agents.size() > 1) return false;
         Prologue(p).push_back({.kind = K::kNextFill});
         return true;
       }},
      {"slot not stepped", [](LoopPlan& p) { return Erase(FillerBody(p), K::kNextFill); }},
      {"slot of the computation not stepped",
       [](LoopPlan& p) { return Erase(Body(p), K::kNextUse); }},
      {"slot stepped before the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kUse, K::kNextUse); }},
      {"depth too small",
       [](LoopPlan& p) { return p.agents.size() == 1 && --p.rings[0].depth > 0; }},
      {"copies one iteration too far ahead",
       [](LoopPlan& p) {
         return Change(FillerBody(p), K::kIssue, [](Step& s) { ++s.iteration; });
       }},
      {"copies too late",
       [](LoopPlan& p) {
         return Change(FillerBody(p), K::kIssue, [](Step& s) { --s.iteration; });
       }},
      {"a copy of the prologue missing",
       [](LoopPlan& p) { return Erase(Prologue(p), K::kIssue) || Erase(Prologue(p), K::kPut); }},
      {"registers stored before the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kPut); }},
      {"registers loaded too late", [](LoopPlan& p) { return Move(Body(p), K::kFetch, K::kPut); }},
      {"no computation", [](LoopPlan& p) { return Erase(Body(p), K::kUse); }},
      {"slots are filled that may not be free",
       [](LoopPlan& p) { return Erase(FillerBody(p), K::kAcquire); }},
      {"those of an earlier run, too", [](LoopPlan& p) { return Erase(Prologue(p), K::kAcquire); }},
      {"copies before their slot is free",
       [](LoopPlan& p) { return Move(FillerBody(p), K::kAcquire, K::kIssue); }},
      {"slots are not given back", [](LoopPlan& p) { return Erase(Body(p), K::kRelease); }},
      {"nor behind the loop", [](LoopPlan& p) { return Erase(Epilogue(p), K::kRelease); }},
      {"slots are given back before the computation",
       [](LoopPlan& p) { return p.rings[0].trailing == 0 && Move(Body(p), K::kUse, K::kRelease); }},
      {"slots are given back while they are read",
       [](LoopPlan& p) {
         return p.rings[0].trailing > 0 &&
                Change(Body(p), K::kRelease, [](Step& s) { ++s.iteration; });
       }},
      {"slots are given back twice",
       [](LoopPlan& p) {
         const bool boxes = p.rings[0].transport == Transport::kBoxes;
         if (boxes) Body(p).insert(Body(p).end() - 1, *(Body(p).end() - 2));
         return boxes;
       }},
  };
  for (Transport t : kTransports) {
    for (int depth = 2; depth <= 5; ++depth) {
      for (int trailing : {0, 1}) {
        if (trailing > 0 && (t == Transport::kRegisters || depth < 3)) continue;
        for (const Fault& fault : faults) {
          for (int blocks : {0, 1, 2}) {  // 0: all threads fill
            if (blocks > 0 && t != Transport::kBoxes) continue;
            LoopPlan plan = PlanOf(t, depth, trailing, true, blocks > 0, std::max(blocks, 1));
            if (!fault.plant(plan)) continue;
            const Status s = VerifyPlan(plan);
            EXPECT_EQ(s.code(), absl::StatusCode::kInternal)
                << fault.name << ", " << Name(t) << ", trailing " << trailing << ", " << blocks
                << " blocks" << Text(plan);
          }
        }
      }
    }
  }
}

// Threads that run a plan's steps in a random order, moves that land at random moments: the oracle
// for random changes to plans.
class Threads {
 public:
  Threads(const LoopPlan& plan, int trips, std::mt19937& rng)
      : plan_(plan), trips_(trips), rng_(rng), slots_(plan.rings[0].depth) {}

  // Does everything go well?
  bool Run() {
    for (int pass = 0; pass < 2 && ok_; ++pass) {
      first_ = pass * trips_;
      Flatten();
      for (Thread& t : threads_) t.at = 0, t.fill = t.use = 0;
      while (ok_ && Step()) {
      }
      for (const Thread& t : threads_) ok_ = ok_ && t.at == steps_.size();
      if (ok_) Land(1.0);  // of what is under way: after the loop it may hit anything
      for (const Thread& t : threads_) ok_ = ok_ && t.flights.empty();
    }
    return ok_;
  }

 private:
  static constexpr int kThreads = 2;
  struct Slot {
    int part[kThreads];  // iteration whose data each thread's part holds
    Slot() { std::fill(std::begin(part), std::end(part), -1); }
  };
  struct Flight {
    int slot, iteration, group;
    bool landed = false;
  };
  struct Thread {
    size_t at = 0;
    int fill = 0, use = 0, fetched = -1, groups = 0;
    std::vector<Flight> flights;
  };
  struct Instance {
    tl::Step step;
    int iteration, now;
  };

  void Flatten() {
    steps_.clear();
    for (const tl::Step& s : plan_.agents[0].prologue) steps_.push_back({s, s.iteration, -1});
    for (int now = 0; now < trips_; ++now) {
      for (const tl::Step& s : plan_.agents[0].body) steps_.push_back({s, now + s.iteration, now});
    }
  }

  // One thread goes one step; false: none can.
  bool Step() {
    Land(0.2);
    std::vector<int> ready;
    int at_barrier = 0;
    for (int i = 0; i < kThreads; ++i) {
      const Thread& t = threads_[i];
      if (t.at == steps_.size()) continue;
      steps_[t.at].step.kind == StepKind::kBarrier ? void(++at_barrier) : ready.push_back(i);
    }
    if (ready.empty() && at_barrier == 0) return false;
    if (ready.empty()) {
      for (Thread& t : threads_) ++t.at;
      return true;
    }
    const int i = ready[rng_() % ready.size()];
    Do(i, threads_[i]);
    ++threads_[i].at;
    return true;
  }

  void Do(int i, Thread& t) {
    const Instance& x = steps_[t.at];
    const int depth = static_cast<int>(slots_.size());
    switch (x.step.kind) {
      case StepKind::kIssue:
        if (x.iteration < trips_) t.flights.push_back({t.fill, first_ + x.iteration, t.groups});
        return;
      case StepKind::kCommit:
        ++t.groups;
        return;
      case StepKind::kWait:
        for (Flight& f : t.flights) {
          if (f.group < t.groups - x.step.pending) Land(i, f);
        }
        std::erase_if(t.flights,
                      [&](const Flight& f) { return f.group < t.groups - x.step.pending; });
        return;
      case StepKind::kFetch:
        if (x.iteration < trips_) t.fetched = first_ + x.iteration;
        return;
      case StepKind::kPut:
        if (x.iteration < trips_) slots_[t.fill].part[i] = t.fetched;
        return;
      case StepKind::kUse:
        for (int part : slots_[t.use].part) ok_ = ok_ && part == first_ + x.now;
        return;
      case StepKind::kNextFill:
        t.fill = (t.fill + 1) % depth;
        return;
      case StepKind::kNextUse:
        t.use = (t.use + 1) % depth;
        return;
      default:
        return;
    }
  }

  void Land(int i, Flight& f) {
    if (!f.landed) slots_[f.slot].part[i] = f.iteration;
    f.landed = true;
  }
  void Land(double chance) {
    for (int i = 0; i < kThreads; ++i) {
      for (Flight& f : threads_[i].flights) {
        if (std::bernoulli_distribution(chance)(rng_)) Land(i, f);
      }
    }
  }

  const LoopPlan& plan_;
  const int trips_;
  std::mt19937& rng_;
  int first_ = 0;
  std::vector<Slot> slots_;
  Thread threads_[kThreads];
  std::vector<Instance> steps_;
  bool ok_ = true;
};

// The same for plans with mbarriers: boxes land at random moments.
class HandingThreads {
 public:
  HandingThreads(const LoopPlan& plan, int trips, std::mt19937& rng)
      : ring_(plan.rings[0]), trips_(trips), rng_(rng), slots_(ring_.depth * ring_.blocks) {
    for (int block = 0; block < ring_.blocks; ++block) {
      for (const Agent& agent : plan.agents) AddThreads(agent, block);
    }
    for (Slot& slot : slots_) slot.free.missing = users_;
    for (Slot& slot : slots_) slot.filled.missing = ring_.blocks;
  }
  void AddThreads(const Agent& agent, int block) {
    // Of a producer's threads one waits for slots.
    for (int i = 0; i < (Uses(agent) ? 2 : 1); ++i) {
      Thread& t = threads_.emplace_back();
      t.block = block;
      t.fills = i == 0;
      for (int pass = 0; pass < (ring_.again ? 2 : 1); ++pass) {
        AddPass(agent, pass * trips_, t.todo);
      }
      users_ += Uses(agent);
    }
  }

  bool Run() {
    while (ok_ && Step()) {
    }
    for (const Thread& t : threads_) ok_ = ok_ && t.next == t.todo.size();
    return ok_ && flights_.empty();
  }

 private:
  struct Mbarrier {
    int phase = 0, missing = 1;
    void Arrive(int arrivals) {
      if (--missing > 0) return;
      ++phase;
      missing = arrivals;
    }
  };
  struct Slot {
    int holds = -1;
    Mbarrier filled, free;
  };
  struct Position {
    int slot = 0, parity = 0;
    void Next(int depth) {
      parity ^= slot + 1 == depth;
      slot = (slot + 1) % depth;
    }
  };
  struct Instance {
    tl::Step step;
    int iteration;
    bool exists, last;  // the loop's last step
  };
  struct Reading {
    int slot, iteration, until;  // computation of iteration `until`
  };
  struct Thread {
    int block = 0;
    bool fills = false;
    std::vector<Instance> todo;
    size_t next = 0;
    Position fill, use;
    std::vector<Reading> reading;
  };
  struct Flight {
    int block, slot, iteration;
  };

  Slot& SlotOf(int block, int slot) { return slots_[block * ring_.depth + slot]; }
  static bool Uses(const Agent& agent) {
    return std::any_of(agent.body.begin(), agent.body.end(),
                       [](const tl::Step& s) { return s.kind == StepKind::kUse; });
  }
  void AddPass(const Agent& agent, int first, std::vector<Instance>& out) const {
    const auto add = [&](const tl::Step& s, int i) {
      out.push_back({s, first + i, i >= 0 && i < trips_, false});
    };
    for (const tl::Step& s : agent.prologue) add(s, s.iteration);
    for (int now = 0; now < trips_; ++now) {
      for (const tl::Step& s : agent.body) add(s, now + s.iteration);
    }
    if (trips_ > 0) out.back().last = true;
    for (const tl::Step& s : agent.epilogue) add(s, trips_ + s.iteration);
  }

  bool Step() {
    if (!flights_.empty() && rng_() % 4 == 0) Land();
    const size_t first = rng_() % threads_.size();
    for (size_t i = 0; i < threads_.size(); ++i) {
      Thread& t = threads_[(first + i) % threads_.size()];
      if (t.next == t.todo.size() || !Do(t, t.todo[t.next])) continue;
      if (t.todo[t.next].last) EndReading(t, [](const Reading&) { return true; });
      ++t.next;
      return true;
    }
    if (flights_.empty()) return false;
    Land();
    return true;
  }

  bool Do(Thread& t, const Instance& x) {
    switch (x.step.kind) {
      case StepKind::kAcquire:
        return !x.exists || SlotOf(t.block, t.fill.slot).free.phase % 2 != (t.fill.parity ^ 1);
      case StepKind::kIssue:
        for (int block = 0; x.exists && t.fills && block < ring_.blocks; ++block) {
          flights_.push_back({block, t.fill.slot, x.iteration});
        }
        return true;
      case StepKind::kNextFill:
        if (x.exists) t.fill.Next(ring_.depth);
        return true;
      case StepKind::kAwait:
        return SlotOf(t.block, t.use.slot).filled.phase % 2 != t.use.parity;
      case StepKind::kUse:
        ok_ = ok_ && SlotOf(t.block, t.use.slot).holds == x.iteration;
        t.reading.push_back({t.use.slot, x.iteration, x.iteration + ring_.trailing});
        EndReading(t, [&](const Reading& r) { return r.until <= x.iteration; });
        return true;
      case StepKind::kRelease:
        if (x.exists) {
          const int slot = (t.use.slot + x.step.iteration + 8 * ring_.depth) % ring_.depth;
          for (int block = 0; block < ring_.blocks; ++block) {
            SlotOf(block, slot).free.Arrive(users_);
          }
        }
        return true;
      case StepKind::kNextUse:
        t.use.Next(ring_.depth);
        return true;
      default:
        ok_ = false;
        return true;
    }
  }

  template <typename F>
  void EndReading(Thread& t, F ends) {
    for (const Reading& r : t.reading) {
      if (ends(r)) ok_ = ok_ && SlotOf(t.block, r.slot).holds == r.iteration;
    }
    std::erase_if(t.reading, ends);
  }
  // A box may destroy what its slot holds long before it is all there.
  void Land() {
    const size_t i = rng_() % flights_.size();
    Slot& slot = SlotOf(flights_[i].block, flights_[i].slot);
    slot.holds = flights_[i].iteration;
    slot.filled.Arrive(ring_.blocks);
    flights_.erase(flights_.begin() + static_cast<ptrdiff_t>(i));
  }

  const Ring& ring_;
  const int trips_;
  std::mt19937& rng_;
  int users_ = 0;
  std::vector<Slot> slots_;
  std::vector<Thread> threads_;
  std::vector<Flight> flights_;
  bool ok_ = true;
};

bool Runs(const LoopPlan& plan, int trips, std::mt19937& rng) {
  return plan.rings[0].transport == Transport::kBoxes ? HandingThreads(plan, trips, rng).Run()
                                                      : Threads(plan, trips, rng).Run();
}

// One random change; most are faults.
void Mutate(LoopPlan& plan, std::mt19937& rng) {
  Steps& steps = rng() % 3 == 0 ? Prologue(plan) : Body(plan);
  const auto pick = [&] { return steps.begin() + rng() % steps.size(); };
  switch (rng() % 6) {
    case 0:
      if (!steps.empty()) steps.erase(pick());
      return;
    case 1:
      if (!steps.empty()) steps.insert(pick(), *pick());
      return;
    case 2:
      if (!steps.empty()) std::iter_swap(pick(), pick());
      return;
    case 3:
      if (!steps.empty()) pick()->iteration += rng() % 2 ? 1 : -1;
      return;
    case 4:
      for (Step& s : Body(plan)) s.pending = std::max(0, s.pending + (rng() % 2 ? 1 : -1));
      return;
    case 5:
      plan.rings[0].depth = std::max(1, plan.rings[0].depth + (rng() % 2 ? 1 : -1));
      return;
  }
}

TEST(VerifyPlan, WhatItAcceptsRuns) {
  std::mt19937 rng(7);
  int accepted = 0, refused = 0, failed = 0;
  for (int i = 0; i < 4000; ++i) {
    const Transport transport = kTransports[rng() % 3];
    const int blocks = transport == Transport::kBoxes ? static_cast<int>(rng() % 3) : 0;
    LoopPlan plan = PlanOf(transport, 2 + static_cast<int>(rng() % 3), 0, true, blocks > 0,
                           std::max(blocks, 1));
    for (uint32_t n = 1 + rng() % 2; n > 0; --n) Mutate(plan, rng);
    for (Steps* steps : {&Prologue(plan), &Body(plan)}) {
      for (Step& s : *steps) s.iteration = std::max(s.iteration, 0);
    }
    const Status verdict = VerifyPlan(plan);
    bool runs = true;
    for (int n = 0; n < 12 && runs; ++n) {
      runs = Runs(plan, static_cast<int>(rng() % (2 * plan.rings[0].depth + 2)), rng);
    }
    if (!runs) ++failed;
    ++(verdict.ok() ? accepted : refused);
    if (verdict.ok()) {
      EXPECT_TRUE(runs) << "plan " << i << Text(plan);
    }
  }
  // The check is worth something: it tells the two apart.
  EXPECT_GT(accepted, 200);
  EXPECT_GT(failed, 1000);
  EXPECT_LT(refused, failed * 2);
}

// It runs at every compile. Processor time, so that a busy machine does not count.
TEST(VerifyPlan, TakesMicroseconds) {
  constexpr int kRuns = 50;
  for (const auto& [depth, micros] : {std::pair(4, 200), std::pair(16, 10000)}) {
    const LoopPlan plan = PlanOf(Transport::kAsyncCopy, depth);
    const std::clock_t start = std::clock();
    for (int i = 0; i < kRuns; ++i) EXPECT_TRUE(VerifyPlan(plan).ok());
    const double took = 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kRuns;
    RecordProperty(absl::StrCat("depth_", depth), absl::StrCat(took));
    EXPECT_LT(took, micros) << depth;
  }
}

}  // namespace
}  // namespace tl
