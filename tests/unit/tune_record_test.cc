// Tuned configurations: written, read back, and which one a request takes.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "service/record.h"

namespace tl {
namespace {

constexpr char kScope[] = "scope";

TunedRecord Tuned(std::vector<TunedDim> dims, const std::string& bm,
                  const std::string& device = "A GPU") {
  TunedRecord tuned;
  tuned.configuration = {{"bm", bm}};
  tuned.time = {100, 90, 110};
  tuned.default_configuration = {{"bm", "1"}};
  tuned.default_time = TunedTime{200, 190, 210};
  tuned.dims = std::move(dims);
  tuned.device = device;
  tuned.device_identity = device + " identity";
  tuned.candidates = 7;
  tuned.library = "1.2.3";
  return tuned;
}

// "M=64 N=?128": a question mark makes it dynamic.
std::vector<TunedDim> Dims(const std::string& text) {
  std::vector<TunedDim> dims;
  for (std::string_view part : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::vector<std::string> sides = absl::StrSplit(part, '=');
    const bool dynamic = sides[1].front() == '?';
    dims.push_back({sides[0], atol(sides[1].c_str() + (dynamic ? 1 : 0)), dynamic});
  }
  return dims;
}

TEST(TuneRecord, ReadsWhatWasWritten) {
  TunedRecord tuned = Tuned(Dims("M=64 N=?128"), "32");
  tuned.runner_up = {{"bm", "16"}};
  tuned.runner_up_time = TunedTime{120, 110, 130};
  for (bool has_default : {true, false}) {
    if (!has_default) {
      tuned.default_time.reset();
      tuned.default_configuration.clear();
    }
    const Record record = ToRecord(kScope, tuned);
    const StatusOr<TunedRecord> read = ReadRecord(record);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->configuration, tuned.configuration);
    EXPECT_EQ(read->time.median_ns, 100);
    EXPECT_EQ(read->default_time.has_value(), has_default);
    EXPECT_EQ(read->runner_up, tuned.runner_up);
    EXPECT_EQ(read->dims, tuned.dims);
    EXPECT_EQ(read->candidates, 7);
    EXPECT_EQ(read->library, "1.2.3");
    EXPECT_EQ(ToRecord(kScope, *read), record);
  }
}

TEST(TuneRecord, WhatItIsNotMadeForIsNotRead) {
  const Record good = ToRecord(kScope, Tuned(Dims("M=64"), "32"));
  const struct {
    const char* what;
    std::string from, to;
  } rows[] = {
      {"no JSON", "{", ""},
      {"a member is missing", "\"candidates\"", "\"candidate\""},
      {"a number is a text", "\"median_ns\":100.0", "\"median_ns\":\"100\""},
      {"other dims than its key", "\"value\":64", "\"value\":65"},
      {"another device than its key", "A GPU identity", "A CPU identity"},
  };
  for (const auto& row : rows) {
    Record record = good;
    const size_t at = record.value.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.what << " in " << record.value;
    record.value.replace(at, row.from.size(), row.to);
    EXPECT_TRUE(absl::IsDataLoss(ReadRecord(record).status())) << row.what;
    EXPECT_FALSE(ChooseRecord({record}, {Dims("M=64"), {}, {}})) << row.what;
  }
}

// The bm of the record taken, with "exact" or "nearest"; "none".
std::string Choose(const std::vector<Record>& records, const RecordQuery& query) {
  const auto found = ChooseRecord(records, query);
  if (!found) return "none";
  return absl::StrCat(found->exact ? "exact " : "nearest ", found->tuned.configuration[0].second);
}

TEST(TuneRecord, TakesTheExactOneElseTheNearest) {
  const std::vector<Record> records = {
      ToRecord(kScope, Tuned(Dims("M=4096 N=4096"), "1")),
      ToRecord(kScope, Tuned(Dims("M=16 N=8192"), "2")),
      ToRecord(kScope, Tuned(Dims("M=1024 N=4096"), "3")),
      ToRecord(kScope, Tuned(Dims("M=?1024 N=4096"), "4")),
      ToRecord(kScope, Tuned(Dims("M=?8192 N=4096"), "5")),
      ToRecord(kScope, Tuned(Dims("M=4096 N=4096"), "6", "Another GPU")),
  };
  const struct {
    const char* dims;
    const char* device;
    const char* name;
    const char* taken;
  } rows[] = {
      {"M=4096 N=4096", "A GPU identity", "", "exact 1"},
      {"M=16 N=8192", "A GPU identity", "", "exact 2"},
      {"M=1024 N=4096", "A GPU identity", "", "exact 3"},
      {"M=4000 N=4096", "A GPU identity", "", "nearest 1"},
      {"M=1200 N=4096", "A GPU identity", "", "nearest 3"},
      {"M=2900 N=4096", "A GPU identity", "", "nearest 1"},  // nearer by its logarithm
      {"M=20 N=7000", "A GPU identity", "", "nearest 2"},
      {"M=128 N=4096", "A GPU identity", "", "none"},  // more than a factor of two from all
      {"M=16 N=2048", "A GPU identity", "", "none"},
      // A dynamic dim fits any value; made for the same dims comes first, then the most work.
      {"M=?0 N=4096", "A GPU identity", "", "exact 5"},
      {"M=?0 N=8192", "A GPU identity", "", "nearest 2"},
      {"M=4096 N=4096", "Another GPU identity", "", "exact 6"},
      {"M=1024 N=4096", "Another GPU identity", "", "none"},
      {"M=4096 N=4096", "", "another", "exact 6"},
      {"M=4096 N=4096", "", "no such", "none"},
      {"M=4096 N=4096", "", "", "exact 1"},  // the first, which is the newest
      {"M=4096", "A GPU identity", "", "none"},
      {"M=4096 K=4096", "A GPU identity", "", "none"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(Choose(records, {Dims(row.dims), row.device, row.name}), row.taken)
        << row.dims << " " << row.device << row.name;
}

}  // namespace
}  // namespace tl
