// One block of threads at a time, each thread a fiber; or one cluster of blocks.
//
// Threads are numbered, and bytes of shared memory lie, block by block of the cluster: all that is
// known of who has done what before whom holds across them.
//
// Threads take turns in a random order: at barriers and warp instructions, and now and then at an
// access to shared memory. What a GPU would let pass unseen is an error here that ends the launch.
#ifndef TILEJIT_BACKENDS_EMULATE_MACHINE_H_
#define TILEJIT_BACKENDS_EMULATE_MACHINE_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/emulate/api.h"
#include "backends/emulate/bank_log.h"
#include "backends/emulate/bulk.h"
#include "backends/emulate/fiber.h"
#include "backends/emulate/options.h"
#include "backends/emulate/shadow.h"
#include "backends/emulate/warpgroup.h"

namespace tl::emulate {

inline constexpr int kWarp = 32;       // of warpgroups
inline constexpr int kMostLanes = 64;  // of a warp
inline constexpr int kHardwareBarriers = 16;

class Machine {
 public:
  Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  TlApi* api() { return &api_; }

  struct LaunchShape {
    int64_t blocks;
    int threads, groups;  // of equal size, but for the last `producers` threads
    int producers;
    int shared_bytes;
    int cluster = 1;  // blocks that run together; theirs are whole warpgroups where it is not 1
  };
  // Why the launch failed, or "".
  std::string Run(TlBody* body, const LaunchShape& shape, void** params, const TlExtent* extents,
                  const EmulateOptions& options, EmulateStats* stats);

 private:
  enum class State : uint8_t { kReady, kAtBarrier, kAtMbarrier, kInWarp, kInWarpgroup, kDone };

  // An asynchronous copy under way.
  struct Flight {
    int offset, bytes;
    const void* from;  // null: zeros arrive
    int64_t group;     // number of its group among the thread's
    bool landed;
  };
  struct Thread {
    Context context;
    State state;
    int barrier;       // kAtBarrier: index of its team
    TlPlace mbarrier;  // kAtMbarrier
    int line;          // where it waits
    std::vector<Flight> flights;
    int64_t groups;  // committed
    bool fenced;     // wgmma.fence since its last wait for products
    std::vector<Registers> registers;
    std::vector<BulkStore> stores;
    int64_t store_groups;  // committed
    uint32_t stores_issued;
    int store_reader, store_counter;  // of Shadow, of Progress; reader -1: none yet
    uint32_t remote_arrivals;
    int arrival_counter;  // of Progress: of those; -1: none yet
  };
  // A tile that a matrix descriptor was made for.
  struct Tile {
    const char* name;
    unsigned begin, end;
  };
  // A warp instruction whose lanes gather.
  struct WarpOp {
    enum Kind : uint8_t {
      kLoadMatrix,
      kStoreMatrix,
      kMma,
      kLaneXor,
      kWgmmaFence,
      kWgmmaCommit,
      kWgmmaWait,
      kRegisters
    };
    Kind kind;
    int line, detail;  // detail: matrices and transposition, atom, mask
    int arrived = 0;
    std::array<void*, kMostLanes> out;
    std::array<const void*, kMostLanes> a, b;
    std::array<TlPlace, kMostLanes> places;
    std::array<bool, kMostLanes> inside;
    std::array<unsigned long long, kMostLanes> values, results;
  };

  int lane() const { return running_ % lanes_; }  // of the thread that runs

  static Machine& Self(void* self) { return *static_cast<Machine*>(self); }
  static void FiberMain(void* self);

  uint64_t Random();
  bool OneIn(int n) { return Random() % static_cast<uint64_t>(n) == 0; }
  void Reserve(const LaunchShape& shape);
  void RunCluster(int64_t cluster);
  // Makes it the thread that runs; the caller switches to it.
  void Choose(int thread);
  int threads() const { return shape_.threads * shape_.cluster; }
  int RankOf(int thread) const { return thread / shape_.threads; }
  int64_t BlockOf(int thread) const { return first_block_ + RankOf(thread); }
  unsigned BaseOf(int rank) const { return static_cast<unsigned>(rank) * block_bytes_; }
  int RankOfByte(unsigned offset) const { return static_cast<int>(offset / block_bytes_); }
  void EndThread();
  void EndBlock(int rank);
  // Goes on with another thread that is ready; opens what can be opened.
  void Next();
  void MakeReady(int thread);
  void OpenBarrier(int rank, int team);
  void OpenClusterBarrier();
  [[noreturn]] void ReportStuck();

  [[noreturn]] void Fail(int thread, int line, std::string_view message);
  std::string ThreadName(int thread) const;

  // In the name of `thread`.
  void Check(int thread, const TlPlace& place, int bytes, int access, const void* data);
  [[noreturn]] void FailConflict(int thread, int line, std::string_view what,
                                 const Shadow::Conflict& conflict);
  void CheckAligned(int thread, const TlPlace& place, int bytes);
  void Shared(const TlPlace& place, int bytes, int access, const void* data);
  void SharedVector(const TlPlace& place, int bytes, int access, const void* data);
  // Who meets: TlTeam, or a group; behind the groups come the producers.
  ThreadRange TeamOf(int rank, int team) const;
  int& WaitingAt(int rank, int team);
  void Barrier(int team, int line);
  void ClusterBarrier(int line);
  void AsyncMove(const TlPlace& to, const void* from, int bytes);
  void AsyncWait(int pending);
  void Land(Flight& flight);
  void LandSome();

  // Joins the instruction that this thread's warp gathers for.
  WarpOp& Join(WarpOp::Kind kind, int line, int detail);
  // Waits for the other lanes; the last one runs the instruction for all.
  void Meet(WarpOp& op);
  void RunWarpOp(WarpOp& op, int warp);
  void LoadMatrices(WarpOp& op, int warp);
  void StoreMatrices(WarpOp& op, int warp);
  // Offsets of the 8 rows of 16 bytes of matrix number `matrix`, after checks of their places.
  std::vector<int64_t> RowsOfMatrix(const WarpOp& op, int warp, int matrix);
  void SetRegisters(const WarpOp& op, int warp);
  void CheckRegisters(int rank);

  // ---- Mbarriers and bulk copies (machine_bulk.cc)
  void ConnectBulk();
  void Mbarrier(const TlPlace& place, TlMbarrierOp op, int value);
  void InitMbarrier(const TlPlace& place, int arrivals);
  MbarrierState& FindMbarrier(const TlPlace& place);
  void Arrive(const TlPlace& place);
  void ArriveAt(const TlPlace& place, int rank);
  void NoteRemoteArrival(const TlPlace& place, int rank);
  void CheckAlive(int rank, int line, std::string_view what);
  void Expect(const TlPlace& place, int bytes);
  void EndPhaseIfComplete(MbarrierState& m);
  TensorBox BoxOf(const TlBulkCopy& copy);
  void StartLoad(const TlBulkCopy& copy, const TlPlace& mbarrier);
  void StartLoadTo(int rank, const TensorBox& box, const TlPlace& place, const TlPlace& mbarrier);
  void LandLoad(size_t i);  // of loads_
  void StartStore(const TlBulkCopy& copy);
  void CheckOrderOfStores(const BulkStore& store);
  void ReadStore(BulkStore& store);
  void WriteStore(BulkStore& store);
  // For reading shared memory, or whole.
  void WaitForStores(int pending, bool whole);
  void CheckStoresRead(int thread);
  void CheckLoadsAwaited(int rank);
  void CheckArrivalsKnown(int rank);

  std::unordered_map<unsigned, MbarrierState> mbarriers_;  // by offset
  std::vector<BulkLoad> loads_;                            // under way
  // By rank of the block that is arrived at and thread that arrives; the last ones.
  std::map<std::pair<int, int>, RemoteArrival> remote_arrivals_;

  // ---- Matrix products of warpgroups (machine_wgmma.cc)
  void ConnectWgmma();
  uint64_t Descriptor(const TlPlace& place, const Tile& tile, const SharedMatrix& matrix);
  void JoinProduct(const TlWgmma& call);
  void IssueProduct(Warpgroup& group, int first_thread);
  Accumulator* SumsOf(Warpgroup& group, int first_thread);
  Accumulator* SumsUnderWay(Warpgroup& group, int first_thread);
  // A thread's registers must not have changed since its last wgmma.fence.
  void CheckFenced(int thread, const void* at, size_t bytes, int line);
  // The bytes that one operand of a product reads are there and stay.
  void CheckMatrix(int first_thread, const Warpgroup& group, const Product& product, bool is_a,
                   const Shadow::Knowledge& known);
  void ComputeUpTo(Warpgroup& group, uint32_t number);
  void OrderProducts(const WarpOp& op, int warp);
  void FenceRegisters(int warp);
  void WaitForProducts(int warp, int pending, int line);
  void CheckFactors(const Product& product, int warp, int line);
  void Return(Accumulator& sums, int warp, int line);

  std::vector<Warpgroup> warpgroups_;
  std::unordered_map<uint64_t, Tile> descriptors_;
  bool any_products_ = false;

  TlApi api_ = {};
  std::vector<unsigned char> arena_storage_;
  Stacks stacks_;
  Context scheduler_;
  std::vector<Thread> threads_;
  std::vector<int> ready_;
  std::vector<int> waiting_;  // threads at each team's barrier, by block; last the cluster's
  std::vector<WarpOp> warps_;
  // What setmaxnreg has given the threads of each warp; 0: it has not.
  std::vector<int> registers_;
  int registers_line_ = 0;
  Shadow shadow_;
  BankLog banks_;
  std::vector<int> done_;  // threads that have ended, by block
  int until_switch_ = 0;
  int running_ = 0;  // thread
  int64_t first_block_ = 0;
  unsigned block_bytes_ = 0;  // from one block's shared memory to the next one's

  TlBody* body_ = nullptr;
  LaunchShape shape_ = {};
  int group_size_ = 1;
  int lanes_ = kWarp;  // of a warp
  void** params_ = nullptr;
  const TlExtent* extents_ = nullptr;
  EmulateOptions options_;
  uint64_t random_ = 1;
  std::string error_;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_MACHINE_H_
