// `on g`: the groups of a block as threads of which one runs at a time, in a fixed order, so that
// every run of a program is the same.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"

namespace tl::reference {

// Hands the right to run from group to group. A group keeps it until it has to wait or ends.
class Baton {
 public:
  explicit Baton(int groups) : members_(groups) {}

  void Start(int g) {
    std::unique_lock<std::mutex> lock(mutex_);
    turn_.wait(lock, [&] { return current_ == g; });
  }

  void Finish(int g) {
    std::lock_guard<std::mutex> lock(mutex_);
    members_[g].finished = true;
    ++progress_;
    PassOn(g);
  }

  // Something happened that may let others go on.
  void NoteProgress() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++progress_;
  }

  // Waits until ready() holds; it is called while this group has the baton. False: no group can go
  // on.
  bool WaitUntil(int g, const std::string& what, const std::function<bool()>& ready) {
    while (!ready()) {
      std::unique_lock<std::mutex> lock(mutex_);
      members_[g].waits_for = what;
      members_[g].tried_at = progress_;
      if (Stuck()) return false;
      PassOn(g);
      turn_.wait(lock, [&] { return current_ == g; });
    }
    std::lock_guard<std::mutex> lock(mutex_);
    members_[g].waits_for.clear();
    return true;
  }

  // "group 0 in send to 'c' (12:3); group 1 …"
  std::string Describe() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string out;
    for (size_t g = 0; g < members_.size(); ++g) {
      absl::StrAppend(&out, out.empty() ? "" : "; ", "group ", g,
                      members_[g].finished ? " has ended" : " waits in ", members_[g].waits_for);
    }
    return out;
  }

 private:
  struct Member {
    bool finished = false;
    int64_t tried_at = -1;  // progress when it last found that it has to wait
    std::string waits_for;
  };

  bool Stuck() const {
    return std::all_of(members_.begin(), members_.end(),
                       [&](const Member& m) { return m.finished || m.tried_at == progress_; });
  }

  void PassOn(int from) {
    const int n = static_cast<int>(members_.size());
    for (int i = 1; i <= n; ++i) {
      const int g = (from + i) % n;
      if (members_[g].finished) continue;
      current_ = g;
      break;
    }
    turn_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable turn_;
  std::vector<Member> members_;
  int current_ = 0;
  int64_t progress_ = 0;
};

bool Agent::Exec(const Stmt& s, const OnGroup& on) {
  Baton baton(on.count);
  block_->entered.assign(tiles_.size(), false);
  std::vector<std::unique_ptr<Agent>> agents;
  for (int g = 0; g < on.count; ++g) {
    agents.push_back(std::make_unique<Agent>(machine_, block_));
    Agent& agent = *agents.back();
    agent.vars_ = vars_;
    agent.vars_[on.var] = IntOf(g);
    agent.tiles_ = tiles_;
    agent.own_tiles_.resize(tiles_.size());
    agent.group_ = g;
    agent.baton_ = &baton;
  }
  std::vector<std::thread> threads;
  for (int g = 0; g < on.count; ++g) {
    threads.emplace_back([&, g] {
      baton.Start(g);
      if (!failed()) agents[g]->Run(on.body);
      baton.Finish(g);
    });
  }
  for (std::thread& t : threads) t.join();
  return !failed() && MergeVars(s, agents);
}

// Variables that the block made before `on g` and groups assigned: all must agree.
bool Agent::MergeVars(const Stmt& s, const std::vector<std::unique_ptr<Agent>>& agents) {
  for (const VarId v : assigned_) {
    const Value& first = agents[0]->vars_[v];
    for (const auto& agent : agents) {
      if (agent->vars_[v].c.i == first.c.i) continue;
      Fail(s.span, absl::StrCat("the groups leave different values in '",
                                machine_->module().var(v).name, "'"));
      return false;
    }
    vars_[v] = first;
  }
  return true;
}

Channel* Agent::FindChannel(BufferId id, const Span& span) {
  Channel* c = block_->channels[id].get();
  if (c == nullptr) {
    Fail(span, absl::StrCat("channel ", Quoted(id), " is used before its alloc"));
  } else if (baton_ == nullptr) {
    Fail(span, "send and recv stand inside 'on g' only");
    return nullptr;
  }
  return c;
}

bool Agent::Exec(const Stmt& s, const Send& send) {
  Channel* c = FindChannel(send.channel, s.span);
  if (c == nullptr) return false;
  if (c->sender == kNoId) c->sender = group_;
  if (c->sender != group_) {
    Fail(s.span, absl::StrCat("groups ", c->sender, " and ", group_, " both send to channel ",
                              Quoted(send.channel), "; it has one sending group"));
    return false;
  }
  const size_t depth = static_cast<size_t>(buffer(send.channel).depth);
  const std::string what =
      absl::StrCat("send to ", Quoted(send.channel), " (", FormatSpan(s.span), ")");
  if (!baton_->WaitUntil(group_, what, [&] { return failed() || c->messages.size() < depth; })) {
    Fail(s.span, absl::StrCat("deadlock: ", baton_->Describe()));
  }
  TileView src;
  if (failed() || !ReadView(send.src, s.span, &src)) return false;
  const Buffer& b = buffer(send.channel);
  c->messages.emplace_back();
  Elements& message = c->messages.back();
  message.Resize(b.num_elements(), exact_);
  const TileView to = ViewOf(src.id, b.dtype, b.extents, &message);
  const ScalarType type = ComputeType(src.dtype);
  ForEachCoordinate(src.rank, src.extent, [&](const Index& i) {
    const Value v = src.Get(src.At(i));
    to.Set(to.At(i), src.dtype == b.dtype ? v : arith_.Convert(b.dtype, type, v));
  });
  baton_->NoteProgress();
  return true;
}

bool Agent::Exec(const Stmt& s, const Recv& recv) {
  Channel* c = FindChannel(recv.channel, s.span);
  if (c == nullptr) return false;
  if (c->receiver == kNoId) c->receiver = group_;
  if (c->receiver != group_) {
    Fail(s.span,
         absl::StrCat("groups ", c->receiver, " and ", group_, " both receive from channel ",
                      Quoted(recv.channel), "; it has one receiving group"));
    return false;
  }
  const std::string what =
      absl::StrCat("recv from ", Quoted(recv.channel), " (", FormatSpan(s.span), ")");
  if (!baton_->WaitUntil(group_, what, [&] { return failed() || !c->messages.empty(); })) {
    Fail(s.span, absl::StrCat("deadlock: ", baton_->Describe()));
  }
  TileView dst;
  if (failed() || !View(recv.dst, s.span, &dst)) return false;
  const Buffer& b = buffer(recv.channel);
  const TileView from = ViewOf(recv.channel, b.dtype, b.extents, &c->messages.front());
  const ScalarType type = ComputeType(b.dtype);
  ForEachCoordinate(dst.rank, dst.extent, [&](const Index& i) {
    const Value v = from.Get(from.At(i));
    dst.Set(dst.At(i), dst.dtype == b.dtype ? v : arith_.Convert(dst.dtype, type, v));
  });
  c->messages.pop_front();
  baton_->NoteProgress();
  return true;
}

}  // namespace tl::reference
