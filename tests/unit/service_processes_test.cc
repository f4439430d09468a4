// Cold processes that share a cache: one compiles, and when it is killed another does.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/context.h"
#include "tests/unit/cache_testing.h"

extern char** environ;

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)

constexpr char kLeases[] = "SELECT count(*) FROM lease";

// Takes the CPU's compiler a while: a sum over so many terms that all differ.
std::string SlowProgram(int terms) {
  std::string sum = "x[i]";
  for (int i = 0; i < terms; ++i) absl::StrAppend(&sum, " + sin(x[i] * ", i, ".5)");
  return absl::StrCat(
      "tl 1.0\nkernel slow(N: dim) {\n  in X: tensor<f32>[N]\n  out Y: tensor<f32>[N]\n"
      "  launch n in ceildiv(N, 64) {\n    x = alloc_fragment<f32>[64]\n    copy X[n*64] -> x\n"
      "    parallel i in 64 { x[i] = ",
      sum, " }\n    copy x -> Y[n*64]\n  }\n}\n");
}

StatusOr<CacheStats> CompileIn(const std::string& directory, int terms) {
  ContextOptions options;
  options.cache_dir = directory;
  TL_ASSIGN_OR_RETURN(const std::shared_ptr<Context> context, Context::Create(options));
  const std::string source = SlowProgram(terms);
  CompileRequest request;
  request.source = source;
  request.target = "cpu";
  TL_RETURN_IF_ERROR(context->Compile(request).status());
  return context->Stats();
}

// This program again, with the one test below.
pid_t SpawnCompiler(const std::string& directory, int terms, const std::string& report) {
  std::vector<std::string> variables = {"TL_TEST_CACHE=" + directory,
                                        absl::StrCat("TL_TEST_TERMS=", terms),
                                        "TL_TEST_REPORT=" + report};
  std::vector<char*> env;
  for (char** e = environ; *e != nullptr; ++e) {
    if (std::string_view(*e).substr(0, 5) != "GTEST") env.push_back(*e);
  }
  for (std::string& v : variables) env.push_back(v.data());
  env.push_back(nullptr);
  // By its real name: modules are looked for beside it.
  std::string self = std::filesystem::read_symlink("/proc/self/exe"),
              filter = "--gtest_filter=Child.Compiles";
  char* argv[] = {self.data(), filter.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, (report + ".out").c_str(), O_WRONLY | O_CREAT,
                                   0600);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv, env.data()), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

TEST(Child, Compiles) {
  const char* report = getenv("TL_TEST_REPORT");
  if (report == nullptr) GTEST_SKIP() << "only for the other tests";
  const auto stats = CompileIn(getenv("TL_TEST_CACHE"), atoi(getenv("TL_TEST_TERMS")));
  ASSERT_TRUE(stats.ok()) << stats.status();
  std::ofstream(report) << stats->compiles << " " << stats->hits;
}

bool HasCpu() {
  ContextOptions options;
  options.cache_mode = CacheMode::kMemory;
  const auto context = Context::Create(options);
  if (!context.ok()) return false;
  for (const Device& device : (*context)->devices()) {
    if (device.info.target.backend == "cpu") return true;
  }
  return false;
}

TEST(ServiceProcesses, SixteenColdOnesCompileOnce) {
  if (!HasCpu()) GTEST_SKIP() << "without the CPU module nothing compiles here";
  TempDir dir;
  std::vector<pid_t> children;
  const auto report = [&](int i) { return absl::StrCat(dir.path(), "/report", i); };
  for (int i = 0; i < 16; ++i) children.push_back(SpawnCompiler(dir.cache(), 60, report(i)));
  int compiles = 0, hits = 0;
  for (int i = 0; i < 16; ++i) {
    int status = 0;
    ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << ReadFile(report(i) + ".out");
    int own_compiles = -1, own_hits = -1;
    std::ifstream(report(i)) >> own_compiles >> own_hits;
    compiles += own_compiles;
    hits += own_hits;
  }
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(hits, 15);
}

// Kills a process while it has the lease, which is while it compiles.
void KillACompiler(const TempDir& dir, int terms) {
  const pid_t child = SpawnCompiler(dir.cache(), terms, dir.path() + "/report");
  int status = 0;
  std::string leases = "0";
  while (leases != "1" && waitpid(child, &status, WNOHANG) == 0) {
    absl::SleepFor(absl::Milliseconds(1));
    if (!std::filesystem::exists(dir.database())) continue;
    sqlite3* db = nullptr;
    sqlite3_open_v2(dir.database().c_str(), &db, SQLITE_OPEN_READWRITE, nullptr);
    sqlite3_stmt* statement = nullptr;
    // The tables may still be missing.
    if (sqlite3_prepare_v2(db, kLeases, -1, &statement, nullptr) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
      leases = std::to_string(sqlite3_column_int(statement, 0));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

TEST(ServiceProcesses, AnotherTakesOverFromAKilledOne) {
  if (!HasCpu()) GTEST_SKIP() << "without the CPU module nothing compiles here";
  TempDir dir;
  // One that was quick enough to finish leaves no lease: again, with more to do.
  int terms = 100;
  for (std::string leases; leases != "1"; terms *= 2) {
    ASSERT_LT(terms, 4000) << "no process could be killed while it compiled";
    KillACompiler(dir, terms);
    leases = RawDatabase(dir.database()).Value(kLeases);
    if (leases == "1") break;
  }
  const auto stats = CompileIn(dir.cache(), terms);
  ASSERT_TRUE(stats.ok()) << stats.status();
  EXPECT_EQ(stats->compiles, 1u);
  EXPECT_EQ(stats->waits, 1u);
  EXPECT_EQ(RawDatabase(dir.database()).Value(kLeases), "0");
  EXPECT_EQ(CompileIn(dir.cache(), terms)->hits, 1u);
}

}  // namespace
}  // namespace tl
