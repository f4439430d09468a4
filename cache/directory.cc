#include "cache/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace tl {
namespace {

absl::StatusCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case ENOTDIR:
    case EEXIST:
      return absl::StatusCode::kFailedPrecondition;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case ENAMETOOLONG:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

Status Refused(const std::string& path, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied,
                   "cache directory " + path + " is refused: " + std::string(why),
                   {.domain = Domain::kOs, .log = {}});
}

bool IsAbsolute(const char* path) { return path != nullptr && path[0] == '/'; }

// Absolute, without trailing slashes (with one, a symbolic link would be followed).
StatusOr<std::string> Absolute(std::string path) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "the cache directory is empty or contains a NUL byte");
  }
  if (path[0] != '/') {
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof(cwd)) == nullptr) return OsError(errno, "getcwd");
    path = std::string(cwd) + '/' + path;
  }
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string prefix = path.substr(0, slash);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST) {
      // EROFS and EACCES are also what an existing directory may answer; only its absence counts.
      const int error_number = errno;
      struct stat info;
      if (stat(prefix.c_str(), &info) != 0) return OsError(error_number, "mkdir " + prefix);
    }
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

// The path with the links above its last component resolved: SQLite is told to follow none.
StatusOr<std::string> ResolveParent(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = path.substr(0, slash + 1);
  char real[PATH_MAX];
  if (realpath(parent.c_str(), real) == nullptr) return OsError(errno, "realpath " + parent);
  std::string resolved = real;
  if (resolved.back() != '/') resolved += '/';
  return resolved + path.substr(slash + 1);
}

// Somebody who can rename entries of an ancestor can put a directory of theirs in our place. Sticky
// directories such as /tmp do not allow that.
Status CheckAncestors(const std::string& path) {
  std::string ancestor = path;
  while (true) {
    ancestor.resize(std::max<size_t>(ancestor.rfind('/'), 1));
    struct stat info;
    if (stat(ancestor.c_str(), &info) != 0) return OsError(errno, "stat " + ancestor);
    if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
      return Refused(path, ancestor + " is writable by everybody");
    }
    if (ancestor == "/") return absl::OkStatus();
  }
}

Status CheckDirectory(const std::string& path) {
  // lstat, not open: a FIFO or a device in its place is not touched.
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return OsError(errno, "lstat " + path);
  if (S_ISLNK(info.st_mode)) return Refused(path, "it is a symbolic link");
  if (!S_ISDIR(info.st_mode)) return OsError(ENOTDIR, path);
  if (info.st_uid != geteuid()) {
    return Refused(path, "it belongs to user " + std::to_string(info.st_uid));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refused(path, "group or others may write it (chmod go-w)");
  }
  return CheckAncestors(path);
}

}  // namespace

Status OsError(int error_number, const std::string& what) {
  char text[256];
  // The GNU form returns the message, which need not be in the buffer.
  const char* message = strerror_r(error_number, text, sizeof(text));
  return MakeError(CodeOfErrno(error_number), what + ": " + message,
                   {.domain = Domain::kOs, .native_code = error_number, .log = {}});
}

StatusOr<std::string> DefaultCacheDirectory(const char* xdg_cache_home, const char* home) {
  if (IsAbsolute(xdg_cache_home)) return std::string(xdg_cache_home) + "/tilejit";
  if (IsAbsolute(home)) return std::string(home) + "/.cache/tilejit";
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "no place for the cache: neither XDG_CACHE_HOME nor HOME is an absolute path");
}

StatusOr<std::string> PrepareDirectory(const std::string& path) {
  TL_ASSIGN_OR_RETURN(const std::string absolute, Absolute(path));
  TL_RETURN_IF_ERROR(MakeDirectories(absolute));
  TL_ASSIGN_OR_RETURN(std::string resolved, ResolveParent(absolute));
  TL_RETURN_IF_ERROR(CheckDirectory(resolved));
  return resolved;
}

bool IsNetworkFileSystemType(uint64_t type) {
  switch (type) {
    case 0x6969:      // NFS
    case 0x517B:      // SMB
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x65735546:  // FUSE
    case 0x01021997:  // 9P
    case 0x00C36400:  // Ceph
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0xAAD7AAEA:  // PanFS
    case 0x5346414F:  // AFS
    case 0x6B414653:  // kAFS
    case 0x73757245:  // Coda
    case 0x564C:      // NCP
    case 0x01161970:  // GFS2
    case 0x7461636F:  // OCFS2
    case 0x786F4256:  // VirtualBox shared folder
      return true;
    default:
      return false;
  }
}

bool IsOnNetworkFileSystem(const std::string& path) {
  struct statfs info;
  if (statfs(path.c_str(), &info) != 0) return false;
  // f_type is signed and sign-extends the magics above 2^31.
  return IsNetworkFileSystemType(static_cast<uint32_t>(info.f_type));
}

}  // namespace tl
