#include "backends/reference/reference.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "backends/reference/agent.h"
#include "ir/visit.h"

namespace tl::reference {
namespace {

bool HasAtomics(const Module& module) {
  bool found = false;
  for (const Launch& launch : module.launches) {
    VisitStmts(launch.body, [&](const StmtRef& s) {
      found = found || As<Atomic>(s) != nullptr || As<AtomicElement>(s) != nullptr;
    });
  }
  return found;
}

std::vector<int64_t> PointOf(const Grid& grid, int64_t block) {
  std::vector<int64_t> point;
  for (int64_t extent : grid.extents) {
    point.push_back(block % extent);
    block /= extent;
  }
  return point;
}

// Runs the blocks of one launch; the work of a block is known only afterwards.
class LaunchRunner {
 public:
  LaunchRunner(Machine* machine, int launch, const Grid& grid)
      : machine_(machine), launch_(launch), grid_(grid) {}

  Status RunAll(int threads) {
    const int64_t useful = std::clamp<int64_t>(grid_.blocks / 2, 1, threads);
    std::vector<std::thread> pool;
    for (int64_t t = 1; t < useful; ++t) pool.emplace_back([this] { Work(); });
    Work();
    for (std::thread& t : pool) t.join();
    return status_;
  }

  Status RunSample(const std::vector<int64_t>& order, int64_t budget, int64_t* blocks) {
    BlockState state;
    for (int64_t block : order) {
      if (!RunOne(&state, block)) return state.status;
      ++*blocks;
      if (state.work >= budget) break;
    }
    work_ = state.work;
    return absl::OkStatus();
  }

  int64_t work() const { return work_; }

 private:
  bool RunOne(BlockState* state, int64_t block) {
    Agent agent(machine_, state);
    agent.RunBlock(launch_, PointOf(grid_, block));
    return state->status.ok();
  }

  void Work() {
    BlockState state;
    while (true) {
      const int64_t block = next_.fetch_add(1);
      if (block >= grid_.blocks || block > failed_at_.load()) break;
      if (!RunOne(&state, block)) {
        Report(block, state.status);
        break;
      }
    }
    work_.fetch_add(state.work);
  }

  // The error of the first block, whichever thread came to it first.
  void Report(int64_t block, const Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (block > failed_at_.load()) return;
    failed_at_ = block;
    status_ = status;
  }

  Machine* machine_;
  int launch_;
  const Grid& grid_;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> work_{0};
  std::atomic<int64_t> failed_at_{INT64_MAX};
  std::mutex mutex_;
  Status status_;
};

// The corners first: that is where tails are. Then a random order, as much of it as can matter.
std::vector<int64_t> SampleOrder(int64_t blocks, uint64_t seed) {
  constexpr int64_t kMost = 1 << 20;
  std::mt19937_64 random(seed);
  std::vector<int64_t> order;
  if (blocks <= kMost) {
    order.resize(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), int64_t{0});
  } else {
    order = {0, blocks - 1};
    while (static_cast<int64_t>(order.size()) < kMost) {
      order.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(blocks)));
    }
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
  }
  if (order.size() > 2) {
    std::swap(order[1], order.back());
    std::shuffle(order.begin() + 2, order.end(), random);
  }
  return order;
}

}  // namespace

StatusOr<Outputs> RunExact(const Module& module, const Arguments& arguments,
                           const RunOptions& options) {
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine,
                      Machine::Make(module, Mode::kExact, arguments));
  const bool atomics = HasAtomics(module);
  const bool sample = options.work_budget > 0 && module.launches.size() == 1 && !atomics;
  Outputs out;
  for (int l = 0; l < static_cast<int>(module.launches.size()); ++l) {
    TL_ASSIGN_OR_RETURN(const Grid grid, machine->PrepareLaunch(l));
    out.total_blocks += grid.blocks;
    LaunchRunner runner(machine.get(), l, grid);
    if (sample) {
      TL_RETURN_IF_ERROR(runner.RunSample(SampleOrder(grid.blocks, options.seed),
                                          options.work_budget, &out.blocks));
    } else {
      TL_RETURN_IF_ERROR(runner.RunAll(atomics ? 1 : options.threads));
      out.blocks += grid.blocks;
    }
    out.work += runner.work();
  }
  for (BufferId id : module.operands) {
    if (module.buffer(id).role == BufferRole::kIn) continue;
    out.tensors.emplace_back(id, module.buffer(id).dtype, machine->tensor(id).TakeShadow());
  }
  return out;
}

Status RunRounded(const Module& module, const Arguments& arguments, int threads) {
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine,
                      Machine::Make(module, Mode::kRounded, arguments));
  if (HasAtomics(module)) threads = 1;
  for (int l = 0; l < static_cast<int>(module.launches.size()); ++l) {
    TL_ASSIGN_OR_RETURN(const Grid grid, machine->PrepareLaunch(l));
    TL_RETURN_IF_ERROR(LaunchRunner(machine.get(), l, grid).RunAll(threads));
  }
  return absl::OkStatus();
}

Status RunRoundedLaunch(const Module& module, int launch, const Arguments& arguments, int threads) {
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<Machine> machine,
                      Machine::Make(module, Mode::kRounded, arguments));
  for (int l = 0; l < launch; ++l) TL_RETURN_IF_ERROR(machine->EnsurePlan(l));
  TL_ASSIGN_OR_RETURN(const Grid grid, machine->PrepareLaunch(launch));
  return LaunchRunner(machine.get(), launch, grid).RunAll(HasAtomics(module) ? 1 : threads);
}

}  // namespace tl::reference
