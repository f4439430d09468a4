// TileJIT for C++17: owning handles, tensor views and exceptions over the C interface of tl/tl.h,
// which says what everything means. Header only; link libtilejit as a C program does.
//
//   tilejit::Context context;
//   tilejit::Device device = context.FindDevice("cpu");
//   tilejit::Kernel gemm = context.Compile(tilejit::Family("gemm", {{"t", "f32"}}), device);
//   gemm.Launch(device, {tilejit::View(a, {m, k}), tilejit::View(b, {n, k}), tilejit::View(c, {m,
//   n})});
//
// Conventions
//
//  1. A failed call throws tilejit::Error, which carries everything tl_last_error knows. Exceptions
//     and not a result type, because constructors fail (a context, a view of too many dims),
//     because C++17 has no std::expected, and because a launch in a server fails for reasons that
//     end the request: one handler at its border sees them all. Nothing is thrown that is no Error,
//     except std::bad_alloc.
//  2. Context and Kernel are counted handles: copies share the object, moved-from and default
//     constructed kernels are empty. A kernel keeps its context alive.
//  3. Everything may be called from any thread, as in C; one object may be used by many threads
//  while
//     nobody assigns to it.
//  4. get() of each handle goes back to C. Every struct of tl.h may be used beside this header.
#ifndef TL_TL_HPP_
#define TL_TL_HPP_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tl/tl.h"

namespace tilejit {

// ---- Errors -------------------------------------------------------------------------------------

// A place in the tile program: lines and columns from 1, the end exclusive; line 0: no place.
struct Span {
  int line = 0, column = 0, end_line = 0, end_column = 0;
  explicit operator bool() const { return line > 0; }
};

class Error : public std::exception {
 public:
  Error(tl_status status, std::string message)
      : status_(status), message_(std::move(message)), what_(What()) {}

  // The last failure of this thread, copied: the thread's next one overwrites the original.
  static Error Last() {
    tl_error_info info = TL_INIT(tl_error_info);
    if (tl_last_error(&info) != TL_OK) return Error(TL_UNKNOWN, "no failure was recorded");
    Error error(info.status, info.message);
    error.domain_ = info.domain;
    error.reason_ = info.reason;
    error.native_code_ = info.native_code;
    error.span_ = {info.line, info.column, info.end_line, info.end_column};
    error.log_ = info.log ? info.log : "";
    error.what_ = error.What();
    return error;
  }

  tl_status status() const { return status_; }
  tl_domain domain() const { return domain_; }
  tl_reason reason() const { return reason_; }
  int64_t native_code() const { return native_code_; }
  const Span& span() const { return span_; }
  const std::string& message() const { return message_; }
  const std::string& log() const { return log_; }  // the compiler's; "" if there is none
  // "INVALID_ARGUMENT at 4:7: message"
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string What() const {
    std::string text = tl_status_name(status_);
    if (span_) text += " at " + std::to_string(span_.line) + ":" + std::to_string(span_.column);
    return text + ": " + message_;
  }

  tl_status status_;
  tl_domain domain_ = TL_DOMAIN_TL;
  tl_reason reason_ = TL_REASON_NONE;
  int64_t native_code_ = 0;
  Span span_;
  std::string message_, log_, what_;
};

// For calls of tl.h's own functions.
inline void Check(tl_status status) {
  if (status != TL_OK) throw Error::Last();
}

// ---- Values -------------------------------------------------------------------------------------

// A compile-time value: dim, parameter or tune parameter.
struct Param {
  Param(std::string n, std::string v) : name(std::move(n)), value(std::move(v)) {}
  Param(std::string n, const char* v) : name(std::move(n)), value(v) {}
  template <typename T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Param(std::string n, T v) : name(std::move(n)) {
    if constexpr (std::is_same_v<T, bool>) {
      value = v ? "true" : "false";
    } else {
      value = std::to_string(v);
    }
  }
  std::string name, value;
};
using Params = std::vector<Param>;

// What to compile: a family or a text, with its compile-time values.
struct Program {
  std::string family;  // this
  std::string source;  // or this
  Params params;
  int64_t shared_budget = 0;  // bytes of shared memory per block; 0: the target's limit
};
inline Program Family(std::string name, Params params = {}) {
  return {std::move(name), {}, std::move(params)};
}
inline Program Source(std::string text, Params params = {}) {
  return {{}, std::move(text), std::move(params)};
}

// A runtime scalar: becomes the integer or float that the kernel declares. A float where it
// declares an integer is an error.
class Scalar {
 public:
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Scalar(T value) : is_float_(std::is_floating_point_v<T>) {  // NOLINT: meant to convert
    if constexpr (std::is_floating_point_v<T>) {
      float_ = value;
    } else {
      integer_ = static_cast<int64_t>(value);
    }
  }

  tl_scalar As(tl_dtype dtype) const {
    const bool wants_float = dtype >= TL_E4M3;
    if (is_float_ && !wants_float)
      throw Error(TL_INVALID_ARGUMENT,
                  std::string("a float was given for a scalar of type ") + tl_dtype_name(dtype));
    tl_scalar scalar;
    if (wants_float) {
      scalar.f = is_float_ ? float_ : static_cast<double>(integer_);
    } else {
      scalar.i = integer_;
    }
    return scalar;
  }

 private:
  bool is_float_;
  int64_t integer_ = 0;
  double float_ = 0;
};

// The dtype of a C++ type. 16- and 8-bit floats have none in C++17: name theirs.
template <typename T>
constexpr tl_dtype DtypeOf() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) return TL_BOOL;
  if constexpr (std::is_same_v<U, int8_t>) return TL_I8;
  if constexpr (std::is_same_v<U, uint8_t>) return TL_U8;
  if constexpr (std::is_same_v<U, int16_t>) return TL_I16;
  if constexpr (std::is_same_v<U, uint16_t>) return TL_U16;
  if constexpr (std::is_same_v<U, int32_t>) return TL_I32;
  if constexpr (std::is_same_v<U, uint32_t>) return TL_U32;
  if constexpr (std::is_same_v<U, int64_t>) return TL_I64;
  if constexpr (std::is_same_v<U, float>) return TL_F32;
  if constexpr (std::is_same_v<U, double>) return TL_F64;
  return -1;
}

// A tensor somewhere in the memory of the device it is launched on; owns nothing.
class TensorView {
 public:
  static constexpr int kMaxRank = 8;
  using Extents = std::initializer_list<int64_t>;

  // Without strides: contiguous, row-major. Strides count elements.
  TensorView(void* data, tl_dtype dtype, Extents shape, Extents strides = {})
      : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
    if (rank_ > kMaxRank)
      throw Error(TL_INVALID_ARGUMENT,
                  "a tensor has at most 8 dims, this one " + std::to_string(rank_));
    if (strides.size() != 0 && strides.size() != shape.size())
      throw Error(TL_INVALID_ARGUMENT, "a tensor of " + std::to_string(rank_) + " dims was given " +
                                           std::to_string(strides.size()) + " strides");
    Copy(shape, shape_);
    Copy(strides, strides_);
    if (strides.size() == 0) Contiguous();
  }
  // Kernels may only read this one.
  TensorView(const void* data, tl_dtype dtype, Extents shape, Extents strides = {})
      : TensorView(const_cast<void*>(data), dtype, shape, strides) {
    read_only_ = true;
  }

  void* data() const { return data_; }
  tl_dtype dtype() const { return dtype_; }
  int rank() const { return rank_; }
  bool read_only() const { return read_only_; }
  const int64_t* shape() const { return shape_; }
  const int64_t* strides() const { return strides_; }
  int64_t size() const {
    int64_t n = 1;
    for (int d = 0; d < rank_; ++d) n *= shape_[d];
    return n;
  }

 private:
  static void Copy(Extents from, int64_t* to) {
    for (int64_t extent : from) *to++ = extent;
  }
  void Contiguous() {
    int64_t stride = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      strides_[d] = stride;
      // Wraps where it overflows; the launch refuses such an extent before it looks at strides.
      stride =
          static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(shape_[d]));
    }
  }

  void* data_;
  tl_dtype dtype_;
  int rank_;
  bool read_only_ = false;
  int64_t shape_[kMaxRank] = {}, strides_[kMaxRank] = {};
};

// Of an array of a type that has a dtype.
template <typename T>
TensorView View(T* data, TensorView::Extents shape, TensorView::Extents strides = {}) {
  static_assert(DtypeOf<T>() >= 0, "this type has no dtype: View(data, dtype, shape)");
  using Data = std::conditional_t<std::is_const_v<T>, const void*, void*>;
  return TensorView(static_cast<Data>(data), DtypeOf<T>(), shape, strides);
}
template <typename T>
TensorView View(T* data, tl_dtype dtype, TensorView::Extents shape,
                TensorView::Extents strides = {}) {
  using Data = std::conditional_t<std::is_const_v<T>, const void*, void*>;
  return TensorView(static_cast<Data>(data), dtype, shape, strides);
}
// Of a std::vector or anything else with data() and size() that holds exactly these elements.
template <typename Container,
          typename T = std::remove_pointer_t<decltype(std::declval<Container&>().data())>>
TensorView View(Container& container, TensorView::Extents shape) {
  const TensorView view = View(container.data(), shape);
  if (view.size() != static_cast<int64_t>(container.size()))
    throw Error(TL_INVALID_ARGUMENT, "a shape of " + std::to_string(view.size()) +
                                         " elements was given for " +
                                         std::to_string(container.size()));
  return view;
}

// ---- Devices ------------------------------------------------------------------------------------

struct Device {
  int32_t index = 0;  // what launches name
  std::string name, backend, target;
  int32_t ordinal = 0;  // within its backend, as the driver numbers them
  int32_t units = 0;
  uint64_t memory_bytes = 0;
  int64_t max_shared_bytes = 0;

  bool UsesHostMemory() const { return backend != "cuda" && backend != "hip"; }
};

namespace detail {

// struct DLTensor of dlpack.h, whose layout is fixed, so that the header is not needed; the tests
// compare the two.
struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DlType {
  uint8_t code, bits;
};
inline DlType DlTypeOf(tl_dtype dtype) {
  static constexpr DlType kTypes[] = {{6, 8},  {0, 8},  {1, 8},  {0, 16}, {1, 16},
                                      {0, 32}, {1, 32}, {0, 64}, {10, 8}, {12, 8},
                                      {2, 16}, {4, 16}, {2, 32}, {2, 64}};
  if (dtype < TL_BOOL || dtype > TL_F64)
    throw Error(TL_INVALID_ARGUMENT,
                "a tensor has dtype " + std::to_string(dtype) + ", which is none");
  return kTypes[dtype];
}

inline DlTensor ToDlpack(const TensorView& view, const Device& device) {
  const DlType type = DlTypeOf(view.dtype());
  const int32_t device_type = device.backend == "cuda" ? 2 : device.backend == "hip" ? 10 : 1;
  return {view.data(),
          device_type,
          device_type == 1 ? 0 : device.ordinal,
          view.rank(),
          type.code,
          type.bits,
          1,
          const_cast<int64_t*>(view.shape()),
          const_cast<int64_t*>(view.strides()),
          0};
}

template <typename T, tl_status (*kRetain)(T*), void (*kRelease)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* owned) : p_(owned) {}
  Handle(const Handle& other) : p_(other.p_) {
    if (p_) Check(kRetain(p_));
  }
  Handle(Handle&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Handle() { kRelease(p_); }
  T* get() const { return p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace detail

// ---- Kernels ------------------------------------------------------------------------------------

struct TensorInfo {
  std::string name;
  tl_dtype dtype;
  tl_access access;
  int32_t rank;
  int32_t alignment;
  std::string shape;  // "[M, K]"
};

struct Signature {
  std::string name, target;
  std::vector<TensorInfo> tensors;
  std::vector<std::string> dims, strides;
  std::vector<std::pair<std::string, tl_dtype>> scalars;
};

// What a launch takes besides tensors.
struct LaunchOptions {
  void* stream = nullptr;  // CUstream, cudaStream_t or hipStream_t
  std::vector<Scalar> scalars;
  void* workspace = nullptr;
  size_t workspace_size = 0;
};

class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(tl_kernel* owned) : handle_(owned) {}
  tl_kernel* get() const { return handle_.get(); }
  explicit operator bool() const { return get() != nullptr; }

  // Dims and dynamic strides are read off the views; dtypes, shapes and strides are checked. The
  // views are in the order of the signature and lie in the device's memory. On a GPU it returns at
  // once.
  void Launch(const Device& device, const std::vector<TensorView>& tensors,
              const LaunchOptions& options = {}) const {
    std::vector<detail::DlTensor> dl;
    std::vector<const void*> pointers;
    dl.reserve(tensors.size());
    for (const TensorView& view : tensors) {
      if (view.read_only()) CheckReads(dl.size());
      dl.push_back(detail::ToDlpack(view, device));
      pointers.push_back(&dl.back());
    }
    const std::vector<tl_scalar> scalars = ScalarsOf(options);
    tl_launch_args args = TL_INIT(tl_launch_args);
    args.device = device.index;
    args.stream = options.stream;
    args.scalars = scalars.data();
    args.num_scalars = static_cast<uint32_t>(scalars.size());
    args.workspace = options.workspace;
    args.workspace_size = options.workspace_size;
    Check(tl_launch_dlpack(get(), pointers.data(), static_cast<uint32_t>(pointers.size()), &args));
  }
  // Nothing between the caller and tl_launch: for loops in which a microsecond counts.
  void Launch(const tl_launch_args& args) const { Check(tl_launch(get(), &args)); }

  // Loads the kernel on a device now, so that a stream may be captured.
  void Prepare(const Device& device) const { Check(tl_prepare(get(), device.index)); }

  // Bytes of workspace of a launch with these dims and strides, in the order of the signature.
  size_t WorkspaceSize(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides = {},
                       const std::vector<Scalar>& scalars = {}) const {
    const std::vector<tl_scalar> values = ScalarsOf({nullptr, scalars, nullptr, 0});
    tl_launch_args args = TL_INIT(tl_launch_args);
    args.dims = dims.data();
    args.num_dims = static_cast<uint32_t>(dims.size());
    args.strides = strides.data();
    args.num_strides = static_cast<uint32_t>(strides.size());
    args.scalars = values.data();
    args.num_scalars = static_cast<uint32_t>(values.size());
    size_t bytes = 0;
    Check(tl_workspace_size(get(), &args, &bytes));
    return bytes;
  }

  tilejit::Signature Signature() const {
    tl_signature raw = TL_INIT(tl_signature);
    Check(tl_kernel_signature(get(), &raw));
    tilejit::Signature out{raw.name, raw.target, {}, {}, {}, {}};
    for (uint32_t i = 0; i < raw.num_tensors; ++i) out.tensors.push_back(Tensor(i));
    for (uint32_t i = 0; i < raw.num_dims; ++i) out.dims.emplace_back(tl_kernel_dim_name(get(), i));
    for (uint32_t i = 0; i < raw.num_strides; ++i)
      out.strides.emplace_back(tl_kernel_stride_name(get(), i));
    for (uint32_t i = 0; i < raw.num_scalars; ++i)
      out.scalars.emplace_back(tl_kernel_scalar_name(get(), i), ScalarDtype(i));
    return out;
  }

  // Source, report ...; the bytes live as long as the kernel.
  std::string_view Text(tl_text what) const {
    const char* data = nullptr;
    size_t size = 0;
    Check(tl_kernel_text(get(), what, &data, &size));
    return {data, size};
  }

 private:
  TensorInfo Tensor(uint32_t index) const {
    tl_tensor_info info = TL_INIT(tl_tensor_info);
    Check(tl_kernel_tensor(get(), index, &info));
    return {info.name, info.dtype, info.access, info.rank, info.alignment, info.shape};
  }

  tl_dtype ScalarDtype(uint32_t index) const {
    tl_dtype dtype = 0;
    Check(tl_kernel_scalar_dtype(get(), index, &dtype));
    return dtype;
  }

  // A const array must not be where the kernel writes. Whatever is past the end the launch refuses.
  void CheckReads(size_t index) const {
    tl_tensor_info info = TL_INIT(tl_tensor_info);
    if (tl_kernel_tensor(get(), static_cast<uint32_t>(index), &info) != TL_OK) return;
    if (info.access != TL_ACCESS_IN)
      throw Error(TL_INVALID_ARGUMENT, std::string("tensor '") + info.name +
                                           "' is written; the view given is of const data");
  }

  // As many as the kernel has are converted; the launch refuses another count.
  std::vector<tl_scalar> ScalarsOf(const LaunchOptions& options) const {
    std::vector<tl_scalar> out;
    for (const Scalar& scalar : options.scalars) {
      tl_dtype dtype = TL_F64;
      tl_kernel_scalar_dtype(get(), static_cast<uint32_t>(out.size()), &dtype);
      out.push_back(scalar.As(dtype));
    }
    return out;
  }

  detail::Handle<tl_kernel, tl_kernel_retain, tl_kernel_release> handle_;
};

// ---- Contexts -----------------------------------------------------------------------------------

struct ContextOptions {
  std::string cache_dir;  // "": the default of tl_context_options
  tl_cache_mode cache_mode = TL_CACHE_DEFAULT;
  int32_t cpu_threads = 0;  // 0: all cores
  uint64_t cache_max_bytes = 0;
  bool own_builds_only = false;
  std::vector<std::string> packs;
  // As in C, and not a std::function: the last kernel may outlive the Context that it came from.
  tl_log_callback log = nullptr;
  void* log_user = nullptr;
};

#ifdef TL_EXPERIMENTAL
struct WarmOptions {
  std::string directory;             // where files lie that the plan names
  std::vector<std::string> targets;  // not empty: instead of the plan's
  int32_t jobs = 0;
  tl_warm_callback progress = nullptr;
  void* user = nullptr;
};

// What tl_tune_options says of each; the program and the device are Tune's own arguments.
struct TuneOptions {
  std::vector<int64_t> dims, strides;  // of the launches that are timed, in the signature's order
  double max_seconds = 20;
  uint32_t max_candidates = 0;
  int32_t jobs = 0;
  uint64_t seed = 0;
  bool in_process = false;
  std::string worker;
  const int32_t* cancel = nullptr;
  tl_tune_callback progress = nullptr;
  void* user = nullptr;
};

struct Tuned {
  Kernel kernel;              // the winner
  std::string configuration;  // "bk=64 bm=128 bn=128 stages=2"
  std::string report;         // JSON
  double median_ns, default_ns;
  uint64_t space, measured, disqualified;
  bool recorded;  // Compile takes the winner from now on
};
#endif

class Context {
 public:
  explicit Context(const ContextOptions& options = {}) : handle_(Create(options)) {}
  tl_context* get() const { return handle_.get(); }

  std::vector<Device> Devices() const {
    int32_t count = 0;
    Check(tl_device_count(get(), &count));
    std::vector<Device> devices;
    for (int32_t i = 0; i < count; ++i) devices.push_back(DeviceAt(i));
    return devices;
  }
  Device DeviceAt(int32_t index) const {
    tl_device_info info = TL_INIT(tl_device_info);
    Check(tl_device_get(get(), index, &info));
    return {index,        info.name,  info.backend,      info.target,
            info.ordinal, info.units, info.memory_bytes, info.max_shared_bytes};
  }
  // The best device of a backend; of any, with "".
  Device FindDevice(std::string_view backend) const {
    std::string present;
    for (Device& device : Devices()) {
      if (backend.empty() || device.backend == backend) return std::move(device);
      present += (present.empty() ? "" : ", ") + device.backend;
    }
    throw Error(TL_NOT_FOUND,
                "no device of backend '" + std::string(backend) + "'; there are " + present);
  }

  // From memory, from the cache, or compiled.
  Kernel Compile(const Program& program, const Device& device) const {
    return Compile(program, nullptr, device.index);
  }
  // For a target ("sm_90a") or a GPU's name ("H100"), which need not be present.
  Kernel Compile(const Program& program, const std::string& target) const {
    return Compile(program, target.c_str(), 0);
  }

  // From now on nothing compiles here.
  void Seal() const { Check(tl_seal(get())); }

  tl_cache_stats Stats() const {
    tl_cache_stats stats = TL_INIT(tl_cache_stats);
    Check(tl_cache_get_stats(get(), &stats));
    return stats;
  }

#ifdef TL_EXPERIMENTAL
  // Compiles the plan (TOML text, docs/cache.md) into the cache. Throws what failed first;
  // `result`, which may be NULL, is filled in all cases.
  void Warm(std::string_view plan, const WarmOptions& options = {},
            tl_warm_result* result = nullptr) const {
    const std::vector<const char*> targets = Pointers(options.targets);
    tl_warm_options raw = TL_INIT(tl_warm_options);
    raw.plan = plan.data();
    raw.plan_size = plan.size();
    raw.directory = options.directory.empty() ? nullptr : options.directory.c_str();
    raw.targets = targets.data();
    raw.num_targets = targets.size();
    raw.jobs = options.jobs;
    raw.progress = options.progress;
    raw.user = options.user;
    if (result) result->struct_size = sizeof(*result);
    Check(tl_warm(get(), &raw, result));
  }

  // Looks for the tune parameters that are fastest on a device (docs/tuning.md).
  Tuned Tune(const Program& program, const Device& device, const TuneOptions& options) const {
    const std::vector<tl_param> params = ParamsOf(program);
    const tl_compile_options compile = OptionsOf(program, params, nullptr, device.index);
    tl_tune_options raw = TL_INIT(tl_tune_options);
    raw.compile = &compile;
    raw.dims = options.dims.data();
    raw.num_dims = static_cast<uint32_t>(options.dims.size());
    raw.strides = options.strides.empty() ? nullptr : options.strides.data();
    raw.num_strides = static_cast<uint32_t>(options.strides.size());
    raw.max_seconds = options.max_seconds;
    raw.max_candidates = options.max_candidates;
    raw.jobs = options.jobs;
    raw.seed = options.seed;
    raw.in_process = options.in_process;
    raw.worker = options.worker.empty() ? nullptr : options.worker.c_str();
    raw.cancel = options.cancel;
    raw.progress = options.progress;
    raw.user = options.user;
    tl_tune_result result = TL_INIT(tl_tune_result);
    tl_kernel* kernel = nullptr;
    Check(tl_tune(get(), &raw, &kernel, &result));
    return {Kernel(kernel),   result.configuration, result.report,
            result.median_ns, result.default_ns,    result.space,
            result.measured,  result.disqualified,  result.recorded != 0};
  }

  // What Compile would make of it, as JSON, without compiling.
  std::string Query(const Program& program, const std::string& target) const {
    const std::vector<tl_param> params = ParamsOf(program);
    const tl_compile_options options = OptionsOf(program, params, target.c_str(), 0);
    const char* data = nullptr;
    size_t size = 0;
    Check(tl_query(get(), &options, &data, &size));
    return std::string(data, size);
  }
#endif

 private:
  static std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& text : texts) out.push_back(text.c_str());
    return out;
  }

  static tl_context* Create(const ContextOptions& options) {
    const std::vector<const char*> packs = Pointers(options.packs);
    tl_context_options raw = TL_INIT(tl_context_options);
    raw.cache_dir = options.cache_dir.empty() ? nullptr : options.cache_dir.c_str();
    raw.cache_mode = options.cache_mode;
    raw.cpu_threads = options.cpu_threads;
    raw.cache_max_bytes = options.cache_max_bytes;
    raw.own_builds_only = options.own_builds_only;
    raw.packs = packs.data();
    raw.num_packs = packs.size();
    raw.log = options.log;
    raw.log_user = options.log_user;
    tl_context* context = nullptr;
    Check(tl_context_create(&raw, &context));
    return context;
  }

  static std::vector<tl_param> ParamsOf(const Program& program) {
    std::vector<tl_param> out;
    for (const Param& param : program.params)
      out.push_back({param.name.c_str(), param.value.c_str()});
    return out;
  }

  // Points into its arguments.
  static tl_compile_options OptionsOf(const Program& program, const std::vector<tl_param>& params,
                                      const char* target, int32_t device) {
    tl_compile_options options = TL_INIT(tl_compile_options);
    if (!program.family.empty()) options.family = program.family.c_str();
    // An empty program is one with neither, which the library explains.
    if (!program.source.empty()) options.source = program.source.c_str();
    options.source_size = program.source.size();
    options.params = params.data();
    options.num_params = params.size();
    options.target = target;
    options.device = device;
    options.shared_budget = program.shared_budget;
    return options;
  }

  Kernel Compile(const Program& program, const char* target, int32_t device) const {
    const std::vector<tl_param> params = ParamsOf(program);
    const tl_compile_options options = OptionsOf(program, params, target, device);
    tl_kernel* kernel = nullptr;
    Check(tl_compile(get(), &options, &kernel));
    return Kernel(kernel);
  }

  detail::Handle<tl_context, tl_context_retain, tl_context_release> handle_;
};

// 10203 for 1.2.3.
inline uint32_t Version() { return tl_version(); }

}  // namespace tilejit

#endif  // TL_TL_HPP_
