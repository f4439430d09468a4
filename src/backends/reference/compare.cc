#include "backends/reference/compare.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/reference/tensor.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

double Ratio(double expected, double actual, double bound) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : kInf;
  if (expected == actual) return 0;
  const double difference = std::fabs(actual - expected);
  if (std::isnan(difference)) return kInf;
  return bound > 0 ? difference / bound : kInf;
}

bool IsPoison(DType t, const char* p) {
  for (size_t i = 0; i < SizeOf(t); ++i) {
    if (static_cast<uint8_t>(p[i]) != 0xff) return false;
  }
  return true;
}

}  // namespace

Comparison Compare(const Output& expected, const void* memory, bool poisoned) {
  Comparison r;
  const DType t = expected.dtype();
  const int64_t size = static_cast<int64_t>(SizeOf(t));
  const char* base = static_cast<const char*>(memory);
  for (int64_t i = 0; i < expected.size(); ++i) {
    const char* p = base + i * size;
    if (!expected.written(i)) {
      if (poisoned && !IsPoison(t, p)) ++r.strays;
      continue;
    }
    ++r.compared;
    const double bound = expected.bound(i);
    if (std::isinf(bound)) {
      ++r.unbounded;
      continue;
    }
    double actual, ratio;
    const double value = expected.value(i);
    if (IsFloat(t)) {
      actual = LoadElement(t, p);
      ratio = Ratio(value, actual, bound);
    } else {
      const int64_t raw = LoadInt(t, p);
      actual = static_cast<double>(raw);
      ratio = raw == expected.int_value(i) ? 0 : bound == 0 ? kInf : Ratio(value, actual, bound);
    }
    if (ratio > 1) ++r.mismatches;
    if (ratio > r.worst_ratio || r.worst_at < 0) {
      r.worst_ratio = ratio;
      r.worst_at = i;
      r.expected = value;
      r.actual = actual;
      r.bound = bound;
    }
  }
  return r;
}

std::string ElementName(const Module& module, BufferId id, const HostArgs& args, int64_t offset) {
  const std::string& name = module.buffer(id).name;
  const StatusOr<Tensor> tensor = Tensor::Make(module, id, args);
  const std::string fallback = absl::StrCat(name, "+", offset);
  if (!tensor.ok()) return fallback;
  Index extent{}, found{};
  bool hit = false;
  for (int d = 0; d < tensor->rank(); ++d) extent[d] = tensor->extent(d);
  ForEachCoordinate(tensor->rank(), extent, [&](const Index& c) {
    if (hit || tensor->Offset(c) != offset) return;
    hit = true;
    found = c;
  });
  if (!hit) return fallback;
  return absl::StrCat(name, "[", absl::StrJoin(found.begin(), found.begin() + tensor->rank(), ", "),
                      "]");
}

}  // namespace tl::reference
