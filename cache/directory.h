// Where the cache lives and whether that place can be trusted. A cached binary is code that will
// run with the caller's rights, so whoever can write the directory can run code as the caller.
#ifndef TILEJIT_CACHE_DIRECTORY_H_
#define TILEJIT_CACHE_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "base/status.h"

namespace tl {

// $XDG_CACHE_HOME/tilejit, else $HOME/.cache/tilejit. Null and empty mean unset; a relative
// XDG_CACHE_HOME counts as unset, as its specification says. FAILED_PRECONDITION when neither
// helps: never the working directory.
StatusOr<std::string> DefaultCacheDirectory(const char* xdg_cache_home, const char* home);

// Makes the directory and missing parents (mode 0700), checks it and returns its absolute path.
// PERMISSION_DENIED: a symbolic link, owned by somebody else, writable by group or others, or below
// a directory where others may rename it. FAILED_PRECONDITION: something else is in its place.
// UNAVAILABLE, RESOURCE_EXHAUSTED: the operating system's error, with errno as native code.
StatusOr<std::string> PrepareDirectory(const std::string& path);

// Whether a file system of this statfs() type is shared with other machines, so that SQLite's locks
// and shared memory cannot be relied on. FUSE counts: what stands behind it is not known.
bool IsNetworkFileSystemType(uint64_t type);

// The same for the file system that holds `path`; false when it cannot be asked.
bool IsOnNetworkFileSystem(const std::string& path);

// Status for a failed system call: "what: strerror", domain OS, errno as native code.
Status OsError(int error_number, const std::string& what);

}  // namespace tl

#endif  // TILEJIT_CACHE_DIRECTORY_H_
