#include "abi/error.h"

#include <string>

#include "abi/structs.h"

namespace tl::abi {
namespace {

struct Record {
  bool set = false;
  tl_status status = TL_OK;
  ErrorDetail detail;
  std::string message;
};

thread_local Record last;

}  // namespace

tl_status Report(const Status& status) {
  if (status.ok()) return TL_OK;
  try {
    last.status = static_cast<tl_status>(status.raw_code());
    last.detail = DetailOf(status);
    last.message = std::string(status.message());
    last.set = true;
  } catch (...) {
    // No memory for the message: the code alone must do.
    last.message.clear();
  }
  return static_cast<tl_status>(status.raw_code());
}

}  // namespace tl::abi

using tl::abi::last;

tl_status tl_last_error(tl_error_info* info) {
  if (!info) return TL_INVALID_ARGUMENT;
  if (!last.set) return TL_NOT_FOUND;
  tl_error_info out{};
  out.status = last.status;
  out.domain = static_cast<tl_domain>(last.detail.domain);
  out.reason = static_cast<tl_reason>(last.detail.reason);
  out.line = last.detail.span.line;
  out.column = last.detail.span.column;
  out.end_line = last.detail.span.end_line;
  out.end_column = last.detail.span.end_column;
  out.native_code = last.detail.native_code;
  out.message = last.message.c_str();
  out.log = last.detail.log.c_str();
  // Not through Report: asking for the last error must not replace it.
  return static_cast<tl_status>(tl::abi::WriteStruct(info, out, "tl_error_info").raw_code());
}

const char* tl_status_name(tl_status status) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  return status >= 0 && status <= TL_UNAUTHENTICATED ? kNames[status] : "UNKNOWN";
}
