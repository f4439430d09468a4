// Structs of other sizes than ours, pointers that are NULL, numbers that are none.
#include <cstddef>
#include <cstring>
#include <string>

#define TL_EXPERIMENTAL
#include "tests/abi/abi_testing.h"

namespace {

using border::Sized;

// A caller's struct of any size, in memory that ends where the struct does.
template <typename T>
class Raw {
 public:
  explicit Raw(const T& value, uint32_t size) : bytes_(size > sizeof(T) ? size : sizeof(T)) {
    std::memcpy(bytes_.data(), &value, sizeof(T));
    std::memcpy(bytes_.data(), &size, sizeof(size));
    bytes_.resize(std::max<size_t>(size, 4));
    bytes_.shrink_to_fit();
  }
  T* get() { return reinterpret_cast<T*>(bytes_.data()); }
  unsigned char& at(size_t i) { return bytes_[i]; }

 private:
  std::vector<unsigned char> bytes_;
};

tl_context* MemoryContext() { return families::SharedContext(); }

TEST(Structs, ReadWithTheCallersSize) {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_mode = TL_CACHE_MEMORY;
  tl_context* context = nullptr;
  for (uint32_t size : {0u, 1u, 8u, 15u, 4097u, 0xffffffffu, 0xcdcdcdcdu}) {
    options.struct_size = size;
    EXPECT_FAILS(tl_context_create(&options, &context), TL_INVALID_ARGUMENT,
                 "tl_context_options.struct_size is " + std::to_string(size));
    EXPECT_EQ(context, nullptr);
  }
  // An older caller ends anywhere behind `next`; what it lacks is 0.
  for (uint32_t size : {16u, 20u, 24u, 28u, 32u, 48u}) {
    Raw<tl_context_options> raw(options, size);
    EXPECT_EQ(tl_context_create(raw.get(), &context), TL_OK) << size << families::LastError();
    tl_context_release(context);
  }
  // A newer one may say nothing that is not understood here.
  for (uint32_t size : {uint32_t{sizeof(options) + 8}, 4096u}) {
    Raw<tl_context_options> raw(options, size);
    EXPECT_EQ(tl_context_create(raw.get(), &context), TL_OK) << families::LastError();
    tl_context_release(context);
    raw.at(size - 1) = 1;
    EXPECT_FAILS(tl_context_create(raw.get(), &context), TL_INVALID_ARGUMENT,
                 "sets byte " + std::to_string(size - 1));
  }
  options.struct_size = sizeof(options);
  options.next = &options;
  EXPECT_FAILS(tl_context_create(&options, &context), TL_INVALID_ARGUMENT,
               "tl_context_options.next must be NULL");
}

// Sizes that end within a pointer: what is there of it is not followed.
TEST(Structs, HalfAPointerIsNone) {
  const std::string program = border::AddProgram(1);
  const tl_compile_options options = border::SourceOptions(program, "reference");
  tl_kernel* kernel = nullptr;
  for (uint32_t size = 16; size < 24; ++size) {
    Raw<tl_compile_options> raw(options, size);
    EXPECT_FAILS(tl_compile(MemoryContext(), raw.get(), &kernel), TL_INVALID_ARGUMENT, "source");
  }
}

TEST(Structs, ReservedMembersAreZero) {
  tl_context* context = MemoryContext();
  tl_context* made = nullptr;
  tl_kernel* kernel = nullptr;
  tl_context_options options = Sized<tl_context_options>();
  options.reserved = 1;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT,
               "tl_context_options.reserved is 1; it must be 0");
  options = Sized<tl_context_options>();
  options.reserved2 = 7;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT,
               "tl_context_options.reserved2 is 7");
  const std::string program = border::AddProgram(1);
  tl_compile_options compile = border::SourceOptions(program, "reference");
  compile.reserved = 2;
  EXPECT_FAILS(tl_compile(context, &compile, &kernel), TL_INVALID_ARGUMENT,
               "tl_compile_options.reserved is 2");
  compile = border::SourceOptions(program, "reference");
  compile.reserved2 = 3;
  EXPECT_FAILS(tl_compile(context, &compile, &kernel), TL_INVALID_ARGUMENT,
               "tl_compile_options.reserved2 is 3");
  const border::Kernel owned = border::CompileFor(context, program, "reference");
  tl_check_options check = Sized<tl_check_options>();
  check.reserved = 4;
  EXPECT_FAILS(tl_check(owned.get(), &check, nullptr), TL_INVALID_ARGUMENT,
               "tl_check_options.reserved is 4");
}

TEST(Structs, WrittenWithTheCallersSize) {
  tl_device_info info{};
  for (uint32_t size : {0u, 15u, 4097u, 0xffffffffu}) {
    info.struct_size = size;
    EXPECT_FAILS(tl_device_get(MemoryContext(), 0, &info), TL_INVALID_ARGUMENT, "struct_size");
  }
  for (uint32_t size : {16u, 24u, 40u, uint32_t{sizeof(info)}}) {
    Raw<tl_device_info> raw(tl_device_info{}, size);
    ASSERT_EQ(tl_device_get(MemoryContext(), 0, raw.get()), TL_OK) << families::LastError();
    EXPECT_EQ(raw.get()->struct_size, size);
    if (size >= 24) {
      EXPECT_NE(raw.get()->name, nullptr);
    }
  }
  // What a newer caller has behind our struct stays as it is.
  Raw<tl_device_info> large(tl_device_info{}, sizeof(info) + 16);
  large.at(sizeof(info) + 3) = 77;
  ASSERT_EQ(tl_device_get(MemoryContext(), 0, large.get()), TL_OK) << families::LastError();
  EXPECT_EQ(large.at(sizeof(info) + 3), 77);
  EXPECT_EQ(large.get()->struct_size, sizeof(info) + 16);
  info = Sized<tl_device_info>();
  info.next = &info;
  EXPECT_FAILS(tl_device_get(MemoryContext(), 0, &info), TL_INVALID_ARGUMENT, "next must be NULL");
}

TEST(Structs, TheErrorItselfWithTheCallersSize) {
  EXPECT_FAILS(tl_context_retain(nullptr), TL_INVALID_ARGUMENT, "context is NULL");
  EXPECT_EQ(tl_last_error(nullptr), TL_INVALID_ARGUMENT);
  tl_error_info info{};
  EXPECT_EQ(tl_last_error(&info), TL_INVALID_ARGUMENT);  // struct_size 0
  Raw<tl_error_info> small(tl_error_info{}, 28);
  EXPECT_EQ(tl_last_error(small.get()), TL_OK);
  EXPECT_EQ(small.get()->status, TL_INVALID_ARGUMENT);
  EXPECT_EQ(small.get()->domain, TL_DOMAIN_TL);
  // Asking for the error did not replace it.
  EXPECT_EQ(border::LastMessage(), "context is NULL");
}

TEST(Structs, NullEverywhere) {
  tl_context* context = MemoryContext();
  const border::Kernel owned = border::CompileFor(context, border::AddProgram(1), "reference");
  tl_kernel* kernel = owned.get();
  ASSERT_NE(kernel, nullptr);
  tl_context* no_context = nullptr;
  tl_kernel* out = nullptr;
  const tl_compile_options compile = Sized<tl_compile_options>();
  const tl_launch_args launch = Sized<tl_launch_args>();
  const tl_check_options check = Sized<tl_check_options>();
  const tl_bench_options bench = Sized<tl_bench_options>();
  tl_check_result checked = Sized<tl_check_result>();
  tl_bench_result timed = Sized<tl_bench_result>();
  tl_signature signature = Sized<tl_signature>();
  tl_tensor_info tensor = Sized<tl_tensor_info>();
  tl_device_info device = Sized<tl_device_info>();
  tl_cache_stats stats = Sized<tl_cache_stats>();
  tl_cache_report report = Sized<tl_cache_report>();
  const auto ignore = [](void*, const tl_cache_entry*) { return 0; };
  int32_t count = 0;
  tl_dtype dtype = 0;
  size_t size = 0;
  const char* data = nullptr;
  const tl_status results[] = {tl_context_create(nullptr, nullptr),
                               tl_context_retain(nullptr),
                               tl_device_count(nullptr, &count),
                               tl_device_count(context, nullptr),
                               tl_device_get(nullptr, 0, &device),
                               tl_device_get(context, 0, nullptr),
                               tl_compile(nullptr, &compile, &out),
                               tl_compile(context, nullptr, &out),
                               tl_compile(context, &compile, nullptr),
                               tl_kernel_retain(nullptr),
                               tl_kernel_signature(nullptr, &signature),
                               tl_kernel_signature(kernel, nullptr),
                               tl_kernel_tensor(nullptr, 0, &tensor),
                               tl_kernel_tensor(kernel, 0, nullptr),
                               tl_kernel_scalar_dtype(nullptr, 0, &dtype),
                               tl_kernel_scalar_dtype(kernel, 0, nullptr),
                               tl_kernel_text(nullptr, TL_TEXT_IR, &data, &size),
                               tl_kernel_text(kernel, TL_TEXT_IR, nullptr, &size),
                               tl_kernel_text(kernel, TL_TEXT_IR, &data, nullptr),
                               tl_workspace_size(nullptr, &launch, &size),
                               tl_workspace_size(kernel, nullptr, &size),
                               tl_workspace_size(kernel, &launch, nullptr),
                               tl_launch(nullptr, &launch),
                               tl_launch(kernel, nullptr),
                               tl_prepare(nullptr, 0),
                               tl_launch_dlpack(nullptr, nullptr, 0, &launch),
                               tl_launch_dlpack(kernel, nullptr, 2, nullptr),
                               tl_check(nullptr, &check, &checked),
                               tl_check(kernel, nullptr, &checked),
                               tl_bench(nullptr, &bench, &timed),
                               tl_bench(kernel, nullptr, &timed),
                               tl_cache_get_stats(nullptr, &stats),
                               tl_cache_get_stats(context, nullptr),
                               tl_seal(nullptr),
                               tl_cache_list(nullptr, nullptr, ignore, nullptr),
                               tl_cache_list(context, nullptr, nullptr, nullptr),
                               tl_cache_verify(nullptr, nullptr, &report),
                               tl_cache_verify(context, nullptr, nullptr),
                               tl_cache_export(nullptr, "x", nullptr, 0, nullptr),
                               tl_cache_export(context, nullptr, nullptr, 0, nullptr),
                               tl_cache_export(context, "x", nullptr, 1, nullptr),
                               tl_cache_import(nullptr, "x", nullptr),
                               tl_cache_import(context, nullptr, nullptr)};
  for (size_t i = 0; i < std::size(results); ++i) EXPECT_EQ(results[i], TL_INVALID_ARGUMENT) << i;
  tl_context_release(no_context);
  tl_kernel_release(nullptr);
  EXPECT_EQ(tl_kernel_dim_name(nullptr, 0), nullptr);
  EXPECT_EQ(tl_kernel_stride_name(nullptr, 0), nullptr);
  EXPECT_EQ(tl_kernel_scalar_name(nullptr, 0), nullptr);
  EXPECT_EQ(tl_family_source(nullptr), nullptr);
  EXPECT_EQ(tl_family_source("no such family"), nullptr);
  // What is experimental, too.
  const tl_tune_options tune = Sized<tl_tune_options>();
  EXPECT_EQ(tl_tune(nullptr, &tune, &out, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context, nullptr, &out, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context, &tune, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_tune(context, &tune, &out, nullptr), TL_INVALID_ARGUMENT);  // no program
  const tl_plan_options plan = Sized<tl_plan_options>();
  EXPECT_EQ(tl_plan_each(nullptr, &plan), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_plan_each(context, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_plan_each(context, &plan), TL_INVALID_ARGUMENT);  // no plan
  const tl_warm_options warm = Sized<tl_warm_options>();
  EXPECT_EQ(tl_warm(nullptr, &warm, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_warm(context, nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_warm(context, &warm, nullptr), TL_INVALID_ARGUMENT);  // no plan
  EXPECT_EQ(tl_query(nullptr, &compile, &data, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_query(context, nullptr, &data, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_query(context, &compile, nullptr, &size), TL_INVALID_ARGUMENT);
}

TEST(Structs, LayoutPictures) {
  const char* data = "";
  size_t size = 1;
  EXPECT_EQ(tl_layout_svg(nullptr, &data, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(tl_layout_svg("mma_c", nullptr, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_layout_svg("mma_c", &data, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_layout_svg("mma_q", &data, &size), TL_INVALID_ARGUMENT);
  ASSERT_EQ(tl_layout_svg("mma_c", &data, &size), TL_OK);
  EXPECT_EQ(std::string(data).size(), size);
  EXPECT_EQ(std::string(data).rfind("<svg ", 0), 0u);
}

// The values that clients were compiled with.
TEST(Numbers, AreWhatTheyWere) {
  EXPECT_EQ(TL_UNAUTHENTICATED, 16);
  EXPECT_EQ(TL_UNAVAILABLE, 14);
  EXPECT_EQ(TL_DOMAIN_OS, 6);
  EXPECT_EQ(TL_REASON_MISMATCH, 9);
  EXPECT_EQ(TL_F64, 13);
  EXPECT_EQ(TL_E4M3, 8);
  EXPECT_EQ(TL_ACCESS_INOUT, 2);
  EXPECT_EQ(TL_TEXT_THREAD, 8);
  EXPECT_EQ(TL_CACHE_READ_ONLY, 2);
  EXPECT_EQ(tl_abi_version(), static_cast<uint32_t>(TL_ABI_VERSION));
  EXPECT_STREQ(tl_dtype_name(TL_BF16), "bf16");
  EXPECT_EQ(tl_dtype_size(TL_F64), 8u);
  EXPECT_EQ(tl_dtype_name(14), nullptr);
  EXPECT_STREQ(tl_status_name(TL_DATA_LOSS), "DATA_LOSS");
}

TEST(Structs, NumbersOutOfRange) {
  tl_context* context = MemoryContext();
  const border::Kernel kernel = border::CompileFor(context, border::AddProgram(1), "reference");
  tl_device_info device = Sized<tl_device_info>();
  tl_tensor_info tensor = Sized<tl_tensor_info>();
  tl_dtype dtype = 0;
  const char* data = nullptr;
  size_t size = 0;
  for (int32_t number : {-1, 1000, INT32_MAX, INT32_MIN}) {
    EXPECT_FAILS(tl_device_get(context, number, &device), TL_NOT_FOUND, "there is no device");
    EXPECT_EQ(border::LastInfo().reason, TL_REASON_NO_DEVICE);
    EXPECT_FAILS(tl_kernel_text(kernel.get(), number, &data, &size), TL_INVALID_ARGUMENT,
                 "there is no tl_text");
    EXPECT_EQ(tl_dtype_name(number), nullptr);
    EXPECT_EQ(tl_dtype_size(number), 0u);
    EXPECT_STREQ(tl_status_name(number), "UNKNOWN");
  }
  EXPECT_FAILS(tl_kernel_tensor(kernel.get(), 2, &tensor), TL_OUT_OF_RANGE, "tensor 2 of 2");
  EXPECT_FAILS(tl_kernel_scalar_dtype(kernel.get(), 0, &dtype), TL_OUT_OF_RANGE, "scalar 0 of 0");
  EXPECT_EQ(tl_kernel_dim_name(kernel.get(), 1), nullptr);
  EXPECT_EQ(tl_kernel_dim_name(kernel.get(), UINT32_MAX), nullptr);
  EXPECT_EQ(tl_family_name(UINT32_MAX), nullptr);
  EXPECT_FAILS(tl_kernel_text(kernel.get(), TL_TEXT_MAPPED, &data, &size), TL_UNIMPLEMENTED, "");
  tl_context_options options = Sized<tl_context_options>();
  tl_context* made = nullptr;
  options.cache_mode = 3;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT, "cache_mode is 3");
  options.cache_mode = TL_CACHE_MEMORY;
  options.cpu_threads = -1;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT, "cpu_threads is -1");
  options.cpu_threads = 0;
  options.cache_max_bytes = UINT64_MAX;
  EXPECT_FAILS(tl_context_create(&options, &made), TL_INVALID_ARGUMENT, "cache_max_bytes");
}

}  // namespace
