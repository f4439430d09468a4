#include "backends/c_family/emit.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/c_family/kernel_emitter.h"
#include "backends/c_family/prelude.h"
#include "ir/visit.h"

namespace tl {
namespace {

Status CheckLimits(const Launch& launch, int64_t threads, const Target& target) {
  if (threads < 1 || threads > target.max_threads_per_block) {
    return LimitError(
        launch.span, absl::StrCat("the launch needs ", threads, " threads per block; ", target.name,
                                  " has 1 to ", target.max_threads_per_block));
  }
  if (launch.groups > target.max_groups) {
    return LimitError(launch.span,
                      absl::StrCat("the launch has groups=", launch.groups, "; ", target.name,
                                   " has barriers for 1 to ", target.max_groups));
  }
  if (target.max_shared_bytes > 0 && launch.arena_bytes > target.max_shared_bytes) {
    return LimitError(launch.span, absl::StrCat("the launch needs ", launch.arena_bytes,
                                                " bytes of shared memory per block; ", target.name,
                                                " has ", target.max_shared_bytes));
  }
  return absl::OkStatus();
}

// Does the language have every function that the launch calls?
Status CheckFunctions(const Launch& launch, const Target& target, const Dialect& dialect) {
  Status status;
  if (dialect.has_function == nullptr) return status;
  VisitStmts(launch.body, [&](const StmtRef& s) {
    VisitStmtExprs(*s, [&](const ExprRef& root) {
      VisitExpr(root, [&](const ExprRef& e) {
        const Call* call = As<Call>(e);
        if (!call || !status.ok() || dialect.has_function(call->fn, e->type)) return;
        status = UnsupportedError(s->span, absl::StrCat("code for ", target.name, " has no '",
                                                        Name(call->fn), "' of f64; f32 has it"));
      });
    });
  });
  return status;
}

StatusOr<std::string> EmitLaunch(const Module& module, const Launch& launch, const Target& target,
                                 const Dialect& dialect, WarpgroupParts& parts, Entry& entry) {
  const int64_t per_group = launch.threads > 0 ? launch.threads : target.default_threads;
  const int64_t threads = per_group * launch.groups + launch.producers;
  TL_RETURN_IF_ERROR(CheckLimits(launch, threads, target));
  TL_RETURN_IF_ERROR(CheckFunctions(launch, target, dialect));
  entry.threads = static_cast<int>(threads);
  entry.groups = launch.groups;
  entry.producers = launch.producers;
  entry.persistent = launch.resident != kNoId;
  entry.cluster = launch.cluster_size();
  entry.shared_bytes = launch.arena_bytes;
  entry.early = target.early_starts;
  for (const TensorBox& box : launch.boxes) {
    entry.boxes.push_back({box.tensor, box.extents, box.row_bytes});
  }
  return KernelEmitter(module, launch, static_cast<int>(per_group), target, dialect, parts)
      .Emit(entry.symbol);
}

}  // namespace

std::string TemplateArguments(const WarpgroupProduct& p) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  return absl::StrCat(StorageName(p.a), ", ", StorageName(p.b), ", ", StorageName(p.c), ", ", p.n,
                      ", ", p.steps, ", ",
                      p.a_in_registers ? "" : absl::StrCat(flag(p.a_depth_first), ", "),
                      flag(p.b_depth_first), p.sums < 0 ? "" : absl::StrCat(", ", p.first));
}

std::string NameOf(const WarpgroupSums& sums) { return absl::StrCat("c", sums.number); }

StatusOr<Generated> EmitC(const Module& module, const Target& target, const Dialect& dialect) {
  if (module.level != Level::kThread) {
    return absl::InternalError("the emitter takes programs lowered to the level of threads");
  }
  Generated result;
  result.language = dialect.language;
  std::string kernels, functions;
  WarpgroupParts parts;
  for (size_t i = 0; i < module.launches.size(); ++i) {
    Entry entry;
    entry.symbol = absl::StrCat("tl_kernel_", i);
    TL_ASSIGN_OR_RETURN(std::string text,
                        EmitLaunch(module, module.launches[i], target, dialect, parts, entry));
    absl::StrAppend(&kernels, "\n", text);
    result.entries.push_back(std::move(entry));
  }
  for (const WarpgroupSums& s : parts.sums) functions += dialect.warpgroup_sums(s);
  for (const WarpgroupProduct& p : parts.products) functions += dialect.warpgroup_product(p);
  result.source = WithPrelude(dialect.primitives, kernels, functions);
  return result;
}

}  // namespace tl
