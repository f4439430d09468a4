// Matrix products of warpgroups.
#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/emulate/machine.h"

namespace tl::emulate {
namespace {

constexpr unsigned char kPoison = 0xff;

bool SameCall(const TlWgmma& x, const TlWgmma& y) {
  const auto shape = [](const TlWgmma& c) {
    return std::tuple(c.a, c.b, c.c, c.n, c.steps, c.mn_major_a, c.mn_major_b, c.a_matrix,
                      c.b_matrix, c.a_step, c.b_step, c.add, c.line, c.a_registers == nullptr);
  };
  return shape(x) == shape(y);
}

}  // namespace

void Machine::ConnectWgmma() {
  api_.descriptor = [](void* self, const TlPlace* place, unsigned begin, unsigned end, int leading,
                       int stride, int swizzle) -> unsigned long long {
    // Instructions address their own block's memory.
    const unsigned base = Self(self).api_.base;
    return Self(self).Descriptor(*place, {place->tile, begin - base, end - base},
                                 {place->offset - base, static_cast<unsigned>(leading),
                                  static_cast<unsigned>(stride), swizzle});
  };
  api_.wgmma = [](void* self, const TlWgmma* call) { Self(self).JoinProduct(*call); };
  api_.wgmma_order = [](void* self, int op, int pending, int line) {
    Machine& m = Self(self);
    const auto kind = static_cast<WarpOp::Kind>(WarpOp::kWgmmaFence + op);
    m.Meet(m.Join(kind, line, pending));
  };
  api_.proxy_fence = [](void* self) {
    Self(self).shadow_.Fence(Shadow::kProxyFence, Self(self).running_);
  };
}

uint64_t Machine::Descriptor(const TlPlace& place, const Tile& tile, const SharedMatrix& matrix) {
  const auto fail = [&](std::string_view what) {
    Fail(running_, place.line,
         absl::StrCat("the matrix from ", place.tile, "[", place.index, "] on: ", what));
  };
  if (place.offset % kChunk != 0) fail("its address is no multiple of 16 bytes");
  for (unsigned offset : {matrix.leading, matrix.stride}) {
    if (offset % kChunk == 0 && offset < 1u << 18) continue;
    fail(absl::StrCat("an offset of ", static_cast<int>(offset),
                      " bytes; they are multiples of 16 below 262144"));
  }
  const int s = matrix.swizzle;
  if (s != 0 && s != 32 && s != 64 && s != 128) {
    fail(absl::StrCat("swizzled rows have 32, 64 or 128 bytes, or 0 for none, not ", s));
  }
  const uint64_t bits = Encode(matrix);
  // Tiles that share their memory may share a descriptor; then the larger one counts.
  Tile& known = descriptors_.try_emplace(bits, tile).first->second;
  if (known.end - known.begin < tile.end - tile.begin) known = tile;
  return bits;
}

// ---- Issue

void Machine::JoinProduct(const TlWgmma& call) {
  const int index = running_ / kWarpgroup, me = running_ % kWarpgroup;
  if ((index + 1) * kWarpgroup > threads()) {
    Fail(running_, call.line, "wgmma in a warpgroup of fewer than 128 threads");
  }
  Warpgroup& group = warpgroups_[static_cast<size_t>(index)];
  if (group.arrived == 0) {
    group.call = call;
  } else if (!SameCall(group.call, call)) {
    Fail(running_, call.line,
         absl::StrCat(
             "threads of one warpgroup meet in different products, or in one with different "
             "descriptors; another is at line ",
             group.call.line));
  }
  group.c[me] = call.c_registers;
  group.a[me] = call.a_registers;
  Thread& thread = threads_[static_cast<size_t>(running_)];
  thread.line = call.line;
  if (++group.arrived < kWarpgroup) {
    thread.state = State::kInWarpgroup;
    return Next();
  }
  group.arrived = 0;
  const int first = index * kWarpgroup;
  IssueProduct(group, first);
  for (int t = first; t < first + kWarpgroup; ++t) {
    if (t != running_) MakeReady(t);
  }
}

void Machine::IssueProduct(Warpgroup& group, int first_thread) {
  any_products_ = true;
  if (group.reader < 0) {
    for (int& counter : group.counters) counter = shadow_.progress().NewCounter();
    group.reader = shadow_.NewAsyncReader({group.counters.begin(), group.counters.end()});
  }
  Product product = {.call = group.call,
                     .number = ++group.issued,
                     .sums = SumsOf(group, first_thread),
                     .a = group.a,
                     .factors = {},
                     .group = group.groups,
                     .waited = {},
                     .computed = false};
  product.sums->last = product.number;
  const Shadow::Knowledge known = shadow_.KnownToAll(first_thread, kWarpgroup);
  if (product.call.a_registers == nullptr) {
    CheckMatrix(first_thread, group, product, true, known);
  } else {
    const size_t bytes = FactorBytes(product.call);
    for (int i = 0; i < kWarpgroup; ++i) {
      CheckFenced(first_thread + i, group.a[i], bytes, group.call.line);
      const auto* from = static_cast<const unsigned char*>(group.a[i]);
      product.factors.insert(product.factors.end(), from, from + bytes);
    }
  }
  CheckMatrix(first_thread, group, product, false, known);
  group.products.push_back(std::move(product));
  const bool at_once =
      options_.arrival == Arrival::kEager || (options_.arrival == Arrival::kRandom && OneIn(4));
  if (at_once) ComputeUpTo(group, group.issued);
}

// The sums that a call adds to, if earlier products still do so.
Accumulator* Machine::SumsUnderWay(Warpgroup& group, int first_thread) {
  const size_t bytes = SumBytes(group.call);
  for (Accumulator& sums : group.accumulators) {
    bool same = sums.bytes == bytes, apart = true;
    for (int i = 0; i < kWarpgroup; ++i) {
      const auto* mine = static_cast<const unsigned char*>(group.c[i]);
      const auto* other = static_cast<const unsigned char*>(sums.at[i]);
      same = same && mine == other;
      apart = apart &&
              (sums.returned[i / kWarp] || mine >= other + sums.bytes || other >= mine + bytes);
    }
    if (apart) continue;
    const bool whole = std::count(sums.returned.begin(), sums.returned.end(), true) == 0;
    if (same && whole) return &sums;
    Fail(first_thread, group.call.line,
         "the registers of the sum are partly those of another product under way, or not all warps "
         "have waited for it");
  }
  return nullptr;
}

Accumulator* Machine::SumsOf(Warpgroup& group, int first_thread) {
  Accumulator* sums = SumsUnderWay(group, first_thread);
  if (sums != nullptr) return sums;
  sums = &group.accumulators.emplace_back();
  sums->at = group.c;
  sums->bytes = SumBytes(group.call);
  sums->returned = {};
  for (int i = 0; i < kWarpgroup; ++i) {
    auto* const at = static_cast<unsigned char*>(group.c[i]);
    CheckFenced(first_thread + i, at, sums->bytes, group.call.line);
    sums->values.insert(sums->values.end(), at, at + sums->bytes);
    std::memset(at, kPoison, sums->bytes);
  }
  return sums;
}

void Machine::CheckFenced(int thread, const void* at, size_t bytes, int line) {
  Thread& t = threads_[static_cast<size_t>(thread)];
  const auto is = [&](const Registers& r) { return r.at == at && r.bytes == bytes; };
  const auto known = std::find_if(t.registers.begin(), t.registers.end(), is);
  const auto* now = static_cast<const unsigned char*>(at);
  if (known == t.registers.end()) {
    t.registers.push_back({at, bytes, {now, now + bytes}, true});
    if (t.fenced) return;
  } else if (known->is_fenced && std::equal(now, now + bytes, known->fenced.begin())) {
    return;
  }
  Fail(thread, line,
       "its registers were used since the last wgmma.fence, or there was none since the last wait");
}

void Machine::CheckMatrix(int first_thread, const Warpgroup& group, const Product& product,
                          bool is_a, const Shadow::Knowledge& known) {
  const TlWgmma& call = product.call;
  const uint64_t bits = is_a ? call.a_matrix : call.b_matrix;
  const auto found = descriptors_.find(bits);
  const auto all = static_cast<unsigned>(shape_.shared_bytes);
  const Tile tile = found == descriptors_.end() ? Tile{"shared memory", 0, all} : found->second;
  const unsigned base = BaseOf(RankOf(first_thread));
  const std::string what = absl::StrCat("wgmma reads ", is_a ? "A" : "B", " from ", tile.name);
  for (int step = 0; step < call.steps; ++step) {
    const SharedMatrix matrix = MatrixOfStep(bits, is_a ? call.a_step : call.b_step, step);
    for (unsigned at : Chunks(matrix, (is_a ? call.mn_major_a : call.mn_major_b) != 0,
                              is_a ? kWgmmaRows : call.n)) {
      if (at < tile.begin || at + kChunk > std::min(tile.end, all)) {
        Fail(first_thread, call.line,
             absl::StrCat(what, ": byte ", static_cast<int>(at - tile.begin), " is outside of its ",
                          tile.end - tile.begin, " bytes (step ", step, ")"));
      }
      const Shadow::Conflict conflict = shadow_.ReadAsync(
          static_cast<int>(base + at), kChunk, known, group.reader, product.number, call.line);
      if (conflict) {
        FailConflict(first_thread, call.line,
                     absl::StrCat(what, ", byte ",
                                  conflict.byte - static_cast<int>(base + tile.begin), ": "),
                     conflict);
      }
    }
  }
}

void Machine::ComputeUpTo(Warpgroup& group, uint32_t number) {
  const auto index = static_cast<int>(&group - warpgroups_.data());
  const unsigned char* arena = api_.arena + BaseOf(RankOf(index * kWarpgroup));
  for (Product& p : group.products) {
    if (p.number > number) return;
    if (p.computed) continue;
    p.computed = true;
    const unsigned char* a = p.factors.empty() ? nullptr : p.factors.data();
    for (int step = 0; step < p.call.steps; ++step) {
      Wgmma(p.call, step, arena, p.sums->values.data(), a);
    }
  }
}

// ---- Fence, commit, wait

void Machine::OrderProducts(const WarpOp& op, int warp) {
  const int index = warp / kWarpsOfGroup;
  if ((index + 1) * kWarpgroup > threads()) {
    Fail(warp * kWarp, op.line, "wgmma in a warpgroup of fewer than 128 threads");
  }
  if (op.kind == WarpOp::kWgmmaFence) return FenceRegisters(warp);
  if (op.kind == WarpOp::kWgmmaWait) return WaitForProducts(warp, op.detail, op.line);
  ++warpgroups_[static_cast<size_t>(index)].groups[warp % kWarpsOfGroup];
}

void Machine::FenceRegisters(int warp) {
  for (int t = warp * kWarp; t < (warp + 1) * kWarp; ++t) {
    Thread& thread = threads_[static_cast<size_t>(t)];
    thread.fenced = true;
    for (Registers& r : thread.registers) {
      std::memcpy(r.fenced.data(), r.at, r.bytes);
      r.is_fenced = true;
    }
  }
}

void Machine::WaitForProducts(int warp, int pending, int line) {
  Warpgroup& group = warpgroups_[static_cast<size_t>(warp / kWarpsOfGroup)];
  const int w = warp % kWarpsOfGroup;
  uint32_t last = 0;
  for (Product& p : group.products) {
    if (p.group[w] >= group.groups[w] - pending) break;
    last = p.number;
    if (std::exchange(p.waited[w], true)) continue;
    ComputeUpTo(group, last);
    if (!p.factors.empty()) CheckFactors(p, warp, line);
  }
  for (Accumulator& sums : group.accumulators) {
    if (sums.last <= last && !sums.returned[w]) Return(sums, warp, line);
  }
  for (int t = warp * kWarp; t < (warp + 1) * kWarp; ++t) {
    threads_[static_cast<size_t>(t)].fenced = false;
    if (last > 0) shadow_.progress().Tell(group.counters[w], t, last);
  }
  const auto all = [](const std::array<bool, kWarpsOfGroup>& of) {
    return std::count(of.begin(), of.end(), true) == kWarpsOfGroup;
  };
  while (!group.products.empty() && all(group.products.front().waited)) group.products.pop_front();
  group.accumulators.remove_if([&](const Accumulator& sums) { return all(sums.returned); });
}

void Machine::CheckFactors(const Product& product, int warp, int line) {
  const size_t bytes = FactorBytes(product.call);
  for (int lane = 0; lane < kWarp; ++lane) {
    const int i = warp % kWarpsOfGroup * kWarp + lane;
    const auto* then = product.factors.data() + static_cast<size_t>(i) * bytes;
    if (std::memcmp(product.a[i], then, bytes) == 0) continue;
    Fail(warp * kWarp + lane, line,
         absl::StrCat("the registers of A were written before the product of line ",
                      product.call.line, " had been waited for"));
  }
}

void Machine::Return(Accumulator& sums, int warp, int line) {
  const int w = warp % kWarpsOfGroup;
  sums.returned[w] = true;
  for (int lane = 0; lane < kWarp; ++lane) {
    const int i = w * kWarp + lane, thread = warp * kWarp + lane;
    auto* const at = static_cast<unsigned char*>(sums.at[i]);
    if (std::any_of(at, at + sums.bytes, [](unsigned char x) { return x != kPoison; })) {
      Fail(thread, line, "the registers of a sum were written while its product was under way");
    }
    std::memcpy(at, sums.of(i), sums.bytes);
    for (Registers& r : threads_[static_cast<size_t>(thread)].registers) {
      if (r.at == at) r.is_fenced = false;
    }
  }
}

}  // namespace tl::emulate
