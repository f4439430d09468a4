// Messages between the library and its worker process: JSON with blobs behind it, over a socket.
#ifndef TILEJIT_SERVICE_MESSAGE_H_
#define TILEJIT_SERVICE_MESSAGE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace tl {

struct Message {
  nlohmann::json head = nlohmann::json::object();
  std::vector<std::string> blobs;
};

// ABORTED: the other side is gone.
Status SendMessage(int fd, const Message& message);

// ABORTED: the other side is gone; DEADLINE_EXCEEDED after `limit`; CANCELLED as soon as
// `cancelled` says so, which is asked now and then.
StatusOr<Message> ReceiveMessage(int fd, absl::Duration limit, absl::FunctionRef<bool()> cancelled);

// A status with its detail, there and back; without its place, which is one in the text that the
// worker was given and not in the caller's.
nlohmann::json StatusJson(const Status& status);
Status StatusFromJson(const nlohmann::json& json);

}  // namespace tl

#endif  // TILEJIT_SERVICE_MESSAGE_H_
