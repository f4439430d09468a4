// Messages over a socket: there and back, cut off, late.
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"
#include "service/message.h"

namespace tl {
namespace {

class Sockets : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  void TearDown() override {
    for (int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  void CloseMine() {
    close(ends_[0]);
    ends_[0] = -1;
  }
  StatusOr<Message> Next(absl::Duration limit = absl::Seconds(60), bool cancelled = false) {
    return ReceiveMessage(ends_[1], limit, [&] { return cancelled; });
  }
  int ends_[2] = {-1, -1};
};

TEST_F(Sockets, ThereAndBack) {
  // More than a socket holds, so that both sides have to work at the same time.
  const Message sent{{{"op", "load"}, {"id", 7}}, {"", std::string(5'000'000, '\1'), "a\0b"}};
  std::thread sender([&] { EXPECT_TRUE(SendMessage(ends_[0], sent).ok()); });
  const StatusOr<Message> got = Next();
  sender.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->head.at("op"), "load");
  EXPECT_EQ(got->head.at("id"), 7);
  EXPECT_EQ(got->blobs, sent.blobs);
}

TEST_F(Sockets, TheOtherSideIsGone) {
  CloseMine();
  EXPECT_TRUE(absl::IsAborted(Next().status()));
  EXPECT_TRUE(absl::IsAborted(SendMessage(ends_[1], {{{"op", "x"}}, {"blob"}})));
}

TEST_F(Sockets, CutOffAnywhere) {
  const std::string head = R"({"blobs":[3]})";
  std::string whole(8, '\0');
  whole[0] = static_cast<char>(head.size());
  whole += head + "abc";
  for (size_t size = 0; size <= whole.size(); ++size) {
    TearDown();
    SetUp();
    ASSERT_EQ(write(ends_[0], whole.data(), size), static_cast<ssize_t>(size));
    CloseMine();
    const StatusOr<Message> got = Next();
    EXPECT_EQ(got.status().code(),
              size == whole.size() ? absl::StatusCode::kOk : absl::StatusCode::kAborted)
        << size;
  }
}

TEST_F(Sockets, LateOrCancelled) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Next(absl::Milliseconds(1)).status()));
  EXPECT_TRUE(absl::IsCancelled(Next(absl::Hours(1), /*cancelled=*/true).status()));
}

TEST(StatusJson, KeepsWhatAPersonNeeds) {
  const Status rows[] = {
      absl::OkStatus(),
      absl::AbortedError("died"),
      MakeError(
          absl::StatusCode::kDataLoss, "off",
          {.domain = Domain::kCuda, .native_code = 700, .reason = Reason::kMismatch, .log = "log"}),
  };
  for (const Status& status : rows) {
    const Status back = StatusFromJson(StatusJson(status));
    EXPECT_EQ(back.code(), status.code());
    EXPECT_EQ(back.message(), status.message());
    const ErrorDetail a = DetailOf(back), b = DetailOf(status);
    EXPECT_EQ(a.domain, b.domain);
    EXPECT_EQ(a.native_code, b.native_code);
    EXPECT_EQ(a.reason, b.reason);
    EXPECT_EQ(a.log, b.log);
  }
}

}  // namespace
}  // namespace tl
