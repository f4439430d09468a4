// What the service costs, no kernel speed involved: compiling cold, from the store in a fresh
// process, from memory; launching. Every clock starts at the call into the library.
//
//   perf_service_bench [--json FILE]
//
// Cold and warm times are those of fresh processes: the program starts itself again. Without a GPU
// the CPU's rows and the offline compile remain.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cuda_driver.h"
#include "measure.h"
#include "tl/tl.h"

namespace perf {
namespace {

constexpr int kProcesses = 15;  // fresh ones per row
constexpr int kMemoryHits = 200000;
constexpr int kLaunches = 100000;  // per thread

// ---- The library, failures as exceptions --------------------------------------------------------

template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

void Check(tl_status status) {
  if (status == TL_OK) return;
  tl_error_info error = Sized<tl_error_info>();
  tl_last_error(&error);
  throw std::runtime_error(std::string(tl_status_name(status)) + ": " + error.message);
}

struct Release {
  void operator()(tl_context* c) const { tl_context_release(c); }
  void operator()(tl_kernel* k) const { tl_kernel_release(k); }
};
using Context = std::unique_ptr<tl_context, Release>;
using Kernel = std::unique_ptr<tl_kernel, Release>;

// An empty directory: no cache on disk.
Context MakeContext(const std::string& cache_dir) {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_dir = cache_dir.c_str();
  if (cache_dir.empty()) options.cache_mode = TL_CACHE_MEMORY;
  tl_context* context = nullptr;
  Check(tl_context_create(&options, &context));
  return Context(context);
}

// What to compile for.
struct Place {
  std::string target;
  int32_t device = -1;  // -1: not here
  std::string backend;
  int32_t ordinal = 0;
};

std::optional<Place> FindPlace(tl_context* context, const std::string& backend) {
  int32_t count = 0;
  Check(tl_device_count(context, &count));
  for (int32_t i = 0; i < count; ++i) {
    tl_device_info info = Sized<tl_device_info>();
    Check(tl_device_get(context, i, &info));
    if (backend == info.backend) return Place{info.target, i, backend, info.ordinal};
  }
  return std::nullopt;
}

Kernel Compile(tl_context* context, const char* family, const Place& place,
               const std::vector<tl_param>& params = {}) {
  tl_compile_options options = Sized<tl_compile_options>();
  options.family = family;
  options.params = params.data();
  options.num_params = params.size();
  options.target = place.target.c_str();
  options.device = std::max(place.device, 0);
  tl_kernel* kernel = nullptr;
  Check(tl_compile(context, &options, &kernel));
  return Kernel(kernel);
}

void Load(const Kernel& kernel, const Place& place) {
  if (place.device >= 0) Check(tl_prepare(kernel.get(), place.device));
}

// ---- Fresh processes ----------------------------------------------------------------------------

Place PlaceNamed(tl_context* context, const std::string& name) {
  if (std::optional<Place> place = FindPlace(context, name)) return *place;
  return {name, -1, "", 0};
}

// Prints the times of the first compile in a process, of gemm, with dims dynamic and fixed, and of
// causal attention.
int ColdChild(const std::string& where) {
  const Context context = MakeContext("");
  const Place place = PlaceNamed(context.get(), where);
  std::optional<CudaDriver> driver;
  if (place.backend == "cuda") driver.emplace(place.ordinal);
  const auto time = [&](const char* family, const std::vector<tl_param>& params) {
    return TimeUs([&] { Load(Compile(context.get(), family, place, params), place); });
  };
  const double first = time("vector_add", {{"t", "f32"}});
  const double gemm = time("gemm", {});
  const double fixed = time("gemm", {{"M", "4096"}, {"N", "4096"}, {"K", "4096"}});
  const double attention = time("attention", {{"causal", "on"}});
  std::printf("%f %f %f %f\n", first, gemm, fixed, attention);
  return 0;
}

// Prints the times of making a context and of getting gemm from the store, loaded.
int WarmChild(const std::string& where, const std::string& cache_dir) {
  Context context;
  const double create = TimeUs([&] { context = MakeContext(cache_dir); });
  const Place place = PlaceNamed(context.get(), where);
  // The driver's own start is the host program's affair, which has a context long before.
  std::optional<CudaDriver> driver;
  if (place.backend == "cuda") driver.emplace(place.ordinal);
  const double warm = TimeUs([&] { Load(Compile(context.get(), "gemm", place), place); });
  tl_cache_stats stats = Sized<tl_cache_stats>();
  Check(tl_cache_get_stats(context.get(), &stats));
  if (stats.hits != 1 || stats.compiles != 0) throw std::runtime_error("not served from the store");
  std::printf("%f %f 0 0\n", create, warm);
  return 0;
}

// The numbers that a child prints.
using Numbers = std::array<double, 4>;

Numbers RunChild(const std::string& arguments) {
  std::array<char, 4096> self{};
  if (readlink("/proc/self/exe", self.data(), self.size() - 1) < 0)
    throw std::runtime_error("no /proc/self/exe");
  std::FILE* pipe = popen(("'" + std::string(self.data()) + "' " + arguments).c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start a process");
  Numbers numbers{};
  size_t found = 0;
  while (found < numbers.size() && std::fscanf(pipe, "%lf", &numbers[found]) == 1) ++found;
  if (pclose(pipe) != 0 || found != numbers.size())
    throw std::runtime_error("child failed: " + arguments);
  return numbers;
}

std::array<std::vector<double>, std::tuple_size_v<Numbers>> RunChildren(
    const std::string& arguments) {
  std::array<std::vector<double>, std::tuple_size_v<Numbers>> samples;
  for (int i = 0; i < kProcesses; ++i) {
    const Numbers numbers = RunChild(arguments);
    for (size_t j = 0; j < samples.size(); ++j) samples[j].push_back(numbers[j]);
  }
  return samples;
}

// ---- Rows ---------------------------------------------------------------------------------------

void ColdRows(Table& table, const std::string& where) {
  const auto samples = RunChildren("--cold-child " + where);
  table.Add(where + ": first small kernel of a process", samples[0]);
  table.Add(where + ": gemm, cold, after that", samples[1]);
  table.Add(where + ": gemm of 4096^3, cold, after those", samples[2]);
  table.Add(where + ": causal attention, cold, after those", samples[3]);
}

void WarmRows(Table& table, const std::string& where) {
  std::string dir = (std::filesystem::temp_directory_path() / "tl-bench-XXXXXX").string();
  if (!mkdtemp(dir.data())) throw std::runtime_error("no temporary directory");
  {
    const Context context = MakeContext(dir);
    Compile(context.get(), "gemm", PlaceNamed(context.get(), where));
  }
  const auto samples = RunChildren("--warm-child " + where + " '" + dir + "'");
  table.Add(where + ": tl_context_create", samples[0]);
  table.Add(where + ": gemm from the store, fresh process, loaded", samples[1]);
  std::filesystem::remove_all(dir);
}

void MemoryHitRow(Table& table, const Place& place, double clock) {
  const Context context = MakeContext("");
  const Kernel kernel = Compile(context.get(), "gemm", place);
  std::vector<double> samples;
  for (int i = 0; i < kMemoryHits; ++i) {
    Kernel again;
    samples.push_back(TimeUs([&] { again = Compile(context.get(), "gemm", place); }));
  }
  tl_cache_stats stats = Sized<tl_cache_stats>();
  Check(tl_cache_get_stats(context.get(), &stats));
  if (stats.memory_hits != kMemoryHits) throw std::runtime_error("not served from memory");
  table.Add(place.target + ": gemm from memory", samples, clock);
}

// Times `launch` in every thread; `settle` runs outside the clock, before the queue fills up.
std::vector<double> TimeLaunches(int threads, const std::function<void(int)>& start,
                                 const std::function<void(int)>& launch,
                                 const std::function<void(int)>& settle) {
  constexpr int kBurst = 256;
  std::vector<std::vector<double>> samples(static_cast<size_t>(threads));
  const auto work = [&](int t) {
    start(t);
    for (int i = 0; i < kLaunches / threads; ++i) {
      if (i % kBurst == 0) settle(t);
      samples[static_cast<size_t>(t)].push_back(TimeUs([&] { launch(t); }));
    }
    settle(t);
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(work, t);
  work(0);
  for (std::thread& thread : pool) thread.join();
  std::vector<double> all;
  for (const auto& part : samples) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void CpuLaunchRow(Table& table, double clock) {
  const Context context = MakeContext("");
  const std::optional<Place> cpu = FindPlace(context.get(), "cpu");
  if (!cpu) return;
  const Kernel kernel = Compile(context.get(), "vector_add", *cpu);
  float a = 1, b = 2, c = 0;
  void* tensors[] = {&a, &b, &c};
  const int64_t n = 1;
  tl_launch_args args = Sized<tl_launch_args>();
  args.device = cpu->device;
  args.tensors = tensors;
  args.num_tensors = 3;
  args.dims = &n;
  args.num_dims = 1;
  Check(tl_launch(kernel.get(), &args));
  table.Add("cpu: tl_launch of one addition, run included",
            TimeLaunches(
                1, [](int) {}, [&](int) { Check(tl_launch(kernel.get(), &args)); }, [](int) {}),
            clock);
}

// A kernel with the arguments of vector_add that does nothing.
constexpr char kEmptyKernel[] =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n) { ret; }\n";

void CudaLaunchRows(Table& table, double clock) {
  const Context context = MakeContext("");
  const std::optional<Place> gpu = FindPlace(context.get(), "cuda");
  if (!gpu) return;
  CudaDriver driver(gpu->ordinal);
  const Kernel kernel = Compile(context.get(), "vector_add", *gpu);
  Load(kernel, *gpu);
  uint64_t memory = driver.Alloc(4096);
  int64_t n = 1;
  void* const tensors[] = {reinterpret_cast<void*>(memory), reinterpret_cast<void*>(memory + 1024),
                           reinterpret_cast<void*>(memory + 2048)};
  void* empty = driver.LoadFunction(kEmptyKernel, "empty");
  auto* const launch_kernel = driver.launch_kernel();
  auto* const synchronize = driver.stream_synchronize();
  void* params[] = {&memory, &memory, &memory, &n};
  for (int threads : {1, 16}) {
    std::vector<void*> streams;
    for (int t = 0; t < threads; ++t) streams.push_back(driver.NewStream());
    const auto start = [&](int) { driver.MakeCurrent(); };
    const auto settle = [&](int t) { CudaDriver::Check(synchronize(streams[t])); };
    const auto bare = [&](int t) {
      CudaDriver::Check(launch_kernel(empty, 1, 1, 1, 128, 1, 1, 0, streams[t], params, nullptr));
    };
    const auto ours = [&](int t) {
      tl_launch_args args = Sized<tl_launch_args>();
      args.device = gpu->device;
      args.stream = streams[t];
      args.tensors = tensors;
      args.num_tensors = 3;
      args.dims = &n;
      args.num_dims = 1;
      Check(tl_launch(kernel.get(), &args));
    };
    const std::string suffix = ", " + std::to_string(threads) + " thread(s)";
    // Alternating, so that a drift of the machine hits both.
    std::vector<double> bare_samples, our_samples;
    for (int round = 0; round < 3; ++round) {
      for (double x : TimeLaunches(threads, start, bare, settle)) bare_samples.push_back(x);
      for (double x : TimeLaunches(threads, start, ours, settle)) our_samples.push_back(x);
    }
    table.Add("cuda: bare cuLaunchKernel" + suffix, bare_samples, clock);
    table.Add("cuda: tl_launch" + suffix, our_samples, clock);
    std::printf("%-56s %+12.3f %+12.3f\n", ("cuda: difference" + suffix).c_str(),
                Quantile(our_samples, 0.5) - Quantile(bare_samples, 0.5),
                Quantile(our_samples, 0.999) - Quantile(bare_samples, 0.999));
  }
}

// A row that cannot be measured here is named and left out.
void Attempt(const char* what, const std::function<void()>& rows) {
  try {
    rows();
  } catch (const std::exception& error) {
    std::printf("%s: skipped: %s\n", what, error.what());
  }
}

int Main(const std::string& json) {
  const Context context = MakeContext("");
  const bool has_gpu = FindPlace(context.get(), "cuda").has_value();
  const double clock = ClockUs();
  Table table;
  std::printf("two readings of the clock: %.3f us, taken off the short rows\n", clock);
  Table::PrintHeader();
  // Without a GPU its compiler can still be timed.
  const std::string cuda = has_gpu ? "cuda" : "sm_90a";
  for (const std::string& where : {std::string("cpu"), cuda}) {
    Attempt((where + " cold").c_str(), [&] { ColdRows(table, where); });
    Attempt((where + " warm").c_str(), [&] { WarmRows(table, where); });
    Attempt((where + " memory").c_str(),
            [&] { MemoryHitRow(table, PlaceNamed(context.get(), where), clock); });
  }
  Attempt("cpu launch", [&] { CpuLaunchRow(table, clock); });
  Attempt("cuda launch", [&] { CudaLaunchRows(table, clock); });
  if (!json.empty() && !table.WriteJson(json)) {
    std::fprintf(stderr, "cannot write %s\n", json.c_str());
    return 1;
  }
  return 0;
}

int Run(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 2 && args[0] == "--cold-child") return ColdChild(args[1]);
  if (args.size() == 3 && args[0] == "--warm-child") return WarmChild(args[1], args[2]);
  if (args.size() == 2 && args[0] == "--json") return Main(args[1]);
  if (args.empty()) return Main("");
  std::fprintf(stderr, "usage: perf_service_bench [--json FILE]\n");
  return 2;
}

}  // namespace
}  // namespace perf

int main(int argc, char** argv) {
  // Neither the driver nor NVRTC may answer from a cache of its own.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  try {
    return perf::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
