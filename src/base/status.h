// Status with the facts an embedding program needs: who failed, with which native code, and where
// in the tile program. Every fallible function of the library returns absl::Status or
// absl::StatusOr; nothing throws across a room's border, and nothing prints.
#ifndef TILEJIT_BASE_STATUS_H_
#define TILEJIT_BASE_STATUS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tl {

using absl::Status;
using absl::StatusOr;

// A range of the tile program's text. Lines and columns count from 1, columns in bytes; the end is
// one past the last byte. line == 0: no position.
struct Span {
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;

  bool valid() const { return line > 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

// Who reported the failure. The values are those of tl_domain in tl.h.
enum class Domain : int32_t { kTl = 0, kNvrtc, kCuda, kHip, kLlvm, kSqlite, kOs };

// Finer than the status code where callers branch on it. The values are those of tl_reason in tl.h.
enum class Reason : int32_t {
  kNone = 0,
  kNotReady,        // would have to load or compile where that is not allowed
  kSyntax,          // the text is no tile program
  kSemantics,       // it is one, but it does not type-check or breaks a rule
  kLimit,           // a documented limit on size, depth or count is exceeded
  kUnsupported,     // correct, but this backend or target cannot run it
  kMissingLibrary,  // a vendor library or helper file was not found; the message lists the places
  kNoDevice,        // no such device, or no driver
  kBinaryRejected,  // the driver refused a binary
  kMismatch,        // tl_check: results differ by more than the bound
};

struct ErrorDetail {
  Domain domain = Domain::kTl;
  int64_t native_code = 0;  // CUresult, nvrtcResult, SQLite result code, errno ...
  Reason reason = Reason::kNone;
  Span span;
  std::string log;  // compiler log, possibly long
};

// A status whose detail survives being passed up. `code` must not be OK.
Status MakeError(absl::StatusCode code, std::string_view message, ErrorDetail detail = {});

// Detail of a status made by MakeError, defaults for any other.
ErrorDetail DetailOf(const Status& status);

// Shorthand for the front end: INVALID_ARGUMENT with a span.
Status SyntaxError(Span span, std::string_view message);
Status SemanticError(Span span, std::string_view message);
// RESOURCE_EXHAUSTED with reason kLimit.
Status LimitError(Span span, std::string_view message);
// UNIMPLEMENTED with reason kUnsupported: correct program, wrong backend.
Status UnsupportedError(Span span, std::string_view message);

// "3:14" or "" for an invalid span.
std::string FormatSpan(const Span& span);

}  // namespace tl

// Returns early from a function whose result is Status or StatusOr.
#define TL_RETURN_IF_ERROR(expr)             \
  do {                                       \
    ::absl::Status tl_status_ = (expr);      \
    if (!tl_status_.ok()) return tl_status_; \
  } while (false)

#define TL_CONCAT_INNER_(a, b) a##b
#define TL_CONCAT_(a, b) TL_CONCAT_INNER_(a, b)
// TL_ASSIGN_OR_RETURN(auto x, F()): the value, or an early return of the status.
#define TL_ASSIGN_OR_RETURN(lhs, expr) TL_ASSIGN_OR_RETURN_(TL_CONCAT_(tl_or_, __LINE__), lhs, expr)
#define TL_ASSIGN_OR_RETURN_(tmp, lhs, expr)     \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)

#endif  // TILEJIT_BASE_STATUS_H_
