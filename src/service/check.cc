#include "service/check.h"

#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "backends/reference/compare.h"
#include "backends/reference/reference.h"
#include "backends/reference/tensor.h"

namespace tl {
namespace {

using reference::Comparison;
using reference::Index;
using reference::Tensor;

constexpr int64_t kDefaultReferenceWork = 200'000'000;
constexpr double kInf = std::numeric_limits<double>::infinity();

bool IsOutput(const Buffer& b) {
  return b.role == BufferRole::kOut || b.role == BufferRole::kInOut;
}

// Storage offsets of a tensor's elements in row-major order of their indices.
StatusOr<std::vector<int64_t>> RowMajorOffsets(const Module& m, BufferId id, const HostArgs& args,
                                               std::vector<int64_t>* shape) {
  TL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Make(m, id, args));
  Index extent{};
  for (int d = 0; d < tensor.rank(); ++d) {
    extent[d] = tensor.extent(d);
    shape->push_back(tensor.extent(d));
  }
  std::vector<int64_t> offsets;
  reference::ForEachCoordinate(tensor.rank(), extent,
                               [&](const Index& c) { offsets.push_back(tensor.Offset(c)); });
  return offsets;
}

class Checker {
 public:
  Checker(const Kernel& kernel, const CheckOptions& options, CheckResult* result)
      : kernel_(kernel), m_(kernel.module()), options_(options), result_(*result) {}

  Status Run(const Device& device) {
    TL_ASSIGN_OR_RETURN(std::unique_ptr<DeviceSession> session,
                        device.backend->OpenSession(device.info.ordinal));
    TL_ASSIGN_OR_RETURN(std::unique_ptr<Trial> trial,
                        Trial::Make(kernel_, *session, device.info.ordinal, options_.arguments));
    // The expected values come first: fetching the results overwrites what `inout` tensors held.
    TL_RETURN_IF_ERROR(options_.oracle ? AskOracle(*trial) : AskReference(*trial));
    TL_RETURN_IF_ERROR(trial->Launch());
    TL_RETURN_IF_ERROR(session->Synchronize());
    for (size_t i = 0; i < m_.operands.size(); ++i) {
      if (IsOutput(m_.buffer(m_.operands[i]))) TL_RETURN_IF_ERROR(trial->Fetch(i));
    }
    options_.oracle ? CompareWithOracle(*trial) : CompareWithReference(*trial);
    TL_RETURN_IF_ERROR(trial->CheckGuards());
    return Verdict(trial->inputs().arguments.host());
  }

 private:
  Status AskReference(const Trial& trial) {
    reference::RunOptions run;
    run.threads = options_.threads;
    run.seed = options_.arguments.seed;
    run.work_budget = options_.reference_work > 0 ? options_.reference_work : kDefaultReferenceWork;
    StatusOr<reference::Outputs> outputs = reference::RunExact(m_, trial.inputs().arguments, run);
    TL_RETURN_IF_ERROR(outputs.status());
    outputs_ = std::make_unique<reference::Outputs>(*std::move(outputs));
    return absl::OkStatus();
  }

  Status AskOracle(const Trial& trial) {
    const reference::Arguments& arguments = trial.inputs().arguments;
    for (size_t i = 0; i < m_.operands.size(); ++i) {
      const Buffer& b = m_.buffer(m_.operands[i]);
      OracleTensor tensor{.name = b.name, .role = b.role};
      TL_ASSIGN_OR_RETURN(std::vector<int64_t> offsets,
                          RowMajorOffsets(m_, m_.operands[i], arguments.host(), &tensor.shape));
      if (b.role != BufferRole::kOut)
        tensor.input = Values(b.dtype, arguments.operands[i], offsets);
      if (IsOutput(b)) {
        tensor.expected.resize(offsets.size());
        tensor.bound.resize(offsets.size());
      }
      offsets_.push_back(std::move(offsets));
      tensors_.push_back(std::move(tensor));
    }
    if (options_.oracle(tensors_, arguments)) return absl::OkStatus();
    return absl::AbortedError("the oracle gave up");
  }

  static std::vector<double> Values(DType t, const void* memory,
                                    const std::vector<int64_t>& offsets) {
    std::vector<double> out;
    out.reserve(offsets.size());
    const char* base = static_cast<const char*>(memory);
    for (int64_t offset : offsets)
      out.push_back(LoadElement(t, base + offset * static_cast<int64_t>(SizeOf(t))));
    return out;
  }

  void CompareWithReference(const Trial& trial) {
    const bool complete = outputs_->blocks == outputs_->total_blocks;
    for (const reference::Output& output : outputs_->tensors) {
      const int operand = OperandOf(output.id());
      const bool poisoned = complete && m_.buffer(output.id()).role == BufferRole::kOut;
      const Comparison c = reference::Compare(
          output, trial.inputs().arguments.operands[static_cast<size_t>(operand)], poisoned);
      result_.compared += static_cast<uint64_t>(c.compared - c.unbounded);
      unbounded_ += c.unbounded;
      result_.mismatches += static_cast<uint64_t>(c.mismatches);
      strays_ += c.strays;
      if (c.worst_at >= 0) Worst(operand, c.worst_at, c.worst_ratio, c.expected, c.actual, c.bound);
    }
  }

  void CompareWithOracle(const Trial& trial) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const OracleTensor& t = tensors_[i];
      if (t.expected.empty()) continue;
      const Buffer& b = m_.buffer(m_.operands[i]);
      const std::vector<double> actual =
          Values(b.dtype, trial.inputs().arguments.operands[i], offsets_[i]);
      for (size_t e = 0; e < actual.size(); ++e) {
        if (t.bound[e] < 0) continue;
        ++result_.compared;
        const double ratio = Ratio(t.expected[e], actual[e], t.bound[e]);
        if (ratio > 1) ++result_.mismatches;
        Worst(static_cast<int>(i), static_cast<int64_t>(e), ratio, t.expected[e], actual[e],
              t.bound[e]);
      }
    }
  }

  static double Ratio(double expected, double actual, double bound) {
    if (expected == actual || (std::isnan(expected) && std::isnan(actual))) return 0;
    const double error = std::fabs(actual - expected);
    return std::isfinite(error) && bound > 0 ? error / bound : kInf;
  }

  void Worst(int operand, int64_t index, double ratio, double expected, double actual,
             double bound) {
    if (result_.worst_operand >= 0 && ratio <= result_.worst_ratio) return;
    result_.worst_operand = operand;
    result_.worst_index = index;
    result_.worst_ratio = ratio;
    result_.worst_error = std::fabs(actual - expected);
    result_.worst_bound = bound;
    result_.worst_expected = expected;
    result_.worst_actual = actual;
  }

  int OperandOf(BufferId id) const {
    for (size_t i = 0; i < m_.operands.size(); ++i) {
      if (m_.operands[i] == id) return static_cast<int>(i);
    }
    return -1;
  }

  Status Verdict(const HostArgs& args) const {
    if (result_.compared == 0 && unbounded_ > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("nothing was checked: for none of ", unbounded_,
                       " elements can the reference bound the error with these inputs; narrow them "
                       "with an init clause, or pass an oracle"));
    }
    if (result_.mismatches == 0 && strays_ == 0) return absl::OkStatus();
    std::string message;
    if (result_.mismatches > 0) {
      const BufferId id = m_.operands[static_cast<size_t>(result_.worst_operand)];
      const std::string where =
          options_.oracle ? absl::StrCat(m_.buffer(id).name, " element ", result_.worst_index)
                          : reference::ElementName(m_, id, args, result_.worst_index);
      message = absl::StrCat(result_.mismatches, " of ", result_.compared,
                             " elements are off; the worst is ", where, ": expected ",
                             result_.worst_expected, ", found ", result_.worst_actual,
                             ", allowed error ", result_.worst_bound);
    }
    if (strays_ > 0) {
      absl::StrAppend(&message, message.empty() ? "" : "; ", strays_,
                      " elements were written that the program leaves alone");
    }
    return MakeError(absl::StatusCode::kDataLoss, message,
                     {.reason = Reason::kMismatch, .span = {}, .log = {}});
  }

  const Kernel& kernel_;
  const Module& m_;
  const CheckOptions& options_;
  CheckResult& result_;
  std::unique_ptr<reference::Outputs> outputs_;
  std::vector<OracleTensor> tensors_;
  std::vector<std::vector<int64_t>> offsets_;
  int64_t strays_ = 0;
  int64_t unbounded_ = 0;  // elements of which the error model says nothing
};

}  // namespace

Status Check(const Kernel& kernel, const Device& device, const CheckOptions& options,
             CheckResult* result) {
  *result = {};
  return Checker(kernel, options, result).Run(device);
}

}  // namespace tl
