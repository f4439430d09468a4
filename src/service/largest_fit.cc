#include "service/largest_fit.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/bind.h"
#include "passes/repack_rows.h"
#include "service/generate.h"
#include "service/tune_space.h"

namespace tl {
namespace {

// Lowering one takes a millisecond or two.
constexpr size_t kMostTried = 256;

// Bytes of on-chip memory that a block takes; nothing if the target cannot have it.
std::optional<int64_t> BytesOf(const syntax::Program& program, const BindOptions& options,
                               const Target& target, int64_t shared_budget) {
  StatusOr<Module> module = Bind(program, options);
  if (!module.ok()) return std::nullopt;
  RepackRows(*module, target);
  const StatusOr<Module> lowered = LowerFor(*module, target, shared_budget);
  if (!lowered.ok()) return std::nullopt;
  int64_t bytes = 0;
  for (const Launch& launch : lowered->launches) bytes = std::max(bytes, launch.arena_bytes);
  return bytes;
}

}  // namespace

Status WithLargestFit(const Status& status, const syntax::Program& program,
                      const CompileRequest& request, const Target& target) {
  ErrorDetail detail = DetailOf(status);
  // What a compiler says of registers is no matter of size.
  const bool too_large = detail.reason == Reason::kLimit && detail.domain == Domain::kTl;
  if (!too_large && !IsConditionFailure(status)) return status;
  const std::vector<std::string_view> tuned = TuneNames(program, target.tune_class());
  CompileRequest untuned = request;
  std::erase_if(untuned.params,
                [&](const auto& param) { return absl::c_linear_search(tuned, param.first); });
  const StatusOr<RequestedSpace> space = SpaceOf(program, untuned, target);
  if (!space.ok()) return status;
  int64_t most = 0;  // what takes none is no matter of size
  Configuration largest;
  for (size_t i = 0; i < std::min(kMostTried, space->combinations.size()); ++i) {
    const std::optional<int64_t> bytes =
        BytesOf(program, space->OptionsFor(i, untuned, target), target, request.shared_budget);
    if (!bytes || *bytes <= most) continue;
    most = *bytes;
    largest = space->configuration(i);
  }
  if (most == 0) return status;
  return MakeError(
      status.code(),
      absl::StrCat(status.message(), "; the largest of its configurations that fits is ",
                   absl::StrJoin(largest, " ", absl::PairFormatter("=")), " (", most, " bytes)"),
      std::move(detail));
}

}  // namespace tl
