// Argument structs of any size with any numbers, NULL and short lists in them: every function of
// the C interface refuses with a message, or does what it is told. The reference interpreter runs
// what runs.
#define TL_EXPERIMENTAL
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tl/tl.h"

namespace {

// One of each kind of argument.
constexpr char kProgram[] = R"(tl 1.0
kernel all(M: dim, N: dim; t: dtype = f32) {
  in X: tensor<t>[M, N] strides[?, 1], s: f32, k: i32
  out Y: tensor<t>[M, N]
  workspace W: tensor<t>[M, N]
  tune b in {8, 16}
  launch m in M, n in ceildiv(N, b) {
    x = alloc_fragment<t>[b]
    copy X[m, n*b:] -> x
    parallel i in b { x[i] = x[i]*s + f32(k) }
    copy x -> W[m, n*b:]
  }
  launch m in M, n in ceildiv(N, b) {
    x = alloc_fragment<t>[b]
    copy W[m, n*b:] -> x
    copy x -> Y[m, n*b:]
  }
}
)";
// What tensors lie in: small shapes stay inside it, whatever their strides.
constexpr int kMaxExtent = 4, kMaxStride = 16;
constexpr size_t kMemory = 4096;

bool IsSmall(int64_t number, int64_t limit) { return -limit <= number && number <= limit; }

[[noreturn]] void Finding(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  __builtin_trap();
}

// An error is documented and says something.
bool Ok(tl_status status, const char* call) {
  if (status == TL_OK) return true;
  tl_error_info info = TL_INIT(tl_error_info);
  if (tl_last_error(&info) != TL_OK || info.status != status || !info.message || !*info.message)
    Finding(std::string(call) + " fails without a word");
  if (status == TL_INTERNAL) Finding(std::string(call) + ": " + info.message);
  return false;
}

class Case {
 public:
  Case(const uint8_t* data, size_t size) : data_(data, size) {}
  void Run();

 private:
  // The struct in memory that ends where its size says.
  template <typename T>
  T* Sized(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    uint32_t size = sizeof(T);
    if (data_.ConsumeBool()) {
      size = data_.ConsumeBool() ? data_.ConsumeIntegralInRange<uint32_t>(0, sizeof(T) + 16)
                                 : data_.ConsumeIntegral<uint32_t>();
    }
    if (Rarely()) value.next = &kProgram;
    value.struct_size = size;
    // Beyond the largest that a library may believe only the size itself is there.
    const size_t bytes = size < 4 || size > 4096 ? 4 : size;
    auto exact = std::make_unique<char[]>(bytes);
    std::memcpy(exact.get(), &value, std::min(bytes, sizeof(T)));
    for (size_t i = sizeof(T); i < bytes; ++i) exact[i] = Rarely() ? 1 : 0;
    held_.push_back(std::move(exact));
    return reinterpret_cast<T*>(held_.back().get());
  }
  bool Rarely() { return data_.ConsumeIntegralInRange(0, 15) == 15; }
  // Small, or so large that nobody can mean it: what lies between is a check that takes its time.
  int64_t Number() {
    constexpr int64_t kOdd[] = {INT64_MIN, INT64_MAX, int64_t{1} << 62, int64_t{1} << 50,
                                -(int64_t{1} << 31)};
    return Rarely() ? data_.PickValueInArray(kOdd) : data_.ConsumeIntegralInRange<int64_t>(-1, 8);
  }
  double Real() {
    constexpr double kOdd[] = {0, -1, 1e-9, INFINITY, -INFINITY, NAN, 1e300};
    return data_.PickValueInArray(kOdd);
  }
  const char* String() {
    if (Rarely()) return nullptr;
    static constexpr const char* kWords[] = {"t",    "M", "b",         "bf16",    "8",
                                             "16,8", "",  "reference", "softmax", "nothing"};
    if (data_.ConsumeBool()) return data_.PickValueInArray(kWords);
    strings_.push_back(std::make_unique<std::string>(data_.ConsumeRandomLengthString(40)));
    return strings_.back()->c_str();
  }
  // As many as `count` says, or NULL.
  template <typename T, typename Make>
  T* List(size_t count, Make make) {
    if (Rarely()) return nullptr;
    auto list = std::make_unique<char[]>(count * sizeof(T) + 1);
    T* const out = reinterpret_cast<T*>(list.get());
    for (size_t i = 0; i < count; ++i) out[i] = make();
    held_.push_back(std::move(list));
    return out;
  }
  uint32_t Count(uint32_t right) {
    return Rarely() ? data_.ConsumeIntegralInRange<uint32_t>(0, 5) : right;
  }
  int32_t Device() { return Rarely() ? data_.ConsumeIntegral<int32_t>() : reference_; }

  tl_compile_options CompileOptions() {
    tl_compile_options o = TL_INIT(tl_compile_options);
    o.source = Rarely() ? String() : kProgram;
    o.source_size =
        o.source == kProgram && data_.ConsumeBool() ? sizeof(kProgram) - 1 : TL_ZERO_TERMINATED;
    if (Rarely()) o.family = String();
    o.num_params = data_.ConsumeIntegralInRange<size_t>(0, 3);
    o.params = List<tl_param>(o.num_params, [&] { return tl_param{String(), String()}; });
    o.device = Device();
    if (Rarely()) o.target = String();
    if (Rarely()) o.shared_budget = Number();
    if (Rarely()) o.reserved2 = 1;
    return o;
  }
  template <typename T>
  void Numbers(T& o) {
    o.num_dims = Count(2), o.num_strides = Count(1), o.num_scalars = Count(2);
    o.dims = List<int64_t>(o.num_dims, [&] { return Number(); });
    o.strides = List<int64_t>(o.num_strides, [&] { return Number(); });
    o.scalars = List<tl_scalar>(o.num_scalars, [&] { return tl_scalar{Number()}; });
  }

  void Compile();
  void Launch();
  void LaunchDlpack();
  void CheckAndBench();
  void Tune();
  void Warm();
  void Walk(const tl_warm_options& of);
  void Create();
  void Ask();

  FuzzedDataProvider data_;
  tl_context* context_ = nullptr;
  tl_kernel* kernel_ = nullptr;
  int32_t reference_ = 0;
  std::vector<std::unique_ptr<char[]>> held_;
  std::vector<std::unique_ptr<std::string>> strings_;
};

// Contexts remember kernels: a new one every so often.
struct Fixture {
  tl_context* context = nullptr;
  tl_kernel* kernel = nullptr;
  int32_t reference = 0;
  int uses = 0;

  void Renew() {
    if (context && ++uses % 64 != 0) return;
    tl_kernel_release(kernel);
    tl_context_release(context);
    tl_context_options options = TL_INIT(tl_context_options);
    options.cache_mode = TL_CACHE_MEMORY;
    if (!Ok(tl_context_create(&options, &context), "tl_context_create")) Finding("no context");
    int32_t count = 0;
    if (!Ok(tl_device_count(context, &count), "tl_device_count")) Finding("no devices");
    reference = count - 1;
    tl_compile_options compile = TL_INIT(tl_compile_options);
    compile.source = kProgram, compile.source_size = TL_ZERO_TERMINATED, compile.device = reference;
    if (!Ok(tl_compile(context, &compile, &kernel), "tl_compile"))
      Finding("the program does not compile");
  }
};

void Case::Run() {
  static Fixture& fixture = *new Fixture;
  fixture.Renew();
  context_ = fixture.context, kernel_ = fixture.kernel, reference_ = fixture.reference;
  using Step = void (Case::*)();
  constexpr Step kSteps[] = {&Case::Compile,       &Case::Launch, &Case::LaunchDlpack,
                             &Case::CheckAndBench, &Case::Tune,   &Case::Warm,
                             &Case::Create,        &Case::Ask};
  (this->*data_.PickValueInArray(kSteps))();
}

void Case::Compile() {
  tl_kernel* out = nullptr;
  if (Ok(tl_compile(context_, Sized(CompileOptions()), &out), "tl_compile") != (out != nullptr))
    Finding("tl_compile: status and kernel disagree");
  tl_kernel_release(out);
  const char* text = nullptr;
  size_t size = 0;
  if (Ok(tl_query(context_, Sized(CompileOptions()), &text, &size), "tl_query") && text[size] != 0)
    Finding("tl_query: no NUL behind the text");
}

void Case::Launch() {
  tl_launch_args a = TL_INIT(tl_launch_args);
  Numbers(a);
  a.device = Device();
  a.stream = Rarely() ? &a : nullptr;
  // Tensors are as large as the caller says, so what is large has none.
  const bool small = a.dims && a.num_dims == 2 && IsSmall(a.dims[0], kMaxExtent) &&
                     IsSmall(a.dims[1], kMaxExtent) &&
                     (!a.strides || a.num_strides == 0 || IsSmall(a.strides[0], kMaxStride));
  std::vector<double> x(kMemory), y(kMemory), w(kMemory + 32);
  void* const memories[] = {x.data() + kMemory / 2, y.data()};
  a.num_tensors = Count(2);
  size_t next = 0;
  a.tensors = List<void*>(a.num_tensors, [&]() -> void* {
    return small && !Rarely() ? memories[next++ % 2] : nullptr;
  });
  if (small) {
    void* memory = w.data();
    size_t space = w.size() * sizeof(double);
    a.workspace = Rarely() ? w.data() + 1 : std::align(256, kMemory, memory, space);
    a.workspace_size = Rarely() ? 8 : kMemory;
  }
  tl_launch_args* const given = Sized(a);
  Ok(tl_launch(kernel_, given), "tl_launch");
  size_t bytes = 1;
  if (!Ok(tl_workspace_size(kernel_, given, &bytes), "tl_workspace_size") && bytes != 0)
    Finding("tl_workspace_size: bytes of a failure");
}

// struct DLTensor of dlpack.h.
struct DlTensor {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

void Case::LaunchDlpack() {
  std::vector<float> memory(kMemory);
  std::vector<double> workspace(kMemory + 32);
  std::vector<DlTensor> tensors(2);
  for (DlTensor& t : tensors) {
    t.data = Rarely() ? nullptr : memory.data() + kMemory / 2;
    t.device_type = Rarely() ? data_.ConsumeIntegral<int32_t>() : 1;
    t.device_id = Rarely() ? data_.ConsumeIntegral<int32_t>() : 0;
    t.ndim = Rarely() ? data_.ConsumeIntegralInRange<int32_t>(-1, 3) : 2;
    t.code = Rarely() ? data_.ConsumeIntegral<uint8_t>() : 2;
    t.bits = Rarely() ? data_.ConsumeIntegral<uint8_t>() : 32;
    t.lanes = Rarely() ? data_.ConsumeIntegral<uint16_t>() : 1;
    const size_t rank = static_cast<size_t>(std::max(t.ndim, 0));
    t.shape =
        List<int64_t>(rank, [&] { return data_.ConsumeIntegralInRange<int64_t>(-1, kMaxExtent); });
    t.strides = List<int64_t>(
        rank, [&] { return data_.ConsumeIntegralInRange<int64_t>(-kMaxStride, kMaxStride); });
    t.byte_offset = Rarely() ? data_.ConsumeIntegralInRange<uint64_t>(0, 64) : 0;
  }
  tl_launch_args a = TL_INIT(tl_launch_args);
  a.device = Device();
  a.num_scalars = Count(2);
  a.scalars = List<tl_scalar>(a.num_scalars, [&] { return tl_scalar{Number()}; });
  void* start = workspace.data();
  size_t space = workspace.size() * sizeof(double);
  if (!Rarely()) a.workspace = std::align(256, kMemory, start, space), a.workspace_size = kMemory;
  const uint32_t count = Count(2);
  const void** list = List<const void*>(count, [&, next = 0]() mutable -> const void* {
    return Rarely() ? nullptr : &tensors[next++ % 2];
  });
  Ok(tl_launch_dlpack(kernel_, list, count, Sized(a)), "tl_launch_dlpack");
}

void Case::CheckAndBench() {
  tl_check_options check = TL_INIT(tl_check_options);
  Numbers(check);
  check.device = Device();
  check.reference_work = 1000;
  tl_check_result checked = TL_INIT(tl_check_result);
  Ok(tl_check(kernel_, Sized(check), data_.ConsumeBool() ? &checked : Sized(checked)), "tl_check");
  tl_bench_options bench = TL_INIT(tl_bench_options);
  Numbers(bench);
  bench.device = Device();
  bench.rounds = 1;
  bench.min_round_ns = data_.ConsumeBool() ? 1 : std::min(Real(), 1.0);
  bench.rotate_bytes = Rarely() ? data_.ConsumeIntegral<uint64_t>() : 1;
  tl_bench_result timed = TL_INIT(tl_bench_result);
  Ok(tl_bench(kernel_, Sized(bench), Sized(timed)), "tl_bench");
}

void Case::Tune() {
  tl_tune_options o = TL_INIT(tl_tune_options);
  Numbers(o);
  o.in_process = Rarely() ? data_.ConsumeIntegral<uint32_t>() : 1;
  o.compile = Rarely() ? nullptr : Sized(CompileOptions());
  o.max_candidates = Rarely() ? data_.ConsumeIntegral<uint32_t>() : 1;
  o.max_seconds = data_.ConsumeBool() ? 1e-9 : Real();
  o.candidate_seconds = Real();
  o.jobs = Rarely() ? data_.ConsumeIntegral<int32_t>() : 1;
  o.worker = Rarely() ? String() : nullptr;
  // What would run is cancelled before it does.
  static constexpr int32_t kCancel = 1;
  o.cancel = &kCancel;
  tl_tune_options* given = Sized(o);
  if (given->struct_size < sizeof(o)) return;  // without `cancel`
  tl_kernel* out = nullptr;
  tl_tune_result result = TL_INIT(tl_tune_result);
  if (Ok(tl_tune(context_, given, &out, Sized(result)), "tl_tune") != (out != nullptr))
    Finding("tl_tune: status and kernel disagree");
  tl_kernel_release(out);
}

void Case::Warm() {
  tl_warm_options o = TL_INIT(tl_warm_options);
  const std::string plan = data_.ConsumeBool() ? data_.ConsumeRandomLengthString(200)
                                               : "plan = 1\n[[kernel]]\nfamily = \"vector_add\"\n"
                                                 "dims = { N = [1, 2] }\n";
  o.plan = Rarely() ? nullptr : plan.data();
  o.plan_size = plan.size();
  o.jobs = Rarely() ? data_.ConsumeIntegral<int32_t>() : 1;
  o.directory = Rarely() ? "/nonexistent" : nullptr;
  o.num_targets = data_.ConsumeIntegralInRange<size_t>(0, 2);
  o.targets = List<const char*>(o.num_targets, [&] { return Rarely() ? String() : "reference"; });
  tl_warm_result result = TL_INIT(tl_warm_result);
  Ok(tl_warm(context_, Sized(o), Sized(result)), "tl_warm");
  Walk(o);
}

// Everything that a visitor is shown can be read. Options that are cut short have no user.
int ReadStop(void*, const tl_plan_stop* stop) {
  size_t bytes = std::strlen(stop->program) + stop->compile->source_size;
  for (size_t i = 0; i < stop->num_dims; ++i)
    bytes += std::strlen(stop->dims[i].name) + std::strlen(stop->dims[i].value);
  for (size_t i = 0; i < stop->compile->num_params; ++i)
    bytes += std::strlen(stop->compile->params[i].name);
  return bytes > 1000;
}

void Case::Walk(const tl_warm_options& of) {
  tl_plan_options o = TL_INIT(tl_plan_options);
  o.device = Rarely() ? data_.ConsumeIntegral<int32_t>() : reference_;
  o.plan = of.plan;
  o.plan_size = of.plan_size;
  o.directory = of.directory;
  o.visit = Rarely() ? nullptr : ReadStop;
  Ok(tl_plan_each(context_, Sized(o)), "tl_plan_each");
}

void Case::Create() {
  tl_context_options o = TL_INIT(tl_context_options);
  o.cache_mode = Rarely() ? data_.ConsumeIntegralInRange<int32_t>(3, 100) : TL_CACHE_MEMORY;
  o.cpu_threads = Rarely() ? data_.ConsumeIntegral<int32_t>() : 1;
  o.cache_max_bytes = Rarely() ? data_.ConsumeIntegral<uint64_t>() : 0;
  o.reserved = Rarely(), o.reserved2 = Rarely();
  o.num_packs = data_.ConsumeIntegralInRange<size_t>(0, 2);
  o.packs =
      List<const char*>(o.num_packs, [&] { return Rarely() ? nullptr : "/nonexistent/pack"; });
  tl_context_options* given = Sized(o);
  if (given->struct_size >= 16 && given->struct_size < 32) return;  // a cache on disk
  tl_context* out = nullptr;
  if (Ok(tl_context_create(given, &out), "tl_context_create") != (out != nullptr))
    Finding("tl_context_create: status and context disagree");
  tl_context_release(out);
}

void Case::Ask() {
  const char* text = nullptr;
  size_t size = 0;
  const int32_t what = data_.ConsumeIntegralInRange<int32_t>(-2, 12);
  if (what != TL_TEXT_ASSEMBLY && what != TL_TEXT_SASS)
    Ok(tl_kernel_text(kernel_, what, &text, &size), "tl_kernel_text");
  const uint32_t index = data_.ConsumeBool() ? data_.ConsumeIntegral<uint32_t>() : 1;
  Ok(tl_kernel_tensor(kernel_, index, Sized(TL_INIT(tl_tensor_info))), "tl_kernel_tensor");
  Ok(tl_kernel_signature(kernel_, Sized(TL_INIT(tl_signature))), "tl_kernel_signature");
  Ok(tl_device_get(context_, Device(), Sized(TL_INIT(tl_device_info))), "tl_device_get");
  Ok(tl_cache_get_stats(context_, Sized(TL_INIT(tl_cache_stats))), "tl_cache_get_stats");
  tl_dtype dtype = 0;
  Ok(tl_kernel_scalar_dtype(kernel_, index, &dtype), "tl_kernel_scalar_dtype");
  (void)tl_kernel_dim_name(kernel_, index), (void)tl_kernel_stride_name(kernel_, index);
  (void)tl_kernel_scalar_name(kernel_, index), (void)tl_family_name(index);
  (void)tl_status_name(data_.ConsumeIntegral<int32_t>()),
      (void)tl_dtype_name(data_.ConsumeIntegral<int32_t>());
  Ok(tl_prepare(kernel_, Device()), "tl_prepare");
  Ok(tl_layout_svg(String(), &text, &size), "tl_layout_svg");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  setenv("TL_HIDE_CUDA", "1", 1);  // no compiler but the reference's
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Case(data, size).Run();
  return 0;
}
