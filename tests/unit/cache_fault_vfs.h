// An SQLite VFS whose operations fail on demand: the full, broken or read-only disk of the tests.
#ifndef TILEJIT_TESTS_UNIT_CACHE_FAULT_VFS_H_
#define TILEJIT_TESTS_UNIT_CACHE_FAULT_VFS_H_

#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace tl::cache_testing {

enum FaultOp { kOpenOp, kReadOp, kWriteOp, kSyncOp, kTruncateOp, kLockOp, kShmOp, kSizeOp };
inline constexpr FaultOp kAllFaultOps[] = {kOpenOp,     kReadOp, kWriteOp, kSyncOp,
                                           kTruncateOp, kLockOp, kShmOp,   kSizeOp};

// What fails: operations of one kind, after `skip` of them went well, `count` times.
struct FaultPlan {
  std::atomic<int> op{-1};
  std::atomic<int> code{SQLITE_OK};
  std::atomic<int> skip{0};
  std::atomic<int> count{0};
  std::atomic<bool> short_write{false};  // half of the bytes arrive before the failure
};

inline FaultPlan& Faults() {
  static FaultPlan plan;
  return plan;
}

// What other processes do just before and just after the next database is opened.
struct Meanwhile {
  std::function<void()> before, after;
};

inline Meanwhile& OthersMeanwhile() {
  static Meanwhile meanwhile;
  return meanwhile;
}

inline void RunOnce(std::function<void()>& step) {
  if (auto once = std::exchange(step, nullptr)) once();
}

inline void FailAfter(FaultOp op, int code, int skip, int count = 1 << 30) {
  Faults().code = code;
  Faults().skip = skip;
  Faults().count = count;
  Faults().op = op;
}

inline void FailNothing() {
  Faults().op = -1;
  Faults().short_write = false;
}

// SQLITE_OK, or what the operation has to return now.
inline int NextFault(FaultOp op) {
  FaultPlan& plan = Faults();
  if (plan.op != op) return SQLITE_OK;
  if (plan.skip.fetch_sub(1) > 0) return SQLITE_OK;
  plan.skip = 0;
  if (plan.count.fetch_sub(1) <= 0) return SQLITE_OK;
  return plan.code;
}

struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;  // behind this struct, in the same allocation
};

inline sqlite3_file* RealFile(sqlite3_file* file) {
  return reinterpret_cast<FaultFile*>(file)->real;
}

inline int FaultWrite(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  sqlite3_file* real = RealFile(file);
  const int fault = NextFault(kWriteOp);
  if (fault != SQLITE_OK) {
    if (Faults().short_write) real->pMethods->xWrite(real, data, size / 2, offset);
    return fault;
  }
  return real->pMethods->xWrite(real, data, size, offset);
}

// Nothing here loses power, so nothing waits for the disk.
inline int FaultSync(sqlite3_file*, int) { return NextFault(kSyncOp); }

// Forwards a method after asking for a fault.
template <FaultOp kOp, auto kMethod, typename... Args>
int FaultForward(sqlite3_file* file, Args... args) {
  const int fault = NextFault(kOp);
  sqlite3_file* real = RealFile(file);
  return fault != SQLITE_OK ? fault : (real->pMethods->*kMethod)(real, args...);
}

template <auto kMethod, typename... Args>
auto PlainForward(sqlite3_file* file, Args... args) {
  sqlite3_file* real = RealFile(file);
  return (real->pMethods->*kMethod)(real, args...);
}

inline const sqlite3_io_methods* FaultMethods() {
  using M = sqlite3_io_methods;
  static const M methods = {
      3,
      &PlainForward<&M::xClose>,
      &FaultForward<kReadOp, &M::xRead, void*, int, sqlite3_int64>,
      &FaultWrite,
      &FaultForward<kTruncateOp, &M::xTruncate, sqlite3_int64>,
      &FaultSync,
      &FaultForward<kSizeOp, &M::xFileSize, sqlite3_int64*>,
      &FaultForward<kLockOp, &M::xLock, int>,
      &PlainForward<&M::xUnlock, int>,
      &PlainForward<&M::xCheckReservedLock, int*>,
      &PlainForward<&M::xFileControl, int, void*>,
      &PlainForward<&M::xSectorSize>,
      &PlainForward<&M::xDeviceCharacteristics>,
      &FaultForward<kShmOp, &M::xShmMap, int, int, int, void volatile**>,
      &PlainForward<&M::xShmLock, int, int, int>,
      &PlainForward<&M::xShmBarrier>,
      &PlainForward<&M::xShmUnmap, int>,
      &PlainForward<&M::xFetch, sqlite3_int64, int, void**>,
      &PlainForward<&M::xUnfetch, sqlite3_int64, void*>,
  };
  return &methods;
}

inline int FaultOpen(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
                     int* out_flags) {
  auto* real_vfs = static_cast<sqlite3_vfs*>(vfs->pAppData);
  auto* fault_file = reinterpret_cast<FaultFile*>(file);
  fault_file->base.pMethods = nullptr;
  const int fault = NextFault(kOpenOp);
  if (fault != SQLITE_OK) return fault;
  fault_file->real = reinterpret_cast<sqlite3_file*>(fault_file + 1);
  const bool database = (flags & SQLITE_OPEN_MAIN_DB) != 0;
  if (database) RunOnce(OthersMeanwhile().before);
  const int code = real_vfs->xOpen(real_vfs, name, fault_file->real, flags, out_flags);
  if (database) RunOnce(OthersMeanwhile().after);
  if (code == SQLITE_OK) fault_file->base.pMethods = FaultMethods();
  return code;
}

// Registers the VFS once and returns its name.
inline std::string FaultVfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs* real = sqlite3_vfs_find(nullptr);
    sqlite3_vfs copy = *real;
    copy.zName = "tl-fault";
    copy.szOsFile = static_cast<int>(sizeof(FaultFile)) + real->szOsFile;
    copy.pAppData = real;
    copy.xOpen = &FaultOpen;
    return copy;
  }();
  static const int registered = sqlite3_vfs_register(&vfs, 0);
  return registered == SQLITE_OK ? "tl-fault" : "";
}

}  // namespace tl::cache_testing

#endif  // TILEJIT_TESTS_UNIT_CACHE_FAULT_VFS_H_
