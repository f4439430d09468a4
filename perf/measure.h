// Clocks, percentiles and a table that is printed and written as JSON: shared by the benchmarks.
#ifndef TILEJIT_PERF_MEASURE_H_
#define TILEJIT_PERF_MEASURE_H_

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace perf {

// Runs `body` once; microseconds.
template <typename Body>
double TimeUs(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

// What two readings of the clock cost: part of every single measurement below a microsecond.
inline double ClockUs() {
  std::vector<double> samples;
  for (int i = 0; i < 10000; ++i) samples.push_back(TimeUs([] {}));
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2];
}

// The q-quantile (0 ... 1) by nearest rank.
inline double Quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return std::nan("");
  const size_t rank = static_cast<size_t>(std::ceil(q * static_cast<double>(samples.size())));
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

struct Row {
  std::string name;
  double p50 = 0, p999 = 0, min = 0;  // microseconds
  size_t samples = 0;
};

class Table {
 public:
  // `overhead` is taken off every sample.
  void Add(const std::string& name, const std::vector<double>& samples, double overhead = 0) {
    Row row{name, Quantile(samples, 0.5) - overhead, Quantile(samples, 0.999) - overhead,
            Quantile(samples, 0) - overhead, samples.size()};
    std::printf("%-56s %12.3f %12.3f %12.3f %9zu\n", name.c_str(), row.p50, row.p999, row.min,
                row.samples);
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }

  static void PrintHeader() {
    std::printf("%-56s %12s %12s %12s %9s\n", "microseconds", "p50", "p99.9", "min", "samples");
  }

  bool WriteJson(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file) return false;
    std::fprintf(file, "{\"unit\": \"us\", \"rows\": [");
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& r = rows_[i];
      std::fprintf(file,
                   "%s\n  {\"name\": \"%s\", \"p50\": %.4f, \"p999\": %.4f, \"min\": %.4f, "
                   "\"samples\": %zu}",
                   i ? "," : "", r.name.c_str(), r.p50, r.p999, r.min, r.samples);
    }
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) == 0;
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace perf

#endif  // TILEJIT_PERF_MEASURE_H_
