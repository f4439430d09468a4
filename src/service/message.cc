#include "service/message.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tl {
namespace {

using Json = nlohmann::json;

// Every message begins with the sizes of head and blobs together; a larger one is nonsense.
constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr absl::Duration kSlice = absl::Milliseconds(20);

Status Gone() { return absl::AbortedError("the other side is gone"); }

Status SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Gone();
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

class Receiver {
 public:
  Receiver(int fd, absl::Duration limit, absl::FunctionRef<bool()> cancelled)
      : fd_(fd), end_(absl::Now() + limit), cancelled_(cancelled) {}

  Status Read(char* to, size_t size) {
    while (size > 0) {
      TL_RETURN_IF_ERROR(Wait());
      const ssize_t got = recv(fd_, to, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Gone();
      to += got;
      size -= static_cast<size_t>(got);
    }
    return absl::OkStatus();
  }

  StatusOr<std::string> ReadString(uint64_t size) {
    if (size > kMaxBytes) return Gone();
    std::string out(size, '\0');
    TL_RETURN_IF_ERROR(Read(out.data(), out.size()));
    return out;
  }

 private:
  Status Wait() {
    for (;;) {
      pollfd entry{fd_, POLLIN, 0};
      const absl::Duration left = std::clamp(end_ - absl::Now(), absl::ZeroDuration(), kSlice);
      const int ready = poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      if (ready > 0) return absl::OkStatus();
      if (cancelled_()) return absl::CancelledError("cancelled");
      if (absl::Now() >= end_) return absl::DeadlineExceededError("no answer in time");
    }
  }

  const int fd_;
  const absl::Time end_;
  absl::FunctionRef<bool()> cancelled_;
};

}  // namespace

Status SendMessage(int fd, const Message& message) {
  Json head = message.head;
  head["blobs"] = Json::array();
  for (const std::string& blob : message.blobs) head["blobs"].push_back(blob.size());
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t size = text.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  absl::StrAppend(&bytes, text);
  for (const std::string& blob : message.blobs) absl::StrAppend(&bytes, blob);
  return SendAll(fd, bytes);
}

StatusOr<Message> ReceiveMessage(int fd, absl::Duration limit,
                                 absl::FunctionRef<bool()> cancelled) {
  Receiver receiver(fd, limit, cancelled);
  uint64_t size = 0;
  TL_RETURN_IF_ERROR(receiver.Read(reinterpret_cast<char*>(&size), sizeof(size)));
  TL_ASSIGN_OR_RETURN(const std::string text, receiver.ReadString(size));
  Message message;
  message.head = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  // A worker that a candidate has written into may say anything.
  if (!message.head.is_object() || !message.head.contains("blobs")) return Gone();
  for (const Json& blob : message.head["blobs"]) {
    if (!blob.is_number_unsigned()) return Gone();
    TL_ASSIGN_OR_RETURN(std::string bytes, receiver.ReadString(blob.get<uint64_t>()));
    message.blobs.push_back(std::move(bytes));
  }
  return message;
}

Json StatusJson(const Status& status) {
  const ErrorDetail detail = DetailOf(status);
  return {{"code", static_cast<int>(status.code())},   {"message", std::string(status.message())},
          {"domain", static_cast<int>(detail.domain)}, {"native_code", detail.native_code},
          {"reason", static_cast<int>(detail.reason)}, {"log", detail.log}};
}

Status StatusFromJson(const Json& json) {
  const auto code = static_cast<absl::StatusCode>(json.value("code", 2));
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  ErrorDetail detail;
  detail.domain = static_cast<Domain>(json.value("domain", 0));
  detail.native_code = json.value("native_code", int64_t{0});
  detail.reason = static_cast<Reason>(json.value("reason", 0));
  detail.log = json.value("log", "");
  return MakeError(code, json.value("message", ""), std::move(detail));
}

}  // namespace tl
