// tl_check and tl_bench.
#include <thread>

#include "abi/error.h"
#include "abi/launch_args.h"
#include "abi/structs.h"
#include "service/bench.h"
#include "service/check.h"

using tl::abi::Call;
using tl::abi::DeviceFor;
using tl::abi::ReadStruct;
using tl::abi::TrialArgumentsOf;
using tl::abi::WriteStruct;

namespace {

tl_access Access(tl::BufferRole role) {
  return role == tl::BufferRole::kIn    ? TL_ACCESS_IN
         : role == tl::BufferRole::kOut ? TL_ACCESS_OUT
                                        : TL_ACCESS_INOUT;
}

// The caller's callback over views of our vectors.
tl::Oracle Translate(tl_oracle oracle, void* user) {
  return [oracle, user](std::vector<tl::OracleTensor>& tensors,
                        const tl::reference::Arguments& arguments) {
    std::vector<tl_oracle_tensor> views;
    for (tl::OracleTensor& t : tensors) {
      const bool output = t.role != tl::BufferRole::kIn;
      views.push_back({.name = t.name.c_str(),
                       .access = Access(t.role),
                       .rank = static_cast<int32_t>(t.shape.size()),
                       .shape = t.shape.data(),
                       .input = t.role == tl::BufferRole::kOut ? nullptr : t.input.data(),
                       .expected = output ? t.expected.data() : nullptr,
                       .bound = output ? t.bound.data() : nullptr});
    }
    return oracle(user, views.data(), static_cast<uint32_t>(views.size()), arguments.dims.data(),
                  reinterpret_cast<const tl_scalar*>(arguments.scalars.data())) == 0;
  };
}

tl_check_result Translate(const tl::CheckResult& r, const tl::Module& m) {
  tl_check_result out{};
  out.worst_ratio = r.worst_ratio;
  out.worst_error = r.worst_error;
  out.worst_bound = r.worst_bound;
  out.worst_expected = r.worst_expected;
  out.worst_actual = r.worst_actual;
  out.compared = r.compared;
  out.mismatches = r.mismatches;
  if (r.worst_operand >= 0)
    out.worst_tensor = m.buffer(m.operands[static_cast<size_t>(r.worst_operand)]).name.c_str();
  out.worst_index = r.worst_index;
  return out;
}

}  // namespace

tl_status tl_check(tl_kernel* kernel, const tl_check_options* options, tl_check_result* result) {
  return Call([&]() -> tl::Status {
    if (!kernel) return absl::InvalidArgumentError("kernel is NULL");
    TL_ASSIGN_OR_RETURN(tl_check_options o, ReadStruct(options, "tl_check_options"));
    TL_RETURN_IF_ERROR(kernel->context->CheckProcess());
    const tl::Module& m = kernel->impl->module();
    TL_ASSIGN_OR_RETURN(const tl::Device* device, DeviceFor(*kernel, o.device));
    tl::CheckOptions check;
    TL_ASSIGN_OR_RETURN(check.arguments, TrialArgumentsOf(o, m));
    if (o.oracle) check.oracle = Translate(o.oracle, o.oracle_user);
    check.reference_work = static_cast<int64_t>(std::min<uint64_t>(o.reference_work, INT64_MAX));
    check.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (result) TL_RETURN_IF_ERROR(WriteStruct(result, tl_check_result{}, "tl_check_result"));
    tl::CheckResult found;
    tl::Status verdict = tl::Check(*kernel->impl, *device, check, &found);
    if (result) TL_RETURN_IF_ERROR(WriteStruct(result, Translate(found, m), "tl_check_result"));
    return verdict;
  });
}

tl_status tl_bench(tl_kernel* kernel, const tl_bench_options* options, tl_bench_result* result) {
  return Call([&]() -> tl::Status {
    if (!kernel) return absl::InvalidArgumentError("kernel is NULL");
    TL_ASSIGN_OR_RETURN(tl_bench_options o, ReadStruct(options, "tl_bench_options"));
    TL_RETURN_IF_ERROR(kernel->context->CheckProcess());
    TL_ASSIGN_OR_RETURN(const tl::Device* device, DeviceFor(*kernel, o.device));
    tl::BenchOptions bench;
    TL_ASSIGN_OR_RETURN(bench.arguments, TrialArgumentsOf(o, kernel->impl->module()));
    if (o.rounds > 1000)
      return absl::InvalidArgumentError(absl::StrCat("rounds is ", o.rounds, "; at most 1000"));
    if (o.rounds > 0) bench.rounds = static_cast<int>(o.rounds);
    if (o.min_round_ns > 0) bench.min_round_ns = o.min_round_ns;
    bench.rotate_bytes = static_cast<int64_t>(std::min<uint64_t>(o.rotate_bytes, INT64_MAX));
    TL_RETURN_IF_ERROR(WriteStruct(result, tl_bench_result{}, "tl_bench_result"));
    TL_ASSIGN_OR_RETURN(tl::BenchResult r, tl::Bench(*kernel->impl, *device, bench));
    tl_bench_result out{};
    out.rounds = static_cast<uint32_t>(r.rounds);
    out.median_ns = r.median_ns;
    out.min_ns = r.min_ns;
    out.max_ns = r.max_ns;
    out.bytes = r.bytes;
    out.launches_per_round = static_cast<uint64_t>(r.launches_per_round);
    out.input_sets = static_cast<uint64_t>(r.input_sets);
    return WriteStruct(result, out, "tl_bench_result");
  });
}
