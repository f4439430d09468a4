// What the tests of the reference interpreter share: a program with its arguments, run in both
// modes.
#ifndef TILEJIT_TESTS_UNIT_REFERENCE_TESTING_H_
#define TILEJIT_TESTS_UNIT_REFERENCE_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/reference/compare.h"
#include "backends/reference/inputs.h"
#include "backends/reference/reference.h"
#include "ir/bind.h"
#include "ir/syntax.h"

namespace tl::reference {

using Values = std::vector<std::pair<std::string, std::string>>;
using Doubles = std::vector<double>;

inline StatusOr<Module> BindText(std::string_view text, const Values& values = {}) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(text));
  return Bind(program, BindOptions{.values = values, .target_class = ""});
}

class Program {
 public:
  explicit Program(std::string_view text, const Values& values = {}) {
    StatusOr<Module> module = BindText(text, values);
    status_ = module.status();
    if (!module.ok()) {
      module_ = std::make_unique<Module>();  // so that a failing test goes on to say why
      return;
    }
    module_ = std::make_unique<Module>(*std::move(module));
    arguments_.dims.resize(module_->dims.size());
    arguments_.strides.resize(module_->strides.size());
    arguments_.scalars.resize(module_->scalars.size());
  }

  const Module& module() const { return *module_; }
  const Status& status() const { return status_; }

  Program& Dim(std::string_view name, int64_t v) {
    for (size_t i = 0; i < module_->dims.size(); ++i) {
      if (module_->var(module_->dims[i]).name == name) arguments_.dims[i] = v;
    }
    return *this;
  }
  Program& Stride(size_t i, int64_t v) {
    arguments_.strides[i] = v;
    return *this;
  }
  Program& Scalar(std::string_view name, double v) {
    for (size_t i = 0; i < module_->scalars.size(); ++i) {
      const Var& var = module_->var(module_->scalars[i]);
      if (var.name != name) continue;
      arguments_.scalars[i] =
          IsFloat(var.type) ? ScalarValue(v) : ScalarValue(static_cast<int64_t>(v));
    }
    return *this;
  }
  // The tensor's storage, element by element.
  Program& Set(const std::string& name, Doubles values) {
    data_[name] = std::move(values);
    return *this;
  }

  // Runs both modes and expects every rounded element within its bound of the exact one.
  Status Run(int threads = 1, bool rounded_too = true) {
    TL_RETURN_IF_ERROR(status_);
    if (Status s = Prepare(); !s.ok()) return s;
    StatusOr<Outputs> exact = RunExact(*module_, arguments_);
    TL_RETURN_IF_ERROR(exact.status());
    exact_ = std::make_unique<Outputs>(*std::move(exact));
    if (!rounded_too) return absl::OkStatus();
    TL_RETURN_IF_ERROR(RunRounded(*module_, arguments_, threads));
    for (const Output& out : exact_->tensors) {
      const std::string& name = module_->buffer(out.id()).name;
      const bool poisoned = module_->buffer(out.id()).role == BufferRole::kOut;
      const Comparison c = Compare(out, memory_[name].data(), poisoned);
      EXPECT_TRUE(c.ok()) << name << "+" << c.worst_at << ": " << c.actual << " instead of "
                          << c.expected << ", bound " << c.bound << "; " << c.mismatches
                          << " mismatches, " << c.strays << " strays";
      worst_ratio_ = std::max(worst_ratio_, c.worst_ratio);
      compared_ += c.compared;
    }
    return absl::OkStatus();
  }

  const Outputs& outputs() const { return *exact_; }
  const Output& output(const std::string& name) const {
    for (const Output& out : exact_->tensors) {
      if (module_->buffer(out.id()).name == name) return out;
    }
    ADD_FAILURE() << "no output " << name;
    return exact_->tensors[0];
  }
  // Exact values of an output, -999 where nothing was written.
  Doubles Exact(const std::string& name) const {
    if (exact_ == nullptr) return {};
    const Output& out = output(name);
    Doubles v;
    for (int64_t i = 0; i < out.size(); ++i) v.push_back(out.written(i) ? out.value(i) : -999);
    return v;
  }
  Doubles Bounds(const std::string& name) const {
    if (exact_ == nullptr) return {};
    const Output& out = output(name);
    Doubles v;
    for (int64_t i = 0; i < out.size(); ++i) v.push_back(out.bound(i));
    return v;
  }
  Doubles Rounded(const std::string& name) const {
    const DType t = Type(name);
    const std::vector<uint8_t>& bytes = memory_.at(name);
    Doubles v;
    for (size_t i = 0; i < bytes.size() / SizeOf(t); ++i) {
      v.push_back(LoadElement(t, bytes.data() + i * SizeOf(t)));
    }
    return v;
  }
  double worst_ratio() const { return worst_ratio_; }
  int64_t compared() const { return compared_; }
  const Arguments& arguments() const { return arguments_; }

 private:
  DType Type(const std::string& name) const {
    for (BufferId id : module_->operands) {
      if (module_->buffer(id).name == name) return module_->buffer(id).dtype;
    }
    ADD_FAILURE() << "no operand " << name;
    return DType::kF32;
  }

  Status Prepare() {
    arguments_.operands.clear();
    for (BufferId id : module_->operands) {
      const Buffer& b = module_->buffer(id);
      TL_ASSIGN_OR_RETURN(const Tensor t, Tensor::Make(*module_, id, arguments_.host()));
      std::vector<uint8_t>& bytes = memory_[b.name];
      bytes.assign(static_cast<size_t>(t.bytes()), 0xff);
      const Doubles& values = data_[b.name];
      if (b.role != BufferRole::kOut) {
        EXPECT_EQ(static_cast<int64_t>(values.size()), t.size()) << "elements of " << b.name;
      }
      for (size_t i = 0; i < values.size() && i < static_cast<size_t>(t.size()); ++i) {
        StoreElement(b.dtype, bytes.data() + i * SizeOf(b.dtype), values[i]);
      }
      arguments_.operands.push_back(bytes.data());
    }
    return absl::OkStatus();
  }

  Status status_;
  std::unique_ptr<Module> module_;
  Arguments arguments_;
  std::map<std::string, Doubles> data_;
  std::map<std::string, std::vector<uint8_t>> memory_;
  std::unique_ptr<Outputs> exact_;
  double worst_ratio_ = 0;
  int64_t compared_ = 0;
};

// n numbers in [-1, 1) that every dtype down to bf16 holds exactly: multiples of 1/64.
inline Doubles Ramp(int64_t n, int seed = 1) {
  Doubles v;
  uint32_t x = static_cast<uint32_t>(seed) * 2654435761u + 12345u;
  for (int64_t i = 0; i < n; ++i) {
    x = x * 1664525u + 1013904223u;
    v.push_back(static_cast<double>(static_cast<int>(x >> 25) - 64) / 64);
  }
  return v;
}

inline Doubles Filled(int64_t n, double v) { return Doubles(static_cast<size_t>(n), v); }

#define TL_ASSERT_OK(expr)                                                                  \
  do {                                                                                      \
    const ::absl::Status tl_s_ = (expr);                                                    \
    ASSERT_TRUE(tl_s_.ok()) << tl_s_.message() << " at line " << DetailOf(tl_s_).span.line; \
  } while (false)

MATCHER_P2(FailsAt, line, text, "") {
  *result_listener << arg << " at line " << DetailOf(arg).span.line;
  return !arg.ok() && DetailOf(arg).span.line == line &&
         std::string(arg.message()).find(text) != std::string::npos;
}

}  // namespace tl::reference

#endif  // TILEJIT_TESTS_UNIT_REFERENCE_TESTING_H_
