// Tuning through the C interface, for real on the CPU: what holds whatever the clock says.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/abi/tune_testing.h"

namespace {

using border::Sized;
using border::TempDir;
using namespace tuning;  // NOLINT(build/namespaces)

#define SKIP_WITHOUT_CPU(context)               \
  if (families::FindDevice(context, "cpu") < 0) \
  GTEST_SKIP() << "without the CPU module nothing is compiled here"

TEST(Tune, CandidatesThatFaultSpinOrAreWrongCostOnlyThemselves) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kPlanted, {}, {64});
  // Far more than the right ones take, also on a machine that has much else to do.
  request.tune.candidate_seconds = 5;
  const Tuned tuned = Tune(context.get(), request);
  ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
  EXPECT_EQ(tuned.configuration, "mode=0 work=400") << tuned.report;
  EXPECT_LT(tuned.result.median_ns, tuned.result.default_ns);
  EXPECT_EQ(tuned.result.space, 5u);
  EXPECT_EQ(tuned.result.built, 5u);
  EXPECT_EQ(tuned.result.disqualified, 3u) << tuned.report;
  // Of signal 11, or a sanitizer says so.
  EXPECT_TRUE(Has(tuned.report, "the worker process ")) << tuned.report;
  EXPECT_TRUE(Has(tuned.report, "did not end within")) << tuned.report;
  EXPECT_TRUE(Has(tuned.report, "that nothing has written")) << tuned.report;
  // The caller launches on.
  std::vector<float> x(64, 3), y(64, 0);
  border::Launch launch{
      .tensors = {x.data(), y.data()}, .dims = {64}, .device = request.compile.device};
  ASSERT_EQ(launch.Run(tuned.kernel.get()), TL_OK) << families::LastError();
  EXPECT_EQ(y, std::vector<float>(64, 6));
}

struct Family {
  const char* name;
  Params params;
  std::vector<int64_t> dims;
  uint64_t space;
  uint32_t max_candidates;
};

TEST(Tune, FamiliesForReal) {
  const Family rows[] = {
      {"gemm", {{"t", "f32"}, {"M", "48"}, {"N", "64"}, {"K", "32"}}, {}, 27, 8},
      {"gemm", {{"t", "bf16"}, {"N", "64"}, {"K", "32"}}, {40}, 27, 4},
      {"softmax", {{"t", "f32"}}, {33, 100}, 6, 0},
  };
  for (const Family& row : rows) {
    SCOPED_TRACE(row.name);
    const TempDir dir;
    const border::Context context = ContextOn(dir / "cache");
    SKIP_WITHOUT_CPU(context.get());
    Request request(context.get(), row.name, row.params, row.dims);
    request.tune.max_candidates = row.max_candidates;
    const Tuned tuned = Tune(context.get(), request);
    ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
    const tl_tune_result& r = tuned.result;
    EXPECT_EQ(r.space, row.space);
    EXPECT_EQ(r.built, row.max_candidates > 0 ? row.max_candidates : row.space);
    EXPECT_GT(r.measured, 1u);
    EXPECT_EQ(r.disqualified, 0u) << tuned.report;
    EXPECT_LE(r.median_ns, r.default_ns) << "by its own measurements";
    EXPECT_LE(r.min_ns, r.median_ns);
    EXPECT_LE(r.median_ns, r.max_ns);
    EXPECT_EQ(r.recorded, 1u);
    EXPECT_EQ(border::Stats(context.get()).compiles, r.built);
    // Now whoever gives no tune parameters gets it, here and in another process' context.
    const std::string key = "\"configuration_from\": \"record\"";
    EXPECT_TRUE(Has(border::Text(tuned.kernel.get(), TL_TEXT_REPORT), key));
    const border::Context other = ContextOn(dir / "cache");
    for (tl_context* c : {context.get(), other.get()}) {
      const border::Kernel kernel = Compile(c, request);
      EXPECT_TRUE(Has(border::Text(kernel.get(), TL_TEXT_REPORT), key));
      EXPECT_EQ(border::Text(kernel.get(), TL_TEXT_IR),
                border::Text(tuned.kernel.get(), TL_TEXT_IR));
    }
    EXPECT_EQ(border::Stats(other.get()).compiles, 0u);
  }
}

// `work` is what a launch does besides; the later ones do less.
constexpr char kWork[] = R"(tl 1.0
kernel busy(N: dim; scale: int = 2) {
  in X: tensor<f32>[N]
  out Y: tensor<f32>[N]
  tune work in {4000, 400, 8}, block in {64, 32}
  where block == 64 or work == 400
  launch n in ceildiv(N, block) {
    x, y = alloc_fragment<f32>[block]
    copy X[n*block] -> x
    copy x -> y
    serial k in work { parallel i in block { y[i] = y[i] * 0.999 + 0.5 } }
    parallel i in block { x[i] = if y[i] > 1e30 then y[i] else x[i] * f32(scale) }
    copy x -> Y[n*block]
  }
}
)";

std::string From(tl_context* context, const Request& request) {
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_query(context, &request.compile, &data, &size), TL_OK) << families::LastError();
  const std::string report(data, size), key = "\"configuration_from\": \"";
  const size_t at = report.find(key) + key.size();
  const std::string from = report.substr(at, report.find('"', at) - at);
  EXPECT_EQ(Has(report, "\"record\": {"), Has(from, "record")) << report;
  return from;
}

TEST(Tune, WhoTakesTheRecord) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  tl_context* c = context.get();
  ASSERT_EQ(Tune(c, Request(c, kWork, {{"N", "256"}}, {})).result.recorded, 1u)
      << families::LastError();
  const struct {
    Params params;
    const char* from;
  } rows[] = {
      {{{"N", "256"}}, "record"},
      {{{"N", "256"}, {"scale", "2"}}, "record"},  // the default, said aloud
      {{{"N", "256"}, {"scale", "3"}}, "default"},
      {{{"N", "300"}}, "nearest record"},
      {{{"N", "128"}}, "nearest record"},
      {{{"N", "127"}}, "default"},
      {{}, "nearest record"},  // dynamic
      {{{"N", "256"}, {"work", "4000"}}, "caller"},
      {{{"N", "256"}, {"block", "64"}}, "caller"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(From(c, Request(c, kWork, row.params, {})), row.from)
        << testing::PrintToString(row.params);
  // Another budget is another question; another program has records of its own.
  Request budget(c, kWork, {{"N", "256"}}, {});
  budget.compile.shared_budget = 1 << 20;
  EXPECT_EQ(From(c, budget), "default");
  const std::string changed =
      std::string(kWork).replace(std::string(kWork).find("0.999"), 5, "0.998");
  EXPECT_EQ(From(c, Request(c, changed, {{"N", "256"}}, {})), "default");
  // By target too: any device that has it.
  Request target(c, kWork, {{"N", "256"}}, {});
  target.compile.target = "cpu";
  EXPECT_EQ(From(c, target), "record");
}

TEST(Tune, ANarrowedSpaceIsRecordedOnlyWithTheDefault) {
  const struct {
    Params params;
    uint64_t space;
    uint32_t recorded;
  } rows[] = {
      {{{"work", "400,8"}}, 3, 0},
      {{{"work", "4000,8"}}, 2, 1},
      {{{"work", "4000, 16"}, {"block", "64"}}, 2, 1},  // 16 is a candidate of the caller's
      {{{"work", "8"}, {"block", "64"}}, 1, 0},
  };
  for (const auto& row : rows) {
    const TempDir dir;
    const border::Context context = ContextOn(dir / "cache");
    SKIP_WITHOUT_CPU(context.get());
    const Tuned tuned = Tune(context.get(), Request(context.get(), kWork, row.params, {128}));
    ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
    EXPECT_EQ(tuned.result.space, row.space) << tuned.report;
    EXPECT_EQ(tuned.result.recorded, row.recorded) << tuned.report;
    EXPECT_EQ(From(context.get(), Request(context.get(), kWork, {}, {})),
              row.recorded ? "record" : "default");
  }
}

TEST(Tune, MistakesAreNamed) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  tl_context* c = context.get();
  const struct {
    Params params;
    std::vector<int64_t> dims;
    void (*change)(Request&);
    tl_status status;
    const char* message;
  } rows[] = {
      {{{"wrok", "8"}},
       {64},
       nullptr,
       TL_INVALID_ARGUMENT,
       "no parameter 'wrok'; did you mean 'work'?"},
      {{{"work", "8"}, {"block", "32"}},
       {64},
       nullptr,
       TL_INVALID_ARGUMENT,
       "'where block == 64 or work == 400' does not hold for the values given"},
      {{{"work", "8,4000"}, {"block", "32"}},
       {64},
       nullptr,
       TL_INVALID_ARGUMENT,
       "'where block == 64 or work == 400' does not hold for any combination"},
      {{{"work", "8,,4"}}, {64}, nullptr, TL_INVALID_ARGUMENT, "the value '' of 'work'"},
      {{}, {}, nullptr, TL_INVALID_ARGUMENT, "takes 1 dims, and 0 are given"},
      {{},
       {64},
       [](Request& r) { r.tune.max_seconds = 0; },
       TL_INVALID_ARGUMENT,
       "max_seconds is 0"},
      {{},
       {64},
       [](Request& r) { r.tune.candidate_seconds = -1; },
       TL_INVALID_ARGUMENT,
       "candidate_seconds is -1"},
      {{}, {64}, [](Request& r) { r.tune.jobs = -1; }, TL_INVALID_ARGUMENT, "jobs is -1"},
      {{}, {64}, [](Request& r) { r.tune.in_process = 2; }, TL_INVALID_ARGUMENT, "in_process is 2"},
      {{}, {64}, [](Request& r) { r.tune.reserved = 1; }, TL_INVALID_ARGUMENT, "reserved is 1"},
      {{},
       {64},
       [](Request& r) { r.tune.compile = nullptr; },
       TL_INVALID_ARGUMENT,
       "tl_tune_options.compile is NULL"},
      {{},
       {64},
       [](Request& r) { r.compile.target = "sm_80"; },
       TL_FAILED_PRECONDITION,
       "tuning measures on a device"},
      {{}, {64}, [](Request& r) { r.compile.device = 99; }, TL_NOT_FOUND, "there is no device 99"},
      {{},
       {64},
       [](Request& r) { r.tune.worker = "/nowhere/tl-worker"; },
       TL_NOT_FOUND,
       "is not at /nowhere/tl-worker"},
      // What starts, but is no worker.
      {{}, {64}, [](Request& r) { r.tune.worker = "/bin/true"; }, TL_ABORTED, "ended with code 0"},
  };
  for (const auto& row : rows) {
    Request request(c, kWork, row.params, row.dims);
    if (row.change) row.change(request);
    EXPECT_FAILS(Tune(c, request).status, row.status, row.message);
  }
  EXPECT_FAILS(Tune(c, Request(c, border::AddProgram(1), {}, {64})).status, TL_INVALID_ARGUMENT,
               "'add' has no tune clause for cpu");
  ASSERT_EQ(tl_seal(c), TL_OK);
  EXPECT_FAILS(Tune(c, Request(c, kWork, {}, {64})).status, TL_FAILED_PRECONDITION, "sealed");
}

// Scripts in the worker's place; the socket is their standard input.
TEST(Tune, AWorkerThatIsNone) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  const struct {
    const char* script;
    tl_status status;
    const char* message;
  } rows[] = {
      {"exit 3", TL_ABORTED, "the worker process ended with code 3"},
      {"kill -9 $$", TL_ABORTED, "the worker process died of signal 9"},
      {R"(printf '\032\0\0\0\0\0\0\0{"version":"0","blobs":[]}' >&0)", TL_FAILED_PRECONDITION,
       "belongs to another version of the library"},
      {R"(printf '\002\0\0\0\0\0\0\0{]' >&0)", TL_ABORTED, "the worker process ended"},
      {R"(printf '\016\0\0\0\0\0\0\0{"blobs":[""]}' >&0)", TL_ABORTED, "the worker process ended"},
      {R"(printf '\377\377\377\377\377\377\377\377' >&0)", TL_ABORTED, "the worker process ended"},
  };
  const std::string path = dir / "worker";
  for (const auto& row : rows) {
    std::ofstream(path) << "#!/bin/sh\n" << row.script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    Request request(context.get(), kWork, {}, {64});
    request.tune.worker = path.c_str();
    EXPECT_FAILS(Tune(context.get(), request).status, row.status, row.message);
  }
}

TEST(Tune, InThisProcessOnlyWhenAsked) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kWork, {}, {64});
  request.tune.in_process = 1;
  request.tune.worker = "/nowhere/tl-worker";  // not looked at
  const Tuned tuned = Tune(context.get(), request);
  ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
  EXPECT_NE(tuned.configuration, "work=4000 block=64") << tuned.report;
}

TEST(Tune, WhatExceedsSharedMemoryIsNeverCompiled) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), "gemm", {{"t", "f32"}, {"M", "64"}, {"N", "64"}, {"K", "64"}}, {});
  request.compile.shared_budget = 100000;
  const Tuned tuned = Tune(context.get(), request);
  ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
  EXPECT_EQ(tuned.result.space, 27u);
  EXPECT_GT(tuned.result.refused, 0u);
  EXPECT_EQ(tuned.result.built, 27 - tuned.result.refused);
  EXPECT_EQ(border::Stats(context.get()).compiles, tuned.result.built);
  // The default is among them; now there is something to compile instead.
  EXPECT_EQ(tuned.result.default_ns, 0);
  EXPECT_EQ(tuned.result.recorded, 1u);
  EXPECT_NE(Compile(context.get(), request), nullptr);
  // Where nothing fits, the first one's need and the budget are named.
  request.compile.shared_budget = 1000;
  EXPECT_FAILS(Tune(context.get(), request).status, TL_RESOURCE_EXHAUSTED,
               "none of 27 combinations of tune parameters can be used (27 were tried); the first "
               "of them: the tiles of one block take ");
  EXPECT_NE(border::LastMessage().find("budget given is 1000"), std::string::npos);
  EXPECT_EQ(border::Stats(context.get()).compiles, tuned.result.built);
}

TEST(Tune, CandidateBudget) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kWork, {}, {64});
  request.tune.max_candidates = 2;
  const Tuned tuned = Tune(context.get(), request);
  ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
  EXPECT_EQ(tuned.result.built, 2u);
  EXPECT_EQ(border::Stats(context.get()).compiles, 2u);
}

TEST(Tune, AnEarlierWinnerIsTriedFirst) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kWork, {}, {64});
  const Tuned first = Tune(context.get(), request);
  ASSERT_EQ(first.status, TL_OK) << families::LastError();
  request.tune.max_candidates = 2;
  const Tuned again = Tune(context.get(), request);
  ASSERT_EQ(again.status, TL_OK) << families::LastError();
  EXPECT_EQ(again.configuration, first.configuration) << again.report;
  EXPECT_EQ(again.result.built, 2u);
}

int StopAtOnce(void* user, const tl_tune_event* event) {
  ++*static_cast<int*>(user);
  EXPECT_EQ(event->total, 4u);
  EXPECT_EQ(event->struct_size, sizeof(*event));
  EXPECT_STREQ(event->configuration, "work=4000 block=64");
  EXPECT_GT(event->median_ns, 0);
  return 1;
}

TEST(Tune, CancelledByTheCallback) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kWork, {}, {64});
  int events = 0;
  request.tune.progress = StopAtOnce;
  request.tune.user = &events;
  EXPECT_FAILS(Tune(context.get(), request).status, TL_CANCELLED, "cancelled after 1 candidates");
  EXPECT_EQ(events, 1);
  EXPECT_EQ(From(context.get(), request), "default");
}

// While a candidate spins, so that there is something to cancel however fast the machine is.
TEST(Tune, CancelledByAnotherThread) {
  const TempDir dir;
  const border::Context context = ContextOn(dir / "cache");
  SKIP_WITHOUT_CPU(context.get());
  Request request(context.get(), kPlanted, {{"mode", "2"}, {"work", "400"}}, {64});
  std::atomic<int32_t> flag{0};
  std::atomic<bool> over{false};
  request.tune.cancel = reinterpret_cast<const int32_t*>(&flag);
  std::thread other([&] {
    while (border::Stats(context.get()).compiles == 0 && !over) std::this_thread::yield();
    flag = 1;
  });
  const tl_status status = Tune(context.get(), request).status;
  over = true;
  other.join();
  EXPECT_EQ(status, TL_CANCELLED);
}

// In all files of a directory; how often.
int Replace(const std::string& directory, const std::string& from, const std::string& to) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    const int before = count;
    for (size_t at = 0; (at = bytes.find(from, at)) != std::string::npos; at += from.size()) {
      bytes.replace(at, from.size(), to);
      ++count;
    }
    if (count > before) std::ofstream(entry.path(), std::ios::binary) << bytes;
  }
  return count;
}

TEST(Tune, ADamagedRecordIsAMiss) {
  const TempDir dir;
  {
    const border::Context context = ContextOn(dir / "cache");
    SKIP_WITHOUT_CPU(context.get());
    ASSERT_EQ(Tune(context.get(), Request(context.get(), kWork, {}, {64})).result.recorded, 1u);
  }
  EXPECT_GT(Replace(dir / "cache", "\"work\":\"8\"", "\"work\":\"9\""), 0);
  const border::Context context = ContextOn(dir / "cache");
  EXPECT_EQ(From(context.get(), Request(context.get(), kWork, {}, {})), "default");
}

TEST(Tune, PacksCarryRecordsAndSealedContextsTakeThem) {
  const TempDir dir;
  const std::string pack = dir / "my.pack";
  {
    const border::Context context = ContextOn(dir / "cache");
    SKIP_WITHOUT_CPU(context.get());
    ASSERT_EQ(Tune(context.get(), Request(context.get(), kWork, {}, {64})).result.recorded, 1u);
    tl_cache_transfer transfer = Sized<tl_cache_transfer>();
    ASSERT_EQ(tl_cache_export(context.get(), pack.c_str(), nullptr, 0, &transfer), TL_OK);
    EXPECT_EQ(transfer.records, 1u);
  }
  const border::Context context = ContextOn(dir / "other", {pack.c_str()});
  ASSERT_EQ(tl_seal(context.get()), TL_OK);
  const border::Kernel kernel = Compile(context.get(), Request(context.get(), kWork, {}, {}));
  const std::string report = border::Text(kernel.get(), TL_TEXT_REPORT);
  EXPECT_TRUE(Has(report, "\"configuration_from\": \"record\"")) << report;
  EXPECT_TRUE(Has(report, "\"work\": \"8\"")) << report;
}

TEST(Tune, ASealedContextTakesTheDefaultWhereTheRecordsKernelIsMissing) {
  const TempDir dir;
  {
    const border::Context context = ContextOn(dir / "cache");
    SKIP_WITHOUT_CPU(context.get());
    Compile(context.get(), Request(context.get(), kWork, {}, {}));
    // Tuned with N fixed: near the dynamic one, which was never compiled with the winner's values.
    ASSERT_EQ(Tune(context.get(), Request(context.get(), kWork, {{"N", "64"}}, {})).result.recorded,
              1u);
  }
  const border::Context context = ContextOn(dir / "cache");
  ASSERT_EQ(tl_seal(context.get()), TL_OK);
  const border::Kernel kernel = Compile(context.get(), Request(context.get(), kWork, {}, {}));
  EXPECT_TRUE(
      Has(border::Text(kernel.get(), TL_TEXT_REPORT), "\"configuration_from\": \"default\""));
}

}  // namespace
