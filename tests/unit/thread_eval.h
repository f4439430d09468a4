// Runs code of level Thread on the host, for tests of the passes: every thread of a block is a
// fiber, which of them runs next is random, and accesses that no barrier orders are reported.
//
// On-chip memory starts as NaNs; every access is checked against its buffer's storage. Asynchronous
// moves read and write at a random moment between issue and wait, and whoever touches their
// destination in between is reported. Instructions of a warp run when all its lanes have come.
#ifndef TILEJIT_TESTS_UNIT_THREAD_EVAL_H_
#define TILEJIT_TESTS_UNIT_THREAD_EVAL_H_

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/host_eval.h"
#include "ir/module.h"
#include "layout/matrix_fragments.h"

namespace tl::testing {

struct ThreadEvalArgs {
  std::vector<void*> operands;
  std::vector<void*> workspaces;
  std::vector<int64_t> dims, strides;
  std::vector<ScalarValue> scalars;
};

class ThreadEval {
 public:
  // `threads` per group; 0: one thread runs a block, groups one after the other. `atoms` are the
  // target's: where it has some, fragments lie in the registers of as many threads as each launch
  // has chosen.
  ThreadEval(const Module& module, const ThreadEvalArgs& args, int threads, uint64_t seed,
             std::vector<MatrixAtom> atoms = {})
      : m_(module),
        args_(args),
        atoms_(std::move(atoms)),
        single_(threads == 0),
        threads_(std::max(threads, 1)),
        rng_(seed) {
    for (size_t i = 0; i < m_.operands.size(); ++i) Bind(m_.operands[i], args.operands[i]);
    for (size_t i = 0; i < m_.workspaces.size(); ++i) Bind(m_.workspaces[i], args.workspaces[i]);
  }

  // What went wrong, or nothing.
  std::string Run() {
    for (const Launch& launch : m_.launches) {
      launch_ = &launch;
      group_size_ = !atoms_.empty() && launch.threads > 0 ? launch.threads : threads_;
      int64_t blocks = 1;
      for (const GridAxis& axis : launch.axes) blocks *= std::max<int64_t>(Host(axis.extent), 0);
      // Persistent ones go through the grid's points with any number of blocks.
      if (launch.resident != kNoId) blocks = std::min<int64_t>(blocks, 1 + rng_() % 3);
      grid_ = blocks;
      for (int64_t b = 0; b < blocks && error_.empty(); ++b) RunBlock(b);
    }
    return error_;
  }

  int64_t barriers() const { return barriers_; }  // waits of whole teams

 private:
  struct Value {
    int64_t i = 0;
    double f = 0;
  };
  using Clock = std::vector<uint32_t>;
  enum class State { kReady, kAtBlockBarrier, kAtGroupBarrier, kAtChannel, kAtWarp, kDone };
  static constexpr int kLanes = 32;

  // An asynchronous move under way.
  struct Flight {
    BufferId dst, src;
    int64_t dst_offset, src_offset;
    int count;
    bool inside, landed;
  };

  struct Fiber {
    int id = 0;
    int group = 0;
    State state = State::kReady;
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    std::vector<Value> vars;
    std::map<BufferId, std::vector<char>> locals;
    std::map<BufferId, int64_t> sent, received;
    Clock clock;
    // The warp instruction at which this lane waits, and what it brings.
    const Stmt* at_warp = nullptr;
    Value brought;
    // The open group is the last one.
    std::vector<std::vector<Flight>> groups = {{}};
  };

  // The last accesses to one byte of the arena or one element of a tensor.
  struct Cell {
    int writer = -1;
    uint32_t write_time = 0;
    bool atomic = false;
    bool flying = false;  // an asynchronous move will write it, or has
    Clock reads;
  };

  struct Memory {
    char* data = nullptr;
    int64_t elements = 0;
    std::vector<Cell> cells;  // empty until touched
  };

  struct Ring {
    int64_t full = 0, free = 0;  // releases by threads of the sender, of the receiver
    Clock sender, receiver;
  };
  struct MbarrierState {
    int64_t arrivals = 0, missing = 0, phase = 0;
    Clock gathered, told;
  };

  void Bind(BufferId id, void* data) {
    Memory& mem = memory_[id];
    mem.data = static_cast<char*>(data);
    mem.elements = Host(StorageSize(m_, id));
  }

  int64_t Host(const ExprRef& e) {
    const StatusOr<int64_t> v = EvalHost(m_, e, {args_.dims, args_.strides, args_.scalars});
    if (!v.ok()) Fail(std::string(v.status().message()));
    return v.ok() ? *v : 0;
  }

  void Fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  // ---- Fibers

  int Groups() const { return single_ ? 1 : launch_->groups; }

  void RunBlock(int64_t block) {
    block_ = block;
    const int count = group_size_ * Groups();
    arena_.assign(launch_->arena_bytes, '\xff');
    arena_cells_.assign(launch_->arena_bytes, {});
    for (auto& [id, mem] : memory_) mem.cells.assign(mem.elements, {});
    rings_.clear();
    mbarriers_.clear();
    fibers_.clear();
    for (int t = 0; t < count; ++t) {
      auto f = std::make_unique<Fiber>();
      f->id = t;
      f->group = t / group_size_;
      f->vars.resize(m_.vars.size());
      f->clock.assign(count, 0);
      f->clock[t] = 1;
      StartFiber(*f);
      fibers_.push_back(std::move(f));
    }
    Schedule();
  }

  static constexpr size_t kStack = 256 * 1024;

  void StartFiber(Fiber& f) {
    f.stack = std::make_unique<char[]>(kStack);
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = kStack;
    f.context.uc_link = &scheduler_;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&f.context, reinterpret_cast<void (*)()>(&ThreadEval::Enter), 2,
                static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
  }

  static void Enter(unsigned low, unsigned high) {
    auto* self = reinterpret_cast<ThreadEval*>(uintptr_t{low} | uintptr_t{high} << 32);
    self->BindParameters();
    self->Exec(self->launch_->body);
    for (const std::vector<Flight>& group : self->cur_->groups) {
      if (!group.empty()) self->Fail("asynchronous moves are under way at the end of a block");
    }
    self->cur_->state = State::kDone;
  }

  void Schedule() {
    for (;;) {
      std::vector<Fiber*> ready;
      for (auto& f : fibers_) {
        if (f->state == State::kReady) ready.push_back(f.get());
      }
      if (!error_.empty()) return;
      if (ready.empty()) {
        if (!Release()) return;
        continue;
      }
      cur_ = ready[std::uniform_int_distribution<size_t>(0, ready.size() - 1)(rng_)];
      swapcontext(&scheduler_, &cur_->context);
    }
  }

  // Opens barriers that all of a team have reached; false when all are done or nothing can go on.
  bool Release() {
    bool opened = false;
    for (int g = 0; g < Groups(); ++g) {
      std::vector<Fiber*> team;
      for (auto& f : fibers_) {
        if (f->group == g) team.push_back(f.get());
      }
      opened = Open(team, State::kAtGroupBarrier) || opened;
    }
    std::vector<Fiber*> all;
    bool done = true;
    for (auto& f : fibers_) {
      all.push_back(f.get());
      done = done && f->state == State::kDone;
      if (f->state == State::kAtChannel && ring_moved_) f->state = State::kReady, opened = true;
    }
    ring_moved_ = false;
    opened = Open(all, State::kAtBlockBarrier) || opened;
    if (!opened && !done) Fail("the threads of a block wait for each other in vain");
    return opened;
  }

  bool Open(const std::vector<Fiber*>& team, State at) {
    for (Fiber* f : team) {
      if (f->state != at) return false;
    }
    Clock joined(fibers_.size(), 0);
    for (Fiber* f : team) Join(joined, f->clock);
    for (Fiber* f : team) {
      f->clock = joined;
      ++f->clock[f->id];
      f->state = State::kReady;
    }
    ++barriers_;
    return true;
  }

  static void Join(Clock& into, const Clock& from) {
    into.resize(std::max(into.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
  }

  void Wait(State state) {
    cur_->state = state;
    Fiber* const self = cur_;
    swapcontext(&self->context, &scheduler_);
  }

  // ---- Accesses

  void Check(Cell& cell, bool write, bool atomic, const std::string& name) {
    const Clock& now = cur_->clock;
    if (cell.flying) Fail(absl::StrCat("'", name, "' is touched while a move is under way"));
    const bool ordered = cell.writer < 0 || cell.writer == cur_->id ||
                         cell.write_time <= now[cell.writer] || (atomic && cell.atomic);
    if (!ordered) {
      Fail(absl::StrCat("race on '", name, "': ", write ? "write" : "read", " after a write"));
    }
    if (!write) {
      cell.reads.resize(fibers_.size());
      cell.reads[cur_->id] = now[cur_->id];
      return;
    }
    for (size_t t = 0; t < cell.reads.size(); ++t) {
      if (static_cast<int>(t) != cur_->id && cell.reads[t] > now[t]) {
        Fail(absl::StrCat("race on '", name, "': write after a read"));
      }
    }
    cell.writer = cur_->id;
    cell.write_time = now[cur_->id];
    cell.atomic = atomic;
  }

  // Address of an element after all checks; null on failure.
  char* At(BufferId id, int64_t offset, bool write, bool atomic = false) {
    const Buffer& b = m_.buffer(id);
    const int64_t size = SizeOf(b.dtype);
    const int64_t count =
        b.scope == Scope::kGlobal
            ? memory_[id].elements
            : b.num_elements() * std::max<int64_t>(b.scope == Scope::kChannel ? b.depth : 1, 1);
    if (offset < 0 || offset >= count) {
      Fail(absl::StrCat("'", b.name, "' has ", count, " elements, accessed is ", offset));
      return nullptr;
    }
    if (b.scope == Scope::kGlobal) {
      Memory& mem = memory_[id];
      Check(mem.cells[offset], write, atomic, b.name);
      return mem.data + offset * size;
    }
    if (b.scope == Scope::kLocal) return cur_->locals[id].data() + offset * size;
    const int64_t byte = b.arena_offset + offset * size;
    if (b.arena_offset < 0 || byte + size > launch_->arena_bytes) {
      Fail(absl::StrCat("'", b.name, "' lies outside the arena"));
      return nullptr;
    }
    for (int64_t i = 0; i < size; ++i) Check(arena_cells_[byte + i], write, atomic, b.name);
    return arena_.data() + byte;
  }

  // ---- Vectors and asynchronous moves

  bool Aligned(BufferId id, int64_t offset, int64_t bytes) {
    const Buffer& b = m_.buffer(id);
    int64_t place = offset * static_cast<int64_t>(SizeOf(b.dtype));
    if (b.scope == Scope::kGlobal) place += reinterpret_cast<uintptr_t>(memory_[id].data);
    if (b.scope != Scope::kGlobal && b.scope != Scope::kLocal) place += b.arena_offset;
    if (place % bytes != 0) {
      Fail(absl::StrCat("'", b.name, "': ", bytes, " bytes at element ", offset, " not aligned"));
    }
    return place % bytes == 0;
  }

  void ExecVector(const VectorMove& x) {
    const int64_t dst = Eval(x.dst_offset).i, src = Eval(x.src_offset).i;
    const auto size = static_cast<int64_t>(SizeOf(m_.buffer(x.src).dtype));
    if (!Aligned(x.dst, dst, x.count * size) || !Aligned(x.src, src, x.count * size)) return;
    for (int i = 0; i < x.count; ++i) {
      const char* from = At(x.src, src + i, false);
      char* to = At(x.dst, dst + i, true);
      if (from && to) std::memmove(to, from, size);
    }
  }

  void ExecAsync(const AsyncMove& x) {
    Flight f{
        x.dst, x.src, Eval(x.dst_offset).i, Eval(x.src_offset).i, x.count, Eval(x.inside).i != 0,
        false};
    const auto size = static_cast<int64_t>(SizeOf(m_.buffer(x.src).dtype));
    if (!Aligned(x.dst, f.dst_offset, x.count * size)) return;
    if (f.inside && !Aligned(x.src, f.src_offset, x.count * size)) return;
    for (int i = 0; i < x.count; ++i) {
      if (f.inside && !At(x.src, f.src_offset + i, false)) return;
      if (!At(x.dst, f.dst_offset + i, true)) return;
      std::memset(At(x.dst, f.dst_offset + i, true), '\xff', size);
    }
    if (rng_() % 2) Land(f);
    SetFlying(f, true);
    cur_->groups.back().push_back(f);
  }

  void SetFlying(const Flight& f, bool flying) {
    const Buffer& b = m_.buffer(f.dst);
    const auto size = static_cast<int64_t>(SizeOf(b.dtype));
    const int64_t first = b.arena_offset + f.dst_offset * size;
    for (int64_t i = first; i < first + f.count * size; ++i) arena_cells_[i].flying = flying;
  }

  void Land(Flight& f) {
    const auto size = static_cast<int64_t>(SizeOf(m_.buffer(f.dst).dtype));
    for (int i = 0; i < f.count; ++i) {
      const char* from = f.inside ? memory_[f.src].data + (f.src_offset + i) * size : nullptr;
      char* to = At(f.dst, f.dst_offset + i, true);
      if (!to) return;
      from ? std::memcpy(to, from, size) : std::memset(to, 0, size);
    }
    f.landed = true;
  }

  // To others it looks as if this thread had written at the moment of its wait.
  void WaitForMoves(int pending) {
    std::vector<std::vector<Flight>>& groups = cur_->groups;
    const int complete = std::max(static_cast<int>(groups.size()) - 1 - pending, 0);
    for (int g = 0; g < complete; ++g) {
      for (Flight& f : groups[g]) {
        SetFlying(f, false);
        if (!f.landed) {
          Land(f);
        } else {
          for (int i = 0; i < f.count; ++i) At(f.dst, f.dst_offset + i, true);
        }
      }
    }
    groups.erase(groups.begin(), groups.begin() + complete);
  }

  // ---- Instructions of a warp

  // Waits until all lanes have come; the last one runs it for all.
  void MeetLanes(const Stmt& s) { MeetLanes(s, Value()); }
  void MeetLanes(const Stmt& s, Value brought) {
    Fiber& self = *cur_;
    self.at_warp = &s;
    self.brought = brought;
    std::vector<Fiber*> lanes;
    for (auto& f : fibers_) {
      if (f->id / kLanes == self.id / kLanes) lanes.push_back(f.get());
    }
    if (lanes.size() != kLanes) return Fail("an instruction of a warp that is not whole");
    for (Fiber* f : lanes) {
      if (f->at_warp == &s) continue;
      if (f->at_warp) return Fail("lanes of a warp meet at different instructions");
      return Wait(State::kAtWarp);
    }
    if (const auto* x = std::get_if<LoadMatrix>(&s.node)) ExecLoadMatrix(*x, lanes);
    if (const auto* x = std::get_if<StoreMatrix>(&s.node)) ExecStoreMatrix(*x, lanes);
    if (const auto* x = std::get_if<Mma>(&s.node)) ExecMma(*x, lanes);
    if (const auto* x = std::get_if<LaneExchange>(&s.node)) {
      for (int i = 0; i < kLanes; ++i) lanes[i]->vars[x->var] = lanes[i ^ x->mask]->brought;
    }
    cur_ = &self;
    for (Fiber* f : lanes) f->at_warp = nullptr, f->state = State::kReady;
  }

  void ExecLoadMatrix(const LoadMatrix& x, const std::vector<Fiber*>& lanes) {
    const auto size = static_cast<int64_t>(SizeOf(m_.buffer(x.src).dtype));
    const int64_t row_elements = 16 / size;
    char rows[4][8][16];
    for (int i = 0; i < 8 * x.matrices; ++i) {
      cur_ = lanes[i];
      const int64_t start = Eval(x.src_offset).i;
      if (!Aligned(x.src, start, 16)) return;
      for (int64_t e = 0; e < row_elements; ++e) {
        const char* from = At(x.src, start + e, false);
        if (!from) return;
        std::memcpy(rows[i / 8][i % 8] + e * size, from, size);
      }
    }
    for (int i = 0; i < kLanes; ++i) {
      cur_ = lanes[i];
      const int64_t dst = Eval(x.dst_offset).i;
      for (int m = 0; m < x.matrices; ++m) {
        char word[4];
        std::memcpy(word, &rows[m][i / 4][i % 4 * 4], 4);
        if (x.transpose) {
          std::memcpy(word, &rows[m][2 * (i % 4)][i / 4 * 2], 2);
          std::memcpy(word + 2, &rows[m][2 * (i % 4) + 1][i / 4 * 2], 2);
        }
        const int64_t per_word = 4 / size;
        for (int64_t e = 0; e < per_word; ++e) {
          char* to = At(x.dst, dst + m * per_word + e, true);
          if (to) std::memcpy(to, word + e * size, size);
        }
      }
    }
  }

  // In the name of the lane that holds an element; where it goes, another one says.
  void ExecStoreMatrix(const StoreMatrix& x, const std::vector<Fiber*>& lanes) {
    constexpr int64_t kSize = 2;
    for (int m = 0; m < x.matrices; ++m) {
      int64_t rows[8];
      for (int row = 0; row < 8; ++row) {
        cur_ = lanes[8 * m + row];
        rows[row] = Eval(x.dst_offset).i;
        if (!Aligned(x.dst, rows[row], 16)) return;
      }
      for (int i = 0; i < kLanes; ++i) {
        cur_ = lanes[i];
        const int64_t src = Eval(x.src_offset).i + 2 * m;
        for (int e = 0; e < 2; ++e) {
          const int row = x.transpose ? 2 * (i % 4) + e : i / 4;
          const int col = x.transpose ? i / 4 : 2 * (i % 4) + e;
          const char* from = At(x.src, src + e, false);
          char* to = At(x.dst, rows[row] + col, true);
          if (from && to) std::memcpy(to, from, kSize);
        }
      }
    }
  }

  // Registers of all lanes as a matrix, row-major.
  std::vector<double> Gather(const FragmentLayout& layout, BufferId array, const ExprRef& offset,
                             const std::vector<Fiber*>& lanes) {
    std::vector<double> matrix(layout.padded_elements());
    for (int i = 0; i < kLanes; ++i) {
      cur_ = lanes[i];
      const int64_t first = Eval(offset).i;
      for (int64_t s = 0; s < layout.slots(); ++s) {
        const char* p = At(array, first + s, false);
        if (p) matrix[layout.At({0, 0, i, s})] = LoadElement(m_.buffer(array).dtype, p);
      }
    }
    return matrix;
  }

  static double ToTf32(double v) {
    const auto single = static_cast<float>(v);
    uint32_t bits;
    std::memcpy(&bits, &single, 4);
    bits = (bits + 0x1000) & ~uint32_t{0x1fff};
    float rounded;
    std::memcpy(&rounded, &bits, 4);
    return rounded;
  }

  void ExecMma(const Mma& x, const std::vector<Fiber*>& lanes) {
    if (static_cast<size_t>(x.atom) >= atoms_.size()) return Fail("no such matrix instruction");
    const MatrixAtom& atom = atoms_[x.atom];
    std::vector<double> a = Gather(AtomA(atom), x.a, x.a_offset, lanes);
    std::vector<double> b = Gather(AtomB(atom), x.b, x.b_offset, lanes);
    const FragmentLayout layout = AtomC(atom);
    std::vector<double> c = Gather(layout, x.c, x.c_offset, lanes);
    if (atom.tf32) {
      for (std::vector<double>* m : {&a, &b})
        std::transform(m->begin(), m->end(), m->begin(), ToTf32);
    }
    for (int i = 0; i < atom.m; ++i) {
      for (int j = 0; j < atom.n; ++j) {
        for (int k = 0; k < atom.k; ++k) c[i * atom.n + j] += a[i * atom.k + k] * b[j * atom.k + k];
      }
    }
    for (int i = 0; i < kLanes; ++i) {
      cur_ = lanes[i];
      const int64_t first = Eval(x.c_offset).i;
      for (int64_t s = 0; s < layout.slots(); ++s) {
        char* p = At(x.c, first + s, true);
        if (p) StoreElement(m_.buffer(x.c).dtype, p, c[layout.At({0, 0, i, s})]);
      }
    }
  }

  static Value Get(DType t, const void* p) {
    Value v;
    if (IsFloat(t)) {
      v.f = LoadElement(t, p);
    } else {
      v.i = LoadInt(t, p);
    }
    return v;
  }

  static void Put(DType t, void* p, Value v) {
    if (IsFloat(t)) {
      StoreElement(t, p, v.f);
    } else {
      StoreInt(t, p, v.i);
    }
  }

  // ---- Expressions

  static double Rounded(ScalarType type, double v) {
    return type == ScalarType::kF32 ? static_cast<float>(v) : v;
  }

  Value Eval(const ExprRef& e) {
    Value v;
    if (!error_.empty()) return v;
    if (const auto* x = As<IntLit>(e)) return {x->value, 0};
    if (const auto* x = As<FloatLit>(e)) return {0, x->value};
    if (const auto* x = As<BoolLit>(e)) return {x->value, 0};
    if (const auto* x = As<VarRef>(e)) return cur_->vars[x->var];
    if (const auto* x = As<Unary>(e)) {
      v = Eval(x->arg);
      if (x->op == UnaryOp::kNot) return {!v.i, 0};
      return {EvalInt(BinaryOp::kSub, 0, v.i), -v.f};
    }
    if (const auto* x = As<Select>(e)) return Eval(Eval(x->cond).i ? x->yes : x->no);
    if (const auto* x = As<Binary>(e)) return EvalBinary(*x, e->type);
    if (const auto* x = As<Call>(e)) return EvalCall(*x, e->type);
    if (const auto* x = As<Cast>(e)) return EvalCast(*x);
    if (const auto* x = As<Load>(e)) {
      const char* p = At(x->buffer, Eval(x->index[0]).i, false);
      return p ? Get(m_.buffer(x->buffer).dtype, p) : v;
    }
    if (const auto* x = As<IsAligned>(e)) {
      return {reinterpret_cast<uintptr_t>(memory_[x->buffer].data) % x->bytes == 0, 0};
    }
    Fail("an expression that level Thread does not have");
    return v;
  }

  Value EvalBinary(const Binary& x, ScalarType type) {
    const Value a = Eval(x.lhs);
    if (x.op == BinaryOp::kAnd && !a.i) return {0, 0};
    if (x.op == BinaryOp::kOr && a.i) return {1, 0};
    const Value b = Eval(x.rhs);
    if (!IsFloat(x.lhs->type)) return {EvalInt(x.op, a.i, b.i), 0};
    switch (x.op) {
      case BinaryOp::kAdd:
        return {0, Rounded(type, a.f + b.f)};
      case BinaryOp::kSub:
        return {0, Rounded(type, a.f - b.f)};
      case BinaryOp::kMul:
        return {0, Rounded(type, a.f * b.f)};
      case BinaryOp::kDiv:
        return {0, Rounded(type, a.f / b.f)};
      case BinaryOp::kMin:
        return {0, std::fmin(a.f, b.f)};
      case BinaryOp::kMax:
        return {0, std::fmax(a.f, b.f)};
      case BinaryOp::kLt:
        return {a.f < b.f, 0};
      case BinaryOp::kLe:
        return {a.f <= b.f, 0};
      case BinaryOp::kGt:
        return {a.f > b.f, 0};
      case BinaryOp::kGe:
        return {a.f >= b.f, 0};
      case BinaryOp::kEq:
        return {a.f == b.f, 0};
      case BinaryOp::kNe:
        return {a.f != b.f, 0};
      default:
        Fail("an operator that floats do not have");
        return {};
    }
  }

  Value EvalCall(const Call& x, ScalarType type) {
    const Value a = Eval(x.args[0]);
    if (type == ScalarType::kInt) return {std::abs(a.i), 0};
    const double b = x.args.size() > 1 ? Eval(x.args[1]).f : 0;
    switch (x.fn) {
      case MathFn::kExp:
        return {0, Rounded(type, std::exp(a.f))};
      case MathFn::kExp2:
        return {0, Rounded(type, std::exp2(a.f))};
      case MathFn::kLog:
        return {0, Rounded(type, std::log(a.f))};
      case MathFn::kSqrt:
        return {0, Rounded(type, std::sqrt(a.f))};
      case MathFn::kRsqrt:
        return {0, Rounded(type, 1 / std::sqrt(a.f))};
      case MathFn::kTanh:
        return {0, Rounded(type, std::tanh(a.f))};
      case MathFn::kPow:
        return {0, Rounded(type, std::pow(a.f, b))};
      case MathFn::kAbs:
        return {0, std::fabs(a.f)};
      case MathFn::kFin:
        return {0, std::isfinite(a.f) ? a.f : 0};
      case MathFn::kLog2:
        return {0, Rounded(type, std::log2(a.f))};
      case MathFn::kErf:
        return {0, Rounded(type, std::erf(a.f))};
      case MathFn::kSigmoid:
        return {0, Rounded(type, 1 / (1 + std::exp(-a.f)))};
      case MathFn::kSin:
        return {0, Rounded(type, std::sin(a.f))};
      case MathFn::kCos:
        return {0, Rounded(type, std::cos(a.f))};
      case MathFn::kFloor:
        return {0, std::floor(a.f)};
      case MathFn::kCeil:
        return {0, std::ceil(a.f)};
      case MathFn::kRound:
        return {0, std::nearbyint(a.f)};
    }
    return {};
  }

  Value EvalCast(const Cast& x) {
    const Value a = Eval(x.arg);
    const bool from_float = IsFloat(x.arg->type);
    if (IsFloat(x.to)) return {0, RoundTo(x.to, from_float ? a.f : static_cast<double>(a.i))};
    if (from_float) return {static_cast<int64_t>(RoundTo(x.to, a.f)), 0};
    return {x.to == DType::kBool ? a.i != 0 : WrapTo(x.to, a.i), 0};
  }

  // ---- Statements

  void BindParameters() {
    std::vector<Value>& vars = cur_->vars;
    for (size_t i = 0; i < m_.dims.size(); ++i) vars[m_.dims[i]].i = args_.dims[i];
    for (size_t i = 0; i < m_.strides.size(); ++i) vars[m_.strides[i]].i = args_.strides[i];
    for (size_t i = 0; i < m_.scalars.size(); ++i) {
      const bool is_float = IsFloat(m_.var(m_.scalars[i]).type);
      vars[m_.scalars[i]] = is_float ? Value{0, args_.scalars[i].f} : Value{args_.scalars[i].i, 0};
    }
    if (launch_->resident != kNoId) {
      vars[launch_->resident].i = block_;
      vars[launch_->grid].i = grid_;
    } else {
      vars[launch_->block].i = block_;
    }
    vars[launch_->thread].i = cur_->id;
    vars[launch_->group].i = cur_->group;
    vars[launch_->group_thread].i = cur_->id % group_size_;
  }

  int TeamSize(Team team) const {
    return team == Team::kGroup ? group_size_ : static_cast<int>(fibers_.size());
  }
  int Rank(Team team) const {
    constexpr int kWarp = 32;
    return cur_->id % (team == Team::kWarp ? kWarp : TeamSize(team));
  }

  void Exec(const Block& block) {
    for (const StmtRef& s : block) {
      if (!error_.empty()) return;
      Exec(s);
    }
  }

  void Exec(const StmtRef& s) {
    if (const auto* x = As<Let>(s)) {
      cur_->vars[x->var] = Eval(x->value);
    } else if (const auto* x = As<Assign>(s)) {
      Value v = Eval(x->value);
      const DType t = m_.var(x->var).dtype;
      cur_->vars[x->var] = IsFloat(t) ? Value{0, RoundTo(t, v.f)} : Value{WrapTo(t, v.i), 0};
    } else if (const auto* x = As<Alloc>(s)) {
      const Buffer& b = m_.buffer(x->buffer);
      if (b.scope == Scope::kLocal) {
        cur_->locals[x->buffer].assign(b.num_elements() * SizeOf(b.dtype), '\xff');
      }
    } else if (const auto* x = As<Store>(s)) {
      const Value v = Eval(x->value);
      char* p = At(x->buffer, Eval(x->index[0]).i, true);
      if (p) Put(m_.buffer(x->buffer).dtype, p, v);
    } else if (const auto* x = As<AtomicElement>(s)) {
      ExecAtomic(*x);
    } else if (const auto* x = As<For>(s)) {
      ExecFor(*x);
    } else if (const auto* x = As<If>(s)) {
      Exec(Eval(x->cond).i ? x->then_body : x->else_body);
    } else if (const auto* x = As<ThreadFor>(s)) {
      const int64_t extent = Eval(x->extent).i;
      for (int64_t i = Rank(x->team); i < extent && error_.empty(); i += TeamSize(x->team)) {
        cur_->vars[x->var].i = i;
        Exec(x->body);
      }
    } else if (const auto* x = As<Barrier>(s); x && x->team == Team::kWarp) {
      MeetLanes(*s);
    } else if (const auto* x = As<Barrier>(s)) {
      Wait(x->team == Team::kGroup ? State::kAtGroupBarrier : State::kAtBlockBarrier);
    } else if (const auto* x = As<OnFirstThread>(s)) {
      if (Rank(x->team) == 0) Exec(x->body);
    } else if (const auto* x = As<ChannelAcquire>(s)) {
      Acquire(*x);
    } else if (const auto* x = As<ChannelRelease>(s)) {
      Ring& ring = rings_[x->channel];
      ++(x->send ? ring.full : ring.free);
      Join(x->send ? ring.sender : ring.receiver, cur_->clock);
      ++cur_->clock[cur_->id];
      ring_moved_ = true;
    } else {
      ExecNearTarget(s);
    }
  }

  void ExecNearTarget(const StmtRef& s) {
    if (const auto* x = As<SlotFor>(s)) {
      for (int64_t i = 0; i < x->count && error_.empty(); ++i) {
        cur_->vars[x->var].i = i;
        Exec(x->body);
      }
    } else if (const auto* x = As<VectorMove>(s)) {
      ExecVector(*x);
    } else if (const auto* x = As<AsyncMove>(s)) {
      ExecAsync(*x);
    } else if (const auto* x = As<Mbarrier>(s)) {
      ExecMbarrier(*x);
    } else if (As<AsyncCommit>(s)) {
      cur_->groups.emplace_back();
    } else if (const auto* x = As<AsyncWait>(s)) {
      WaitForMoves(x->pending);
    } else if (const auto* x = As<LaneExchange>(s)) {
      MeetLanes(*s, Eval(x->value));
    } else if (As<LoadMatrix>(s) || As<StoreMatrix>(s) || As<Mma>(s)) {
      MeetLanes(*s);
    } else if (As<MbarrierFence>(s)) {
      Fail("clusters, as boxes, are for the emulator");
    } else {
      Fail("a statement that level Thread does not have");
    }
  }

  void ExecFor(const For& loop) {
    const int64_t begin = Eval(loop.begin).i, end = Eval(loop.end).i;
    for (int64_t i = 0; i < end - begin && error_.empty(); ++i) {
      cur_->vars[loop.var].i = loop.down ? end - 1 - i : begin + i;
      Exec(loop.body);
    }
  }

  void ExecAtomic(const AtomicElement& x) {
    const DType t = m_.buffer(x.buffer).dtype;
    const Value v = Eval(x.value);
    char* p = At(x.buffer, Eval(x.index[0]).i, true, true);
    if (!p) return;
    const Value old = Get(t, p);
    const BinaryOp op = x.op == AtomicOp::kAdd   ? BinaryOp::kAdd
                        : x.op == AtomicOp::kMax ? BinaryOp::kMax
                                                 : BinaryOp::kMin;
    const double f = x.op == AtomicOp::kAdd   ? old.f + v.f
                     : x.op == AtomicOp::kMax ? std::fmax(old.f, v.f)
                                              : std::fmin(old.f, v.f);
    Put(t, p, {EvalInt(op, old.i, v.i), f});
  }

  void Acquire(const ChannelAcquire& x) {
    const int64_t depth = m_.buffer(x.channel).depth;
    int64_t& mine = (x.send ? cur_->sent : cur_->received)[x.channel];
    const auto ready = [&] {
      const Ring& ring = rings_[x.channel];
      return x.send ? mine < ring.free / group_size_ + depth : mine < ring.full / group_size_;
    };
    while (!ready() && error_.empty()) Wait(State::kAtChannel);
    cur_->vars[x.slot].i = mine++ % depth;
    Join(cur_->clock, x.send ? rings_[x.channel].receiver : rings_[x.channel].sender);
  }

  void ExecMbarrier(const Mbarrier& x) {
    MbarrierState& b = mbarriers_[{x.barriers, Eval(x.index).i}];
    const int64_t value = x.value ? Eval(x.value).i : 0;
    switch (x.op) {
      case Mbarrier::Op::kInit:
        b = {.arrivals = value, .missing = value};
        return;
      case Mbarrier::Op::kArrive:
        if (b.arrivals == 0) return Fail("an mbarrier is used before it is made");
        Join(b.gathered, cur_->clock);
        ++cur_->clock[cur_->id];
        if (--b.missing > 0) return;
        ++b.phase;
        b.missing = b.arrivals;
        b.told = std::exchange(b.gathered, {});
        ring_moved_ = true;
        return;
      case Mbarrier::Op::kExpect:
        return Fail("boxes are for the emulator");
      case Mbarrier::Op::kWait:
        while (b.phase % 2 == value && error_.empty()) Wait(State::kAtChannel);
        Join(cur_->clock, b.told);
        return;
    }
  }

  const Module& m_;
  const ThreadEvalArgs& args_;
  const std::vector<MatrixAtom> atoms_;
  const bool single_;
  const int threads_;
  int group_size_ = 1;  // of the present launch
  std::mt19937_64 rng_;
  const Launch* launch_ = nullptr;
  int64_t block_ = 0, grid_ = 1;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* cur_ = nullptr;
  ucontext_t scheduler_;
  std::vector<char> arena_;
  std::vector<Cell> arena_cells_;
  std::map<BufferId, Memory> memory_;
  std::map<BufferId, Ring> rings_;
  std::map<std::pair<BufferId, int64_t>, MbarrierState> mbarriers_;
  bool ring_moved_ = false;
  int64_t barriers_ = 0;
  std::string error_;
};

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_THREAD_EVAL_H_
