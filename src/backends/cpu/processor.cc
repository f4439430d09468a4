#include "backends/cpu/processor.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstring>
#endif

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tl::cpu {
namespace {

// Each includes those before it.
constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

int LevelIndex(std::string_view level) {
  const auto it = std::find(std::begin(kLevels), std::end(kLevels), level);
  return it == std::end(kLevels) ? -1 : static_cast<int>(it - std::begin(kLevels));
}

Processor DetectHost() {
  Processor host{"x86-64", {}};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) {
    host.level = "x86-64-v4";
  } else if (__builtin_cpu_supports("x86-64-v3")) {
    host.level = "x86-64-v3";
  } else if (__builtin_cpu_supports("x86-64-v2")) {
    host.level = "x86-64-v2";
  }
  // The check for an operating system that saves wide registers is part of the levels'.
  if (host.level != "x86-64-v4") return host;
  if (__builtin_cpu_supports("avx512bf16")) host.features.push_back("avx512bf16");
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    if (d & (1u << 23)) host.features.push_back("avx512fp16");
    if (c & (1u << 11)) host.features.push_back("avx512vnni");
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 4))) {
    host.features.push_back("avxvnni");
  }
#endif
  return host;
}

}  // namespace

std::string Processor::FeatureText() const {
  return absl::StrJoin(features, ",", [](std::string* out, const std::string& feature) {
    absl::StrAppend(out, "+", feature);
  });
}

std::string Processor::Text() const { return absl::StrCat(level, ":", FeatureText()); }

const Processor& HostProcessor() {
  static const Processor& host = *new Processor(DetectHost());
  return host;
}

std::string HostName() {
#if defined(__x86_64__)
  unsigned words[12] = {};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* w = words + 4 * i;
    if (!__get_cpuid(0x80000002 + i, w, w + 1, w + 2, w + 3)) return "x86-64 processor";
  }
  char text[sizeof(words) + 1] = {};
  std::memcpy(text, words, sizeof(words));
  return std::string(absl::StripAsciiWhitespace(text));
#else
  return "processor";
#endif
}

StatusOr<Processor> ParseProcessor(std::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' names no processor"));
  };
  const std::vector<std::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2 || LevelIndex(parts[0]) < 0) return error();
  Processor processor{std::string(parts[0]), {}};
  for (std::string_view feature : absl::StrSplit(parts[1], ',', absl::SkipEmpty())) {
    if (!absl::ConsumePrefix(&feature, "+")) return error();
    processor.features.emplace_back(feature);
  }
  return processor;
}

std::string Missing(const Processor& needed, const Processor& host) {
  if (LevelIndex(needed.level) > LevelIndex(host.level)) return needed.level;
  for (const std::string& feature : needed.features) {
    if (std::find(host.features.begin(), host.features.end(), feature) == host.features.end()) {
      return feature;
    }
  }
  return "";
}

CpuFacts FactsOf(const Processor& processor) {
  return {.f16c = LevelIndex(processor.level) >= LevelIndex("x86-64-v3")};
}

StatusOr<Target> FindCpuTarget(std::string_view name) {
  Processor processor;
  std::string_view level = name;
  if (name == "cpu") {
    processor = HostProcessor();
  } else if (absl::ConsumePrefix(&level, "cpu:") && LevelIndex(level) >= 0) {
    processor.level = level;
  } else {
    return absl::NotFoundError(absl::StrCat("'", name, "' is no CPU target"));
  }
  Target target;
  target.name = name;
  target.identity = absl::StrCat("cpu:", processor.Text());
  target.backend = "cpu";
  target.max_threads_per_block = 64;
  // Bounded by memory, and the emitter's index arithmetic, only.
  target.max_blocks = int64_t{1} << 40;
  target.channels = true;
  return target;
}

std::vector<std::string> CpuTargetNames() {
  std::vector<std::string> names = {"cpu"};
  for (std::string_view level : kLevels) names.push_back(absl::StrCat("cpu:", level));
  return names;
}

StatusOr<Processor> ProcessorOf(const Target& target) {
  std::string_view text = target.identity;
  if (!absl::ConsumePrefix(&text, "cpu:")) {
    return absl::InternalError(absl::StrCat("'", target.identity, "' is no CPU target"));
  }
  return ParseProcessor(text);
}

}  // namespace tl::cpu
