#include "base/status.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace tl {
namespace {

constexpr char kDetailUrl[] = "tilejit/error-detail";

// The detail travels as a payload: the fixed-size part as bytes, then the log. It never leaves the
// process, so the layout is free to change.
struct WireDetail {
  int32_t domain;
  int32_t reason;
  int64_t native_code;
  Span span;
};

}  // namespace

Status MakeError(absl::StatusCode code, std::string_view message, ErrorDetail detail) {
  Status status(code, message);
  WireDetail wire{static_cast<int32_t>(detail.domain), static_cast<int32_t>(detail.reason),
                  detail.native_code, detail.span};
  std::string bytes(sizeof(wire), '\0');
  std::memcpy(bytes.data(), &wire, sizeof(wire));
  bytes += detail.log;
  status.SetPayload(kDetailUrl, absl::Cord(bytes));
  return status;
}

ErrorDetail DetailOf(const Status& status) {
  ErrorDetail detail;
  absl::optional<absl::Cord> payload = status.GetPayload(kDetailUrl);
  if (!payload.has_value() || payload->size() < sizeof(WireDetail)) return detail;
  const std::string bytes(*payload);
  WireDetail wire;
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  detail.domain = static_cast<Domain>(wire.domain);
  detail.reason = static_cast<Reason>(wire.reason);
  detail.native_code = wire.native_code;
  detail.span = wire.span;
  detail.log = bytes.substr(sizeof(wire));
  return detail;
}

Status SyntaxError(Span span, std::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {.reason = Reason::kSyntax, .span = span, .log = {}});
}

Status SemanticError(Span span, std::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, message,
                   {.reason = Reason::kSemantics, .span = span, .log = {}});
}

Status LimitError(Span span, std::string_view message) {
  return MakeError(absl::StatusCode::kResourceExhausted, message,
                   {.reason = Reason::kLimit, .span = span, .log = {}});
}

Status UnsupportedError(Span span, std::string_view message) {
  return MakeError(absl::StatusCode::kUnimplemented, message,
                   {.reason = Reason::kUnsupported, .span = span, .log = {}});
}

std::string FormatSpan(const Span& span) {
  return span.valid() ? absl::StrCat(span.line, ":", span.column) : std::string();
}

}  // namespace tl
