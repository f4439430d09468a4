// Several processes: children by fork, a second process on one cache, a cache that cannot be.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/abi/abi_testing.h"
#include "tests/abi/temp_dir.h"

extern char** environ;

namespace {

namespace fs = std::filesystem;
using border::Sized;
using border::TempDir;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

// ---- A second process: this program again, with one test.

struct Counters {
  uint64_t compiles = 99, hits = 99, quarantined = 99, warnings = 99;
  int right = -1;
};

// Compiles and runs one program with the cache that the environment names.
TEST(Child, Run) {
  const char* report = std::getenv("TL_TEST_REPORT");
  if (!report) GTEST_SKIP() << "only for the other tests";
  uint64_t warnings = 0;
  tl_context_options options = Sized<tl_context_options>();
  options.log = [](void* user, tl_log_level level, const char*) {
    if (level >= TL_LOG_WARNING) ++*static_cast<uint64_t*>(user);
  };
  options.log_user = &warnings;
  tl_context* context = nullptr;
  ASSERT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
  bool right = true;
  for (int add : {1, 2}) {
    const border::Kernel kernel = border::CompileFor(context, border::AddProgram(add), "cpu");
    ASSERT_TRUE(kernel);
    right &= border::RunsRight(kernel.get(), families::FindDevice(context, "cpu"), add, 1000);
  }
  const tl_cache_stats stats = border::Stats(context);
  std::ofstream(report) << stats.compiles << " " << stats.hits << " " << stats.quarantined << " "
                        << warnings << " " << right;
  tl_context_release(context);
}

Counters RunChild(const std::string& report, std::vector<std::string> variables) {
  variables.push_back("TL_TEST_REPORT=" + report);
  std::vector<char*> env;
  for (char** e = environ; *e; ++e) {
    const std::string_view name(*e, std::string_view(*e).find('='));
    const bool replaced = name == "TL_CACHE_DIR" || name == "HOME" || name == "XDG_CACHE_HOME" ||
                          name.substr(0, 5) == "GTEST";
    if (!replaced) env.push_back(*e);
  }
  for (std::string& v : variables) env.push_back(v.data());
  env.push_back(nullptr);
  std::string self = "/proc/self/exe", filter = "--gtest_filter=Child.Run";
  char* argv[] = {self.data(), filter.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv, env.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Counters c;
  std::ifstream(report) >> c.compiles >> c.hits >> c.quarantined >> c.warnings >> c.right;
  return c;
}

TEST(Processes, SecondIsServedFromTheCache) {
  const TempDir dir;
  const std::string cache = "TL_CACHE_DIR=" + (dir / "cache");
  const Counters first = RunChild(dir / "report1", {cache});
  EXPECT_EQ(first.compiles, 2u);
  EXPECT_EQ(first.hits, 0u);
  EXPECT_EQ(first.right, 1);
  const Counters second = RunChild(dir / "report2", {cache});
  EXPECT_EQ(second.compiles, 0u);
  EXPECT_EQ(second.hits, 2u);
  EXPECT_EQ(second.warnings, 0u);
  EXPECT_EQ(second.right, 1);
  // The same through HOME and XDG_CACHE_HOME.
  for (const char* name : {"HOME=", "XDG_CACHE_HOME="}) {
    const std::string place = name + (dir / (name[0] == 'H' ? "home" : "xdg"));
    EXPECT_EQ(RunChild(dir / "report3", {place}).compiles, 2u);
    EXPECT_EQ(RunChild(dir / "report4", {place}).compiles, 0u);
  }
}

TEST(Processes, DamagedCacheIsCompiledAnew) {
  const TempDir dir;
  const std::string cache = "TL_CACHE_DIR=" + (dir / "cache");
  const auto files = [&] {
    std::vector<fs::path> out;
    for (const auto& entry : fs::recursive_directory_iterator(dir / "cache")) {
      if (entry.is_regular_file() && entry.file_size() > 4096) out.push_back(entry.path());
    }
    return out;
  };
  const std::vector<std::function<void(const fs::path&)>> damages = {
      [](const fs::path& p) { fs::resize_file(p, fs::file_size(p) / 2); },
      [](const fs::path& p) { fs::resize_file(p, 0); },
      [](const fs::path& p) { std::ofstream(p) << "this is no database"; },
      [](const fs::path& p) {
        // every 64th byte of the file's second half
        std::fstream f(p, std::ios::in | std::ios::out | std::ios::binary);
        const auto size = static_cast<int64_t>(fs::file_size(p));
        for (int64_t at = size / 2; at < size; at += 64) {
          f.seekg(at);
          const char c = static_cast<char>(f.get() ^ 0x10);
          f.seekp(at);
          f.put(c);
        }
      }};
  for (size_t i = 0; i < damages.size(); ++i) {
    RunChild(dir / "warm", {cache});
    const std::vector<fs::path> found = files();
    ASSERT_FALSE(found.empty());
    for (const fs::path& p : found) damages[i](p);
    const Counters after = RunChild(dir / "after", {cache});
    EXPECT_EQ(after.right, 1) << i;
    EXPECT_EQ(after.compiles + after.hits, 2u) << i;
    // Damage that no hit met is found at the end and set aside then.
    RunChild(dir / "healing", {cache});
    const Counters healed = RunChild(dir / "healed", {cache});
    EXPECT_EQ(healed.right, 1) << i;
    EXPECT_EQ(healed.compiles, 0u) << i;
  }
}

// Where no cache can be, compiling works all the same, and it is told once.
TEST(Processes, NoPlaceForACache) {
  const TempDir dir;
  std::ofstream(dir / "file") << "in the way";
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink((dir / "nowhere").c_str(), (dir / "link").c_str()), 0);
  ASSERT_EQ(mkdir((dir / "open").c_str(), 0700), 0);
  ASSERT_EQ(chmod((dir / "open").c_str(), 0777), 0);
  ASSERT_EQ(mkdir((dir / "locked").c_str(), 0500), 0);
  const std::vector<std::vector<std::string>> environments = {
      {"TL_CACHE_DIR=" + (dir / "file")},
      {"TL_CACHE_DIR=" + (dir / "file/below")},
      {"TL_CACHE_DIR=" + (dir / "fifo")},
      {"TL_CACHE_DIR=" + (dir / "link")},
      {"TL_CACHE_DIR=" + (dir / "open")},
      {"TL_CACHE_DIR=/proc/tilejit"},
      {"TL_CACHE_DIR=/dev/null"},
      {"TL_CACHE_DIR=" + std::string(5000, 'x')},
      {},  // neither HOME nor anything else
      {"HOME="},
      {"HOME=relative"},
      {"HOME=/proc/nobody"},
  };
  for (const std::vector<std::string>& variables : environments) {
    const std::string what = variables.empty() ? "no variables" : variables[0].substr(0, 80);
    const Counters c = RunChild(dir / "report", variables);
    EXPECT_EQ(c.compiles, 2u) << what;
    EXPECT_EQ(c.right, 1) << what;
    EXPECT_EQ(c.warnings, 1u) << what;
  }
  // Root may write there all the same.
  const Counters locked = RunChild(dir / "report", {"TL_CACHE_DIR=" + (dir / "locked")});
  EXPECT_EQ(locked.compiles, 2u);
  EXPECT_EQ(locked.right, 1);
}

TEST(Processes, CacheDirectoryInOptions) {
  const TempDir dir;
  const std::string place = dir / "place";
  for (uint64_t compiles : {1u, 0u}) {
    tl_context_options options = Sized<tl_context_options>();
    options.cache_dir = place.c_str();
    tl_context* context = nullptr;
    ASSERT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
    const border::Kernel kernel = border::CompileFor(context, border::AddProgram(3), "reference");
    EXPECT_EQ(border::Stats(context).compiles, compiles);
    EXPECT_EQ(std::string(border::Stats(context).location).find(place), 0u);
    tl_context_release(context);
    // The kernel outlives the handle of its context.
    EXPECT_TRUE(border::RunsRight(
        kernel.get(), families::FindDevice(families::SharedContext(), "reference"), 3, 100));
  }
  // Read only: what is there is used, nothing is added.
  tl_context_options options = Sized<tl_context_options>();
  options.cache_dir = place.c_str();
  options.cache_mode = TL_CACHE_READ_ONLY;
  for (int round = 0; round < 2; ++round) {
    tl_context* context = nullptr;
    ASSERT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
    border::CompileFor(context, border::AddProgram(3), "reference");
    EXPECT_EQ(border::Stats(context).hits, 1u);
    border::CompileFor(context, border::AddProgram(4), "reference");
    EXPECT_EQ(border::Stats(context).compiles, 1u);
    tl_context_release(context);
  }
}

// ---- fork

// Runs `body` in a child and returns what it returned; -1 when the child died or hung.
int InChild(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(body());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, ChildrenMakeTheirOwn) {
  if (kThreadSanitizer) GTEST_SKIP() << "threads of a forked child are none of its business";
  const TempDir dir;
  const std::string place = dir / "cache";
  tl_context_options options = Sized<tl_context_options>();
  options.cache_dir = place.c_str();
  options.cpu_threads = 4;
  tl_context* context = nullptr;
  ASSERT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
  const int32_t cpu = families::FindDevice(context, "cpu");
  const border::Kernel kernel = border::CompileFor(context, border::AddProgram(1), "cpu");
  ASSERT_TRUE(border::RunsRight(kernel.get(), cpu, 1, 100000));  // its threads are running now
  const int inherited = InChild([&] {
    const tl_compile_options compile = border::SourceOptions("tl 1.0", "cpu");
    tl_launch_args launch = Sized<tl_launch_args>();
    launch.device = cpu;
    tl_check_options check = Sized<tl_check_options>();
    tl_check_result checked = Sized<tl_check_result>();
    tl_bench_options bench = Sized<tl_bench_options>();
    tl_bench_result timed = Sized<tl_bench_result>();
    tl_cache_stats stats = Sized<tl_cache_stats>();
    tl_device_info device = Sized<tl_device_info>();
    tl_cache_report report = Sized<tl_cache_report>();
    const auto ignore = [](void*, const tl_cache_entry*) { return 0; };
    tl_kernel* out = nullptr;
    int32_t count = 0;
    const char* data = nullptr;
    size_t size = 0;
    const tl_status results[] = {
        tl_compile(context, &compile, &out),
        tl_launch(kernel.get(), &launch),
        tl_prepare(kernel.get(), cpu),
        tl_check(kernel.get(), &check, &checked),
        tl_bench(kernel.get(), &bench, &timed),
        tl_cache_get_stats(context, &stats),
        tl_device_count(context, &count),
        tl_device_get(context, 0, &device),
        tl_kernel_text(kernel.get(), TL_TEXT_SOURCE, &data, &size),
        tl_launch_dlpack(kernel.get(), nullptr, 0, &launch),
        tl_seal(context),
        tl_cache_export(context, "never.pack", nullptr, 0, nullptr),
        tl_cache_import(context, "never.pack", nullptr),
        tl_cache_verify(context, nullptr, &report),
        tl_cache_list(context, nullptr, ignore, nullptr),
    };
    int i = 0;
    for (tl_status s : results) {
      ++i;
      if (s != TL_FAILED_PRECONDITION) return i;
    }
    if (border::LastMessage().find("before fork()") == std::string::npos) return 100;
    return 0;
  });
  EXPECT_EQ(inherited, 0);
  // Letting go of what was inherited neither hangs nor harms, and a context of its own works.
  const int own = InChild([&] {
    tl_context_retain(context);
    tl_context_release(context);
    tl_kernel_retain(kernel.get());
    tl_kernel_release(kernel.get());
    tl_context_release(context);
    tl_kernel_release(kernel.get());
    tl_context* mine = nullptr;
    if (tl_context_create(&options, &mine) != TL_OK) return 1;
    tl_kernel* again = nullptr;
    const std::string source = border::AddProgram(1);
    const tl_compile_options compile = border::SourceOptions(source, "cpu");
    if (tl_compile(mine, &compile, &again) != TL_OK) return 2;
    if (!border::RunsRight(again, cpu, 1, 100000)) return 3;
    tl_kernel_release(again);
    tl_context_release(mine);
    return 0;
  });
  EXPECT_EQ(own, 0);
  EXPECT_TRUE(border::RunsRight(kernel.get(), cpu, 1, 1000));  // the parent goes on
  tl_context_release(context);
}

}  // namespace
