// Mbarriers, and the copies of boxes that arrive at them or that their thread waits for.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/emulate/machine.h"

namespace tl::emulate {
namespace {

constexpr int64_t kMaxTransactions = (1 << 20) - 1;

}  // namespace

void Machine::ConnectBulk() {
  api_.mbarrier = [](void* self, const TlPlace* place, int op, int value) {
    Self(self).Mbarrier(*place, static_cast<TlMbarrierOp>(op), value);
  };
  api_.mbarrier_arrive_at = [](void* self, const TlPlace* place, int rank) {
    Self(self).ArriveAt(*place, rank);
  };
  api_.mbarrier_init_fence = [](void* self) {
    Self(self).shadow_.Fence(Shadow::kInitFence, Self(self).running_);
  };
  api_.bulk_load = [](void* self, const TlBulkCopy* copy, const TlPlace* mbarrier) {
    Self(self).StartLoad(*copy, *mbarrier);
  };
  api_.bulk_store = [](void* self, const TlBulkCopy* copy) { Self(self).StartStore(*copy); };
  api_.bulk_order = [](void* self, int op, int pending) {
    Machine& m = Self(self);
    if (op == kTlBulkCommit) {
      ++m.threads_[static_cast<size_t>(m.running_)].store_groups;
    } else {
      m.WaitForStores(pending, op == kTlBulkWait);
    }
  };
}

// ---- Mbarriers

void Machine::Mbarrier(const TlPlace& place, TlMbarrierOp op, int value) {
  LandSome();
  if (op == kTlInit) return InitMbarrier(place, value);
  if (op == kTlArrive) return Arrive(place);
  if (op == kTlExpect) return Expect(place, value);
  Thread& thread = threads_[static_cast<size_t>(running_)];
  // The phase that runs has another parity as soon as the awaited one has ended.
  while (FindMbarrier(place).phase % 2 == value) {
    thread.state = State::kAtMbarrier;
    thread.mbarrier = place;
    thread.line = place.line;
    Next();
  }
  shadow_.Learn(static_cast<int>(place.offset), running_);
  const MbarrierState& m = FindMbarrier(place);
  if (m.counter >= 0) {
    shadow_.progress().Tell(m.counter, running_, static_cast<uint32_t>(m.phase));
  }
}

void Machine::InitMbarrier(const TlPlace& place, int arrivals) {
  CheckAligned(running_, place, sizeof(long long));
  Check(running_, place, sizeof(long long), kTlWrite, nullptr);
  const MbarrierState made = {.place = place,
                              .maker = running_,
                              .made = {shadow_.Fences(Shadow::kProxyFence, running_),
                                       shadow_.Fences(Shadow::kInitFence, running_)},
                              .arrivals = arrivals,
                              .missing = arrivals};
  if (arrivals < 1 || !mbarriers_.try_emplace(place.offset, made).second) {
    Fail(running_, place.line,
         absl::StrCat(place.tile, "[", place.index, "] is made twice, or for no arrivals"));
  }
}

MbarrierState& Machine::FindMbarrier(const TlPlace& place) {
  const auto it = mbarriers_.find(place.offset);
  if (it == mbarriers_.end()) {
    Fail(running_, place.line,
         absl::StrCat(place.tile, "[", place.index, "] has not been made an mbarrier"));
  }
  Check(running_, place, sizeof(long long), kTlRead, nullptr);  // has been made before this
  return it->second;
}

void Machine::Arrive(const TlPlace& place) {
  MbarrierState& m = FindMbarrier(place);
  if (m.missing == 0) {
    Fail(running_, place.line,
         absl::StrCat("all arrivals of this phase of ", place.tile, "[", place.index,
                      "] are there; it waits for ", m.transactions, " bytes"));
  }
  shadow_.Arrive(static_cast<int>(place.offset), running_);
  --m.missing;
  EndPhaseIfComplete(m);
}

// It counts for the block's life, too: CheckArrivalsKnown.
void Machine::ArriveAt(const TlPlace& place, int rank) {
  LandSome();
  CheckAlive(rank, place.line, "an arrival");
  TlPlace there = place;
  there.offset = place.offset - api_.base + BaseOf(rank);
  if (rank != RankOf(running_)) NoteRemoteArrival(there, rank);
  Arrive(there);
}

void Machine::NoteRemoteArrival(const TlPlace& place, int rank) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  if (thread.arrival_counter < 0) thread.arrival_counter = shadow_.progress().NewCounter();
  shadow_.progress().Tell(thread.arrival_counter, running_, ++thread.remote_arrivals);
  remote_arrivals_[{rank, running_}] = {place, thread.remote_arrivals};
}

// Is there such a block, and has it not ended?
void Machine::CheckAlive(int rank, int line, std::string_view what) {
  if (rank < 0 || rank >= shape_.cluster) {
    Fail(running_, line,
         absl::StrCat(what, " at block ", rank, " of a cluster of ", shape_.cluster));
  }
  if (done_[static_cast<size_t>(rank)] < shape_.threads) return;
  Fail(running_, line, absl::StrCat(what, " at block ", first_block_ + rank, ", which has ended"));
}

void Machine::Expect(const TlPlace& place, int bytes) {
  MbarrierState& m = FindMbarrier(place);
  m.transactions += bytes;
  if (bytes < 0 || m.transactions > kMaxTransactions) {
    Fail(running_, place.line,
         absl::StrCat(place.tile, "[", place.index, "] expects ", m.transactions,
                      " bytes; a phase takes 0 to ", kMaxTransactions));
  }
  Arrive(place);
}

void Machine::EndPhaseIfComplete(MbarrierState& m) {
  if (m.missing > 0 || m.transactions > 0) return;
  if (m.transactions < 0 || m.flying > 0) {
    Fail(m.load_thread, m.load_line,
         absl::StrCat("the copies to ", m.place.tile, "[", m.place.index,
                      "] bring more bytes than its phase expects"));
  }
  const int at = static_cast<int>(m.place.offset);
  ++m.phase;
  m.missing = m.arrivals;
  shadow_.EndPhase(at);
  for (const BulkLoad& load : m.landed) {
    shadow_.CompleteBulk(static_cast<int>(load.offset), static_cast<int>(load.box.bytes()),
                         m.counter, static_cast<uint32_t>(m.phase));
  }
  m.landed.clear();
  for (int t = 0; t < threads(); ++t) {
    const Thread& thread = threads_[static_cast<size_t>(t)];
    if (thread.state == State::kAtMbarrier && thread.mbarrier.offset == m.place.offset)
      MakeReady(t);
  }
}

// ---- Copies of boxes

// The box, after checks of its place in shared memory.
TensorBox Machine::BoxOf(const TlBulkCopy& copy) {
  TensorBox box;
  std::memcpy(&box.map, copy.map, sizeof(box.map));
  std::copy_n(copy.at, 5, box.at.begin());
  const TlPlace& place = copy.place;
  const auto fail = [&](std::string_view what) {
    Fail(running_, place.line,
         absl::StrCat("the box at ", place.tile, "[", place.index, "]: ", what));
  };
  if (box.map.mark != kTlTensorMap) fail("its map is none");
  if (box.map.rank != copy.rank) {
    fail(absl::StrCat("its map has ", box.map.rank, " dims, not ", copy.rank));
  }
  if (place.offset < copy.begin || place.offset + box.bytes() > copy.end) {
    fail(absl::StrCat("its ", box.bytes(), " bytes are not all in the tile"));
  }
  if (place.offset % AlignmentOf(box.map) != 0) {
    fail(absl::StrCat("it is not aligned to ", AlignmentOf(box.map), " bytes"));
  }
  return box;
}

void Machine::StartLoad(const TlBulkCopy& copy, const TlPlace& mbarrier) {
  const TensorBox box = BoxOf(copy);
  if (copy.blocks == 0) return StartLoadTo(api_.rank, box, copy.place, mbarrier);
  for (int rank = 0; copy.blocks >> rank != 0; ++rank) {
    if ((copy.blocks >> rank & 1) == 0) continue;
    CheckAlive(rank, copy.place.line, "a bulk copy");
    TlPlace place = copy.place, there = mbarrier;
    place.offset += BaseOf(rank) - api_.base;
    there.offset += BaseOf(rank) - api_.base;
    StartLoadTo(rank, box, place, there);
  }
}

void Machine::StartLoadTo(int rank, const TensorBox& box, const TlPlace& place,
                          const TlPlace& mbarrier) {
  MbarrierState& m = FindMbarrier(mbarrier);
  const Shadow::Knowledge known = shadow_.KnownToAll(running_, 1);
  // A proxy fence is about the async proxy of its own block.
  const bool own = rank == RankOf(running_);
  if (!shadow_.Fenced(Shadow::kInitFence, m.maker, m.made[Shadow::kInitFence], known) &&
      !(own && shadow_.Fenced(Shadow::kProxyFence, m.maker, m.made[Shadow::kProxyFence], known))) {
    Fail(running_, place.line,
         absl::StrCat("a copy to ", m.place.tile, "[", m.place.index, "], which ",
                      ThreadName(m.maker), " made (line ", m.place.line,
                      ") without a fence that tells the async proxy"));
  }
  const int offset = static_cast<int>(place.offset), bytes = static_cast<int>(box.bytes());
  const Shadow::Conflict conflict = shadow_.LaunchBulk(offset, bytes, known, place.line);
  if (conflict) {
    FailConflict(running_, place.line,
                 absl::StrCat("a bulk copy writes ", bytes, " bytes from ", place.tile, "[",
                              place.index, "] on: "),
                 conflict);
  }
  if (m.counter < 0) m.counter = shadow_.progress().NewCounter();
  ++m.flying;
  m.loaded = m.phase + 1;
  m.load_thread = running_;
  m.load_line = place.line;
  loads_.push_back({box, place.offset, mbarrier.offset, running_, place.line});
  const bool at_once =
      options_.arrival == Arrival::kEager || (options_.arrival == Arrival::kRandom && OneIn(4));
  if (at_once) LandLoad(loads_.size() - 1);
}

void Machine::LandLoad(size_t i) {
  std::swap(loads_[i], loads_.back());
  const BulkLoad load = loads_.back();
  loads_.pop_back();
  WriteShared(load.box, api_.arena, load.offset, ReadTensor(load.box));
  MbarrierState& m = mbarriers_.at(load.mbarrier);
  m.transactions -= static_cast<int64_t>(load.box.bytes());
  --m.flying;
  m.landed.push_back(load);
  EndPhaseIfComplete(m);
}

void Machine::StartStore(const TlBulkCopy& copy) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  const TlPlace& place = copy.place;
  if (thread.store_reader < 0) {
    thread.store_counter = shadow_.progress().NewCounter();
    thread.store_reader = shadow_.NewAsyncReader({thread.store_counter});
  }
  BulkStore store = {.box = BoxOf(copy),
                     .offset = place.offset,
                     .line = place.line,
                     .group = thread.store_groups,
                     .number = ++thread.stores_issued,
                     .read = false,
                     .waited = false,
                     .written = false,
                     .settled = false,
                     .elements = {}};
  CheckOrderOfStores(store);
  const int bytes = static_cast<int>(store.box.bytes());
  const Shadow::Conflict conflict =
      shadow_.ReadAsync(static_cast<int>(place.offset), bytes, shadow_.KnownToAll(running_, 1),
                        thread.store_reader, store.number, place.line);
  if (conflict) {
    FailConflict(running_, place.line,
                 absl::StrCat("a bulk copy reads ", bytes, " bytes from ", place.tile, "[",
                              place.index, "] on: "),
                 conflict);
  }
  if (options_.arrival == Arrival::kEager) WriteStore(store);
  thread.stores.push_back(std::move(store));
}

// Those of one thread that write the same elements, and not the same to them, wait for each other.
void Machine::CheckOrderOfStores(const BulkStore& store) {
  const auto elements = [&](const BulkStore& s) {
    return s.read ? s.elements : ReadShared(s.box, api_.arena, s.offset);
  };
  for (const BulkStore& other : threads_[static_cast<size_t>(running_)].stores) {
    if (!Overlap(store.box, other.box)) continue;
    if (store.box.at == other.box.at && elements(store) == elements(other)) continue;
    Fail(running_, store.line,
         absl::StrCat("a bulk copy writes elements of a tensor that another one of this thread "
                      "writes (line ",
                      other.line, "), whose end it has not waited for"));
  }
}

void Machine::ReadStore(BulkStore& store) {
  if (std::exchange(store.read, true)) return;
  store.elements = ReadShared(store.box, api_.arena, store.offset);
}

void Machine::WriteStore(BulkStore& store) {
  ReadStore(store);
  if (!std::exchange(store.written, true)) WriteTensor(store.box, store.elements);
}

void Machine::WaitForStores(int pending, bool whole) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  for (BulkStore& store : thread.stores) {
    if (store.group >= thread.store_groups - pending) break;
    ReadStore(store);
    store.waited = true;
    if (whole) WriteStore(store), store.settled = true;
    shadow_.progress().Tell(thread.store_counter, running_, store.number);
  }
  std::erase_if(thread.stores, [](const BulkStore& store) { return store.settled; });
}

// ---- Ends

void Machine::CheckStoresRead(int thread) {
  for (const BulkStore& store : threads_[static_cast<size_t>(thread)].stores) {
    if (store.waited) continue;
    Fail(thread, store.line,
         "the thread ends without having waited for its bulk copy to read shared memory");
  }
}

void Machine::CheckLoadsAwaited(int rank) {
  const auto [first, count] = TeamOf(rank, kTlEveryone);
  for (const auto& [offset, m] : mbarriers_) {
    if (m.counter < 0 || RankOfByte(offset) != rank) continue;
    bool known = false;
    for (int t = first; t < first + count; ++t) {
      known = known || shadow_.progress().Known(m.counter, t) >= static_cast<uint32_t>(m.loaded);
    }
    if (known) continue;
    Fail(m.load_thread, m.load_line,
         absl::StrCat("the block ends without having waited at ", m.place.tile, "[", m.place.index,
                      "] for this bulk copy"));
  }
}

// A block that ends before somebody's arrival is too late to be arrived at; so one that does not
// know of the arrival might have been.
void Machine::CheckArrivalsKnown(int rank) {
  const auto [first, count] = TeamOf(rank, kTlEveryone);
  for (const auto& [who, arrival] : remote_arrivals_) {
    if (who.first != rank) continue;
    const int counter = threads_[static_cast<size_t>(who.second)].arrival_counter;
    bool known = false;
    for (int t = first; t < first + count; ++t) {
      known = known || shadow_.progress().Known(counter, t) >= arrival.number;
    }
    if (known) continue;
    Fail(
        who.second, arrival.place.line,
        absl::StrCat("block ", first_block_ + rank, " ends without knowing of this arrival at its ",
                     arrival.place.tile, "[", arrival.place.index, "]"));
  }
}

}  // namespace tl::emulate
