#include "backends/emulate/machine.h"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "backends/emulate/mma.h"

namespace tl::emulate {
namespace {

constexpr int kArenaBytes = 256 * 1024;  // of a block
constexpr int kArenaAlignment = 1024;
constexpr int kRegisters = 65536;  // of a multiprocessor
constexpr int kMostBlocks = 8;     // of a cluster

}  // namespace

Machine::Machine() {
  api_.self = this;
  api_.fail = [](void* self, int line, const char* message) {
    Self(self).Fail(Self(self).running_, line, message);
  };
  api_.shared = [](void* self, const TlPlace* place, int bytes, int access, const void* data) {
    Self(self).Shared(*place, bytes, access, data);
  };
  api_.shared_vector = [](void* self, const TlPlace* place, int bytes, int access,
                          const void* data) {
    Self(self).SharedVector(*place, bytes, access, data);
  };
  api_.barrier = [](void* self, int team, int line) { Self(self).Barrier(team, line); };
  api_.async_move = [](void* self, const TlPlace* to, const void* from, int bytes, int inside) {
    Self(self).AsyncMove(*to, inside ? from : nullptr, bytes);
  };
  api_.async_commit = [](void* self) {
    ++Self(self).threads_[static_cast<size_t>(Self(self).running_)].groups;
  };
  api_.async_wait = [](void* self, int pending) { Self(self).AsyncWait(pending); };
  api_.load_matrix = [](void* self, void* to, const TlPlace* from, int inside, int matrices,
                        int transpose) {
    Machine& m = Self(self);
    WarpOp& op = m.Join(WarpOp::kLoadMatrix, from->line, 2 * matrices + transpose);
    const int lane = m.lane();
    op.out[lane] = to;
    op.places[lane] = *from;
    op.inside[lane] = inside != 0;
    m.Meet(op);
  };
  api_.store_matrix = [](void* self, const TlPlace* to, int inside, const void* from, int matrices,
                         int transpose) {
    Machine& m = Self(self);
    WarpOp& op = m.Join(WarpOp::kStoreMatrix, to->line, 2 * matrices + transpose);
    const int lane = m.lane();
    op.a[lane] = from;
    op.places[lane] = *to;
    op.inside[lane] = inside != 0;
    m.Meet(op);
  };
  api_.mma = [](void* self, int atom, void* c, const void* a, const void* b, int line) {
    Machine& m = Self(self);
    if (LanesOf(AtomNumber(atom)) != m.lanes_) {
      m.Fail(m.running_, line, "the warp has another number of lanes than the instruction");
    }
    WarpOp& op = m.Join(WarpOp::kMma, line, atom);
    const int lane = m.lane();
    op.out[lane] = c;
    op.a[lane] = a;
    op.b[lane] = b;
    m.Meet(op);
  };
  api_.lane_xor = [](void* self, unsigned long long value, int mask, int line) {
    Machine& m = Self(self);
    WarpOp& op = m.Join(WarpOp::kLaneXor, line, mask);
    const int lane = m.lane();
    op.values[lane] = value;
    m.Meet(op);
    return op.results[lane];
  };
  api_.registers = [](void* self, int count, int line) {
    Machine& m = Self(self);
    m.Meet(m.Join(WarpOp::kRegisters, line, count));
  };
  ConnectWgmma();
  ConnectBulk();
}

// ---- Blocks and turns

uint64_t Machine::Random() {  // xorshift64*
  uint64_t& x = random_;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  return x * 0x2545f4914f6cdd1dull;
}

std::string Machine::Run(TlBody* body, const LaunchShape& shape, void** params,
                         const TlExtent* extents, const EmulateOptions& options,
                         EmulateStats* stats) {
  if (shape.threads > 1024 || shape.shared_bytes > kArenaBytes) return "the block is too large";
  if (shape.cluster < 1 || shape.cluster > kMostBlocks || shape.blocks % shape.cluster != 0) {
    return absl::StrCat(shape.blocks, " blocks are not whole clusters of ", shape.cluster,
                        ", of which there are 1 to ", kMostBlocks);
  }
  if (shape.cluster > 1 && shape.threads % kWarpgroup != 0) {
    return "the blocks of a cluster are not whole warpgroups, as they must be here";
  }
  shape_ = shape;
  if (!stacks_.Reserve(threads())) return "there is no memory for stacks";
  Reserve(shape);
  body_ = body;
  params_ = params;
  extents_ = extents;
  options_ = options;
  lanes_ = options.warp_size;
  group_size_ = (shape.threads - shape.producers) / shape.groups;
  random_ = options.seed * 2 + 1;
  for (int i = 0; i < 8; ++i) Random();  // small seeds begin alike
  error_.clear();
  banks_.Start(threads(), lanes_, stats);
  // A random start and a step that has no common factor with the number of clusters visit each
  // once.
  const auto clusters = static_cast<uint64_t>(shape.blocks / shape.cluster);
  api_.blocks = static_cast<int>(shape.blocks);
  uint64_t step = Random() % clusters + 1;
  while (std::gcd(step, clusters) != 1) step = step % clusters + 1;
  uint64_t cluster = Random() % clusters;
  for (uint64_t i = 0; i < clusters && error_.empty(); ++i) {
    RunCluster(static_cast<int64_t>(cluster));
    cluster = (cluster + step) % clusters;
  }
  return error_;
}

void Machine::Reserve(const LaunchShape& shape) {
  const auto aligned = [](uintptr_t x) {
    return (x + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  };
  block_bytes_ = static_cast<unsigned>(aligned(std::max<uintptr_t>(shape.shared_bytes, 1)));
  arena_storage_.resize(size_t{block_bytes_} * shape.cluster + kArenaAlignment);
  const auto address = reinterpret_cast<uintptr_t>(arena_storage_.data());
  api_.arena = arena_storage_.data() + (aligned(address) - address);
}

void Machine::RunCluster(int64_t cluster) {
  const size_t bytes = size_t{block_bytes_} * shape_.cluster;
  std::memset(api_.arena, 0xff, bytes);
  first_block_ = cluster * shape_.cluster;
  shadow_.Start(static_cast<int>(bytes), threads(), std::gcd(group_size_, shape_.producers));
  threads_.resize(static_cast<size_t>(threads()));
  waiting_.assign(static_cast<size_t>(shape_.groups + 1 - kTlEveryone) * shape_.cluster + 1, 0);
  warps_.resize(static_cast<size_t>((threads() + lanes_ - 1) / lanes_));
  for (WarpOp& op : warps_) op.arrived = 0;
  registers_.assign(warps_.size(), 0);
  warpgroups_.assign(static_cast<size_t>(threads() / kWarpgroup), {});
  descriptors_.clear();
  any_products_ = false;
  mbarriers_.clear();
  loads_.clear();
  remote_arrivals_.clear();
  ready_.clear();
  done_.assign(static_cast<size_t>(shape_.cluster), 0);
  for (int t = 0; t < threads(); ++t) {
    Thread& thread = threads_[static_cast<size_t>(t)];
    thread.context = NewContext(stacks_.stack(t), Stacks::kBytes, &FiberMain, this);
    thread.flights.clear();
    thread.groups = 0;
    thread.fenced = false;
    thread.registers.clear();
    thread.stores.clear();
    thread.store_groups = 0;
    thread.stores_issued = 0;
    thread.store_reader = -1;
    thread.remote_arrivals = 0;
    thread.arrival_counter = -1;
    MakeReady(t);
  }
  const size_t first = Random() % ready_.size();
  std::swap(ready_[first], ready_.back());
  Choose(ready_.back());
  ready_.pop_back();
  Switch(scheduler_, threads_[static_cast<size_t>(running_)].context);
  if (error_.empty()) {
    for (Thread& thread : threads_) {
      for (BulkStore& store : thread.stores) WriteStore(store);
    }
    for (size_t w = 0; w < warps_.size(); ++w) banks_.Flush(static_cast<int>(w));
  }
}

void Machine::FiberMain(void* self) {
  Machine& m = Self(self);
  m.body_(m.params_, m.extents_);
  m.EndThread();
  m.Next();
}

void Machine::EndThread() {
  CheckStoresRead(running_);
  threads_[static_cast<size_t>(running_)].state = State::kDone;
  const int rank = RankOf(running_);
  if (++done_[static_cast<size_t>(rank)] == shape_.threads) EndBlock(rank);
  const int done = std::accumulate(done_.begin(), done_.end(), 0);
  if (done == threads()) {
    Context ended;
    Switch(ended, scheduler_);
  }
  // Who has ended is not waited for.
  if (waiting_.back() > 0 && waiting_.back() + done == threads()) OpenClusterBarrier();
}

void Machine::EndBlock(int rank) {
  CheckLoadsAwaited(rank);
  CheckArrivalsKnown(rank);
  CheckRegisters(rank);
}

void Machine::Choose(int thread) {
  running_ = thread;
  api_.thread = thread % shape_.threads;
  api_.rank = RankOf(thread);
  api_.block = static_cast<int>(BlockOf(thread));
  api_.base = BaseOf(api_.rank);
}

void Machine::MakeReady(int thread) {
  threads_[static_cast<size_t>(thread)].state = State::kReady;
  ready_.push_back(thread);
}

void Machine::Next() {
  while (ready_.empty() && !loads_.empty()) LandLoad(Random() % loads_.size());
  if (ready_.empty()) ReportStuck();
  std::swap(ready_[Random() % ready_.size()], ready_.back());
  const int from = running_, to = ready_.back();
  ready_.pop_back();
  Choose(to);
  if (from != to) {
    Switch(threads_[static_cast<size_t>(from)].context, threads_[static_cast<size_t>(to)].context);
  }
}

// ---- Faults

std::string Machine::ThreadName(int thread) const {
  if (thread < 0) return "several threads";
  return absl::StrCat("thread ", thread % shape_.threads,
                      shape_.cluster > 1 ? absl::StrCat(" of block ", BlockOf(thread)) : "");
}

void Machine::Fail(int thread, int line, std::string_view message) {
  error_ = absl::StrCat("line ", line, ", block ", BlockOf(thread), ", thread ",
                        thread % shape_.threads, ": ", message);
  Context ended;
  Switch(ended, scheduler_);
  __builtin_unreachable();
}

// Nobody can go on: says who waits for whom.
void Machine::ReportStuck() {
  const auto first = [&](State state) {
    int t = 0;
    while (t < threads() && threads_[static_cast<size_t>(t)].state != state) ++t;
    return t < threads() ? t : -1;
  };
  const int in_warp = first(State::kInWarp), in_group = first(State::kInWarpgroup);
  const int at_barrier = first(State::kAtBarrier);
  const int at_mbarrier = first(State::kAtMbarrier), done = first(State::kDone);
  const int waiting = in_warp >= 0       ? in_warp
                      : in_group >= 0    ? in_group
                      : at_mbarrier >= 0 ? at_mbarrier
                                         : at_barrier;
  std::string message = in_warp >= 0       ? "a warp instruction is not reached by all of its lanes"
                        : in_group >= 0    ? "wgmma is not reached by all threads of its warpgroup"
                        : at_mbarrier >= 0 ? "a phase of an mbarrier never ends"
                                           : "a barrier is not reached by all of its threads";
  absl::flat_hash_set<std::pair<unsigned, int>> named;
  for (int t = 0; t < threads(); ++t) {
    const Thread& thread = threads_[static_cast<size_t>(t)];
    const TlPlace& at = thread.mbarrier;
    if (thread.state != State::kAtMbarrier || !named.insert({at.offset, at.line}).second) continue;
    absl::StrAppend(&message, "; ", ThreadName(t), " waits for ", at.tile, "[", at.index,
                    "] in line ", at.line);
    const MbarrierState& m = mbarriers_.at(at.offset);
    absl::StrAppend(&message, " (", m.arrivals - m.missing, " of ", m.arrivals, " arrivals");
    if (m.transactions > 0) absl::StrAppend(&message, ", ", m.transactions, " bytes missing");
    message += ")";
  }
  absl::flat_hash_set<std::pair<int, int>> barriers;  // block and team
  for (int t = 0; t < threads(); ++t) {
    const Thread& thread = threads_[static_cast<size_t>(t)];
    if (thread.state != State::kAtBarrier) continue;
    const bool cluster = thread.barrier == kTlCluster;
    if (!barriers.insert({cluster ? 0 : RankOf(t), thread.barrier}).second || t == waiting)
      continue;
    absl::StrAppend(&message, "; ", ThreadName(t), " waits at the barrier of ",
                    cluster ? "the cluster in line " : "line ", thread.line);
  }
  if (done >= 0) absl::StrAppend(&message, "; ", ThreadName(done), " has ended");
  Fail(waiting, threads_[static_cast<size_t>(waiting)].line, message);
}

// ---- Shared memory

void Machine::Check(int thread, const TlPlace& place, int bytes, int access, const void* data) {
  const int offset = static_cast<int>(place.offset);
  if (access == kTlAtomic) return;
  const bool write = access == kTlWrite;
  Shadow::Conflict conflict;
  if (write) {
    const bool same =
        data != nullptr && std::memcmp(api_.arena + offset, data, static_cast<size_t>(bytes)) == 0;
    conflict = shadow_.Write(offset, bytes, thread, place.line, same);
  } else {
    conflict = shadow_.Read(offset, bytes, thread, place.line);
  }
  if (!conflict) return;
  FailConflict(thread, place.line,
               absl::StrCat(write ? "writing " : "reading ", bytes, " bytes from ", place.tile, "[",
                            place.index, "] on: "),
               conflict);
}

void Machine::FailConflict(int thread, int line, std::string_view what,
                           const Shadow::Conflict& conflict) {
  const std::string other = ThreadName(conflict.thread);
  const std::string there = absl::StrCat("(line ", conflict.line, ")");
  const auto because = [&] {
    switch (conflict.kind) {
      case Shadow::Conflict::kInFlight:
        return absl::StrCat("an asynchronous copy by ", other, " ", there, " may be under way");
      case Shadow::Conflict::kBulkWrite:
        return absl::StrCat("a bulk copy wrote there ", there,
                            " and its mbarrier has not been waited for, or no barrier tells so");
      case Shadow::Conflict::kAsyncRead:
        return absl::StrCat("what reads there asynchronously ", there,
                            " has not been waited for by all its threads, or no barrier tells so");
      case Shadow::Conflict::kNoFence:
        return absl::StrCat(other, " wrote there ", there,
                            " and no proxy fence of its own lies between");
      case Shadow::Conflict::kWithRead:
        return absl::StrCat(other, " read there ", there, " and no barrier lies between");
      default:
        return absl::StrCat(other, " wrote there ", there, " and no barrier lies between");
    }
  };
  Fail(thread, line, absl::StrCat(what, because()));
}

void Machine::CheckAligned(int thread, const TlPlace& place, int bytes) {
  if (place.offset % static_cast<unsigned>(bytes) == 0) return;
  Fail(thread, place.line,
       absl::StrCat(bytes, " bytes from ", place.tile, "[", place.index, "] on are misaligned"));
}

void Machine::Shared(const TlPlace& place, int bytes, int access, const void* data) {
  if (options_.switch_every > 0 && --until_switch_ < 0) {
    until_switch_ = static_cast<int>(Random() % static_cast<uint64_t>(2 * options_.switch_every));
    LandSome();
    MakeReady(running_);
    Next();
  }
  Check(running_, place, bytes, access, data);
}

void Machine::SharedVector(const TlPlace& place, int bytes, int access, const void* data) {
  CheckAligned(running_, place, bytes);
  Shared(place, bytes, access, data);
  banks_.Note(running_, place.line, static_cast<int>(place.offset), bytes, access == kTlWrite,
              false);
}

// ---- Barriers

ThreadRange Machine::TeamOf(int rank, int team) const {
  const int computing = shape_.threads - shape_.producers, first = rank * shape_.threads;
  if (team == kTlEveryone) return {first, shape_.threads};
  if (team == kTlBlock) return {first, computing};
  if (team == shape_.groups) return {first + computing, shape_.producers};
  return {first + team * group_size_, group_size_};
}

int& Machine::WaitingAt(int rank, int team) {
  const int teams = shape_.groups + 1 - kTlEveryone;
  return waiting_[static_cast<size_t>(rank * teams + team - kTlEveryone)];
}

void Machine::Barrier(int team, int line) {
  LandSome();
  Thread& thread = threads_[static_cast<size_t>(running_)];
  thread.state = State::kAtBarrier;
  thread.barrier = team;
  thread.line = line;
  if (team == kTlCluster) return ClusterBarrier(line);
  const int rank = RankOf(running_);
  const ThreadRange threads = TeamOf(rank, team);
  const int hardware = std::max(team + 1, 0);
  if (running_ < threads.first || running_ >= threads.first + threads.count) {
    Fail(running_, line, "the barrier is another team's");
  }
  if (team != kTlEveryone && threads.count < shape_.threads &&
      (threads.count % lanes_ != 0 || hardware >= kHardwareBarriers)) {
    Fail(running_, line,
         absl::StrCat("an illegal instruction: hardware barrier ", hardware, " for ", threads.count,
                      " threads; there are ", kHardwareBarriers, ", and each counts whole warps"));
  }
  if (++WaitingAt(rank, team) == threads.count) OpenBarrier(rank, team);
  Next();
}

void Machine::ClusterBarrier(int line) {
  if (threads_.size() % static_cast<size_t>(lanes_) != 0) {
    Fail(running_, line, "a barrier of the cluster in a block that is not whole warps");
  }
  const int done = std::accumulate(done_.begin(), done_.end(), 0);
  if (++waiting_.back() + done == threads()) OpenClusterBarrier();
  Next();
}

// All threads wait there that have not ended. Those tell nobody anything any more.
void Machine::OpenClusterBarrier() {
  waiting_.back() = 0;
  const int group = std::gcd(group_size_, shape_.producers);
  std::vector<ThreadRange> whole;
  for (int first = 0; first < threads(); first += group) {
    const auto begin = threads_.begin() + first;
    const auto waits = [](const Thread& t) { return t.state == State::kAtBarrier; };
    if (std::all_of(begin, begin + group, waits)) whole.push_back({first, group});
  }
  shadow_.PassBarrier(whole);
  for (int t = 0; t < threads(); ++t) {
    if (threads_[static_cast<size_t>(t)].state == State::kAtBarrier) MakeReady(t);
    if (t % lanes_ == 0) banks_.Flush(t / lanes_);
  }
}

void Machine::OpenBarrier(int rank, int team) {
  WaitingAt(rank, team) = 0;
  const ThreadRange range = TeamOf(rank, team);
  const auto [first, count] = range;
  const int line = threads_[static_cast<size_t>(first)].line;
  for (int t = first; t < first + count; ++t) {
    const Thread& thread = threads_[static_cast<size_t>(t)];
    if (thread.state != State::kAtBarrier || thread.barrier != team || thread.line != line) {
      Fail(t, thread.line,
           absl::StrCat("threads meet at different barriers; ", ThreadName(first),
                        " waits at that of line ", line));
    }
  }
  shadow_.PassBarrier({&range, 1});
  for (int t = first; t < first + count; ++t) {
    MakeReady(t);
    if (t % lanes_ == 0) banks_.Flush(t / lanes_);
  }
}

// ---- Asynchronous copies

void Machine::AsyncMove(const TlPlace& to, const void* from, int bytes) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  CheckAligned(running_, to, bytes);
  Check(running_, to, bytes, kTlWrite, nullptr);
  const int offset = static_cast<int>(to.offset);
  shadow_.Launch(offset, bytes);
  banks_.Note(running_, to.line, offset, bytes, true, true);
  thread.flights.push_back({offset, bytes, from, thread.groups, false});
  const bool at_once =
      options_.arrival == Arrival::kEager || (options_.arrival == Arrival::kRandom && OneIn(4));
  if (at_once) Land(thread.flights.back());
}

void Machine::Land(Flight& flight) {
  if (flight.landed) return;
  flight.landed = true;
  unsigned char* to = api_.arena + flight.offset;
  if (flight.from == nullptr) {
    std::memset(to, 0, static_cast<size_t>(flight.bytes));
  } else {
    std::memcpy(to, flight.from, static_cast<size_t>(flight.bytes));
  }
}

// Copies of some thread arrive at any moment.
void Machine::LandSome() {
  if (options_.arrival != Arrival::kRandom) return;
  Thread& thread = threads_[Random() % threads_.size()];
  for (Flight& flight : thread.flights) {
    if (OneIn(2)) Land(flight);
  }
  for (BulkStore& store : thread.stores) {
    if (OneIn(2)) break;
    ReadStore(store);
    if (OneIn(2)) WriteStore(store);
  }
  if (!loads_.empty() && OneIn(2)) LandLoad(Random() % loads_.size());
  if (!any_products_) return;
  Warpgroup& group = warpgroups_[Random() % warpgroups_.size()];
  if (OneIn(2)) ComputeUpTo(group, group.issued);
}

void Machine::AsyncWait(int pending) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  std::vector<Flight> left;
  for (Flight& flight : thread.flights) {
    if (flight.group >= thread.groups - pending) {
      left.push_back(flight);
      continue;
    }
    Land(flight);
    shadow_.Complete(flight.offset, flight.bytes, running_);
  }
  thread.flights = std::move(left);
}

// ---- Instructions of a warp

Machine::WarpOp& Machine::Join(WarpOp::Kind kind, int line, int detail) {
  const int warp = running_ / lanes_;
  if ((warp + 1) * lanes_ > threads()) {
    Fail(running_, line,
         absl::StrCat("a warp instruction in a warp of fewer than ", lanes_, " threads"));
  }
  WarpOp& op = warps_[static_cast<size_t>(warp)];
  if (op.arrived == 0) {
    op.kind = kind;
    op.line = line;
    op.detail = detail;
  } else if (op.kind != kind || op.line != line || op.detail != detail) {
    Fail(running_, line,
         absl::StrCat("lanes of one warp meet in different instructions; another is at line ",
                      op.line));
  }
  return op;
}

void Machine::Meet(WarpOp& op) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  const int warp = running_ / lanes_;
  thread.line = op.line;
  if (++op.arrived < lanes_) {
    thread.state = State::kInWarp;
    return Next();
  }
  op.arrived = 0;
  banks_.Flush(warp);
  RunWarpOp(op, warp);
  for (int t = warp * lanes_; t < (warp + 1) * lanes_; ++t) {
    if (t != running_) MakeReady(t);
  }
}

void Machine::RunWarpOp(WarpOp& op, int warp) {
  switch (op.kind) {
    case WarpOp::kLoadMatrix:
      return LoadMatrices(op, warp);
    case WarpOp::kStoreMatrix:
      return StoreMatrices(op, warp);
    case WarpOp::kMma:
      return Mma(AtomNumber(op.detail), op.out.data(), op.a.data(), op.b.data());
    case WarpOp::kLaneXor:
      for (int lane = 0; lane < lanes_; ++lane) {
        op.results[lane] = op.values[(lane ^ op.detail) % lanes_];
      }
      return;
    case WarpOp::kWgmmaFence:
    case WarpOp::kWgmmaCommit:
    case WarpOp::kWgmmaWait:
      return OrderProducts(op, warp);
    case WarpOp::kRegisters:
      return SetRegisters(op, warp);
  }
}

void Machine::SetRegisters(const WarpOp& op, int warp) {
  constexpr int kFewest = 24, kMost = 256, kStep = 8;
  const int count = std::abs(op.detail);
  registers_line_ = op.line;
  registers_[static_cast<size_t>(warp)] = count;
  if (count < kFewest || count > kMost || count % kStep != 0) {
    Fail(warp * lanes_, op.line,
         absl::StrCat("setmaxnreg takes multiples of 8 from 24 to 256, not ", count));
  }
  // Who asks for more waits until others of its block have given them back.
  const int warps = static_cast<int>(registers_.size()) / shape_.cluster;
  const auto first = registers_.begin() + warp / warps * warps;
  const int all = std::accumulate(first, first + warps, 0) * lanes_;
  if (all > kRegisters) {
    Fail(warp * lanes_, op.line,
         absl::StrCat("setmaxnreg never ends: all warps together ask for ", all,
                      " registers; there are ", kRegisters));
  }
}

// Where the block ends.
void Machine::CheckRegisters(int rank) {
  const size_t warps = registers_.size() / static_cast<size_t>(shape_.cluster);
  for (size_t w = rank * warps; w < (rank + 1) * warps; ++w) {
    if (registers_[w] == registers_[w - w % kWarpsOfGroup]) continue;
    Fail(static_cast<int>(w) * lanes_, registers_line_,
         "the warps of a warpgroup do not all execute the same setmaxnreg");
  }
}

std::vector<int64_t> Machine::RowsOfMatrix(const WarpOp& op, int warp, int matrix) {
  std::vector<int64_t> rows;
  for (int row = 8 * matrix; row < 8 * matrix + 8; ++row) {
    const TlPlace& place = op.places[row];
    const int thread = warp * lanes_ + row;
    if (!op.inside[row]) {
      Fail(thread, place.line,
           absl::StrCat("the row of a matrix at ", place.tile, "[", place.index,
                        "] is outside of the tile"));
    }
    CheckAligned(thread, place, 16);
    rows.push_back(place.offset);
  }
  return rows;
}

void Machine::LoadMatrices(WarpOp& op, int warp) {
  const int matrices = op.detail / 2;
  const bool transpose = op.detail % 2 != 0;
  for (int m = 0; m < matrices; ++m) {
    const std::vector<int64_t> rows = RowsOfMatrix(op, warp, m);
    for (int row = 8 * m; row < 8 * m + 8; ++row) {
      Check(warp * lanes_ + row, op.places[row], 16, kTlRead, nullptr);
    }
    banks_.NoteMatrix(rows, false);
    for (int lane = 0; lane < lanes_; ++lane) {
      auto* to = static_cast<unsigned char*>(op.out[lane]) + 4 * m;
      if (!transpose) {
        std::memcpy(to, api_.arena + rows[lane / 4] + lane % 4 * 4, 4);
        continue;
      }
      for (int half = 0; half < 2; ++half) {
        std::memcpy(to + 2 * half, api_.arena + rows[2 * (lane % 4) + half] + lane / 4 * 2, 2);
      }
    }
  }
}

// Whose address names a row answers for all that is written there.
void Machine::StoreMatrices(WarpOp& op, int warp) {
  const int matrices = op.detail / 2;
  const bool transpose = op.detail % 2 != 0;
  for (int m = 0; m < matrices; ++m) {
    const std::vector<int64_t> offsets = RowsOfMatrix(op, warp, m);
    unsigned char rows[8][16];
    for (int lane = 0; lane < 32; ++lane) {
      const auto* from = static_cast<const unsigned char*>(op.a[lane]) + 4 * m;
      if (!transpose) {
        std::memcpy(&rows[lane / 4][lane % 4 * 4], from, 4);
        continue;
      }
      for (int half = 0; half < 2; ++half) {
        std::memcpy(&rows[2 * (lane % 4) + half][lane / 4 * 2], from + 2 * half, 2);
      }
    }
    banks_.NoteMatrix(offsets, true);
    for (int row = 0; row < 8; ++row) {
      const int name = 8 * m + row;
      Check(warp * lanes_ + name, op.places[name], 16, kTlWrite, rows[row]);
      std::memcpy(api_.arena + offsets[static_cast<size_t>(row)], rows[row], 16);
    }
  }
}

}  // namespace tl::emulate
