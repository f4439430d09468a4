// The contract between the service and whatever can run a tile program.
//
// A backend turns a Module (level Thread, or Tile where the target interprets) into source text,
// the text into a binary, and a binary into something that can be launched. Everything it returns
// is self-contained bytes, so that any step's result can be cached, shown to the user or carried to
// another machine.
#ifndef TILEJIT_BACKENDS_BACKEND_H_
#define TILEJIT_BACKENDS_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "backends/compile_job.h"
#include "base/search_paths.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// A window of a tensor that a kernel copies in one piece: elements along each of the tensor's dims,
// and the bytes of a row in shared memory, by which its 16-byte chunks are permuted there.
struct BoxOfTensor {
  int tensor = 0;  // index into Module::operands; behind those count the workspaces
  std::vector<int64_t> extents;
  int row_bytes = 0;
};

// What a device's kernels take for such a window of a tensor.
struct alignas(64) TensorMap {
  std::array<std::byte, 128> bytes{};
};
// Dim 0 is the innermost, its elements lie beside each other. Not more than 5 dims.
struct TensorMapRecipe {
  const void* data = nullptr;
  int64_t bytes = -1;  // of the storage; -1: unknown
  DType dtype = DType::kF32;
  absl::InlinedVector<int64_t, 5> dims;
  absl::InlinedVector<int64_t, 5> strides;  // bytes; of dims 1 and on
  absl::InlinedVector<int64_t, 5> box;      // elements in each dim
  int swizzle = 0;  // bytes of a row whose chunks are permuted: 0, 32, 64, 128
};

// One kernel of a binary; a program has one per `launch`.
struct Entry {
  std::string symbol;
  int threads = 1;  // per block, all groups and producers
  int groups = 1;
  int64_t shared_bytes = 0;  // dynamic shared memory (GPU) or scratch arena (CPU) per block
  int producers = 0;         // threads that only copy, the last ones of a block
  bool persistent = false;   // any number of blocks does the work of all that are asked for
  std::vector<BoxOfTensor> boxes;
  // It touches memory only when the kernel before it on its stream has ended, and sees to that
  // itself: it may be started before.
  bool early = false;
  // Blocks whose numbers follow each other and that run at the same time, reading each other's
  // shared memory: a launch has whole clusters of them.
  int cluster = 1;
};

// Source text of a whole program.
struct Generated {
  std::string language;  // "cuda", "hip", "llvm", "tl"
  std::string source;
  std::vector<Entry> entries;      // parallel to Module::launches
  std::vector<std::string> notes;  // choices worth a line in the report
};

struct Built {
  std::string binary;    // cubin, code object, ELF object, program text
  std::string assembly;  // PTX or host assembly where it comes for free, else empty
  std::string log;       // the compiler's messages
  std::string compiler;  // identity, as CompilerIdentity() of the target
};

// What the compiler says about one entry, and what of it fits on the device at the same time.
struct EntryResources {
  int registers = 0;  // per thread
  // Bytes of a thread's own memory: all of it, and what comes and goes for want of registers.
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int blocks_per_unit = 0;  // that one multiprocessor runs at the same time
  double occupancy = 0;     // their warps, of those that it could run
  std::string limited_by;   // "registers", "shared memory", "threads" or "blocks"
};
struct BuildFacts {
  std::vector<EntryResources> entries;  // parallel to those of the program; empty: nothing is known
  std::vector<std::string> notes;       // lines for the report
};

// A device that is present.
struct DeviceInfo {
  std::string name;  // "NVIDIA H200", "Intel(R) Xeon(R) …"
  Target target;
  int ordinal = 0;  // within the backend
  int units = 0;    // multiprocessors, cores
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int driver_version = 0;  // 13000 = 13.0; 0: none
};

// The arguments of every entry of a program, in this order: operand pointers, workspace pointers,
// dims, strides (int64), scalars as their compute type (int64 for ints and bools, float, double).
// Then, of the entry's own, for each of its boxes a TensorMap and an int64 that says whether it is
// one. params[i] points at the i-th value, as cuLaunchKernel takes it; CPU entries read the same
// array.
struct LaunchParams {
  void** params = nullptr;
  int num_params = 0;
  void* stream = nullptr;  // CUstream; CPU: must be null (runs synchronously)
};

// A binary made ready on one device. Immutable, usable from any thread.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // Enqueues entry number `entry` with `blocks` >= 1 blocks.
  virtual Status Launch(int entry, int64_t blocks, const LaunchParams& params) = 0;
  // The map of a window; an error where the device has none for such a tensor.
  virtual Status Describe(const TensorMapRecipe& recipe, TensorMap& map) const {
    (void)recipe;
    (void)map;
    return absl::UnimplementedError("the device copies no boxes");
  }
  // Registers per thread, spill bytes ... of each entry, as the driver reports them: JSON object
  // text.
  virtual std::string Facts() const { return "{}"; }
};

// Memory and time on one device, for tl_check and tl_bench. Not on the launch path.
class DeviceSession {
 public:
  virtual ~DeviceSession() = default;
  virtual StatusOr<void*> Allocate(size_t bytes) = 0;  // at least 256-byte aligned
  virtual void Free(void* p) = 0;
  virtual Status CopyIn(void* device, const void* host, size_t bytes) = 0;
  virtual Status CopyOut(void* host, const void* device, size_t bytes) = 0;
  virtual Status Fill(void* device, uint8_t byte, size_t bytes) = 0;
  virtual Status Synchronize() = 0;
  virtual void* stream() = 0;  // the session's own stream
  // Runs `enqueue` (which launches on stream()) `count` times back to back and returns the device
  // time of all of them in nanoseconds.
  class Enqueue {
   public:
    virtual ~Enqueue() = default;
    virtual Status operator()(int iteration) = 0;
  };
  virtual StatusOr<double> Time(Enqueue& enqueue, int count) = 0;
};

struct GenerateOptions {
  int64_t shared_budget = 0;  // bytes per block; 0: the target's limit
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "cuda", "cpu", "reference"

  // Target for a name ("sm_90a", "H100", "cpu", "cpu:x86-64-v3"): NOT_FOUND when the name is none
  // of this backend's. Works without a device or driver.
  virtual StatusOr<Target> FindTarget(std::string_view name) const = 0;
  // Names for listings and for "did you mean".
  virtual std::vector<std::string> TargetNames() const = 0;

  // Present devices. No driver: an empty list, not an error.
  virtual StatusOr<std::vector<DeviceInfo>> Devices() = 0;

  // Hash of the code generator and its prelude: part of the semantic key.
  virtual std::string CodegenIdentity() const = 0;
  // Name, version and build-id of the compiler that Build would use, found without loading it;
  // NOT_FOUND when there is none. Part of the build key.
  virtual StatusOr<std::string> CompilerIdentity(const Target& target) = 0;

  virtual StatusOr<Generated> Generate(const Module& module, const Target& target,
                                       const GenerateOptions& options) = 0;
  virtual StatusOr<Built> Build(const Generated& generated, const Target& target) = 0;
  // What a binary and its build's log tell; a cached program's are kept and tell the same.
  virtual BuildFacts ReadBuild(std::string_view binary, std::string_view log,
                               const std::vector<Entry>& entries, const Target& target) const {
    (void)binary;
    (void)log;
    (void)entries;
    (void)target;
    return {};
  }
  // Assembly ("ptx", "asm", "sass") of a built program, for people.
  virtual StatusOr<std::string> Disassemble(const Generated& generated, std::string_view binary,
                                            const Target& target, std::string_view form) = 0;

  virtual StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view binary,
                                                       const std::vector<Entry>& entries,
                                                       const Module& module, int ordinal) = 0;
  virtual StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int ordinal) = 0;
  // UNAVAILABLE/NOT_READY when `stream` is being captured into a graph: nothing may be loaded then.
  virtual Status CheckNotCapturing(int ordinal, void* stream) {
    (void)ordinal;
    (void)stream;
    return absl::OkStatus();
  }
};

// Each backend's constructor function, called once per context.
// `threads`: how many run blocks; 0: all cores.
std::unique_ptr<Backend> MakeReferenceBackend(int threads);
std::unique_ptr<Backend> MakeCpuBackend(const SearchPaths& paths, int threads);
std::unique_ptr<Backend> MakeCudaBackend(const SearchPaths& paths);
std::unique_ptr<Backend> MakeHipBackend(const SearchPaths& paths, CompileElsewhere elsewhere);
// Development only: without its module, and unless `wish` (TL_EMULATE) asks for them, no devices.
std::unique_ptr<Backend> MakeEmulateBackend(const SearchPaths& paths, std::string wish);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_BACKEND_H_
