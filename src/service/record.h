// Tuned configurations: what a search found, as the store keeps it, and which one a request takes.
#ifndef TILEJIT_SERVICE_RECORD_H_
#define TILEJIT_SERVICE_RECORD_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "cache/store.h"
#include "ir/module.h"
#include "ir/syntax.h"
#include "service/request.h"

namespace tl {

// Tune parameters and their values.
using Configuration = std::vector<std::pair<std::string, std::string>>;

struct TunedTime {
  double median_ns = 0, min_ns = 0, max_ns = 0;
};

struct TunedDim {
  std::string name;
  int64_t value = 0;     // that it was tuned with
  bool dynamic = false;  // an argument of every launch

  friend bool operator==(const TunedDim&, const TunedDim&) = default;
};

struct TunedRecord {
  Configuration configuration;
  TunedTime time;
  // Measured in the same rounds; absent where it does not run.
  Configuration default_configuration;
  std::optional<TunedTime> default_time;
  Configuration runner_up;  // empty: there was none
  std::optional<TunedTime> runner_up_time;
  std::vector<TunedDim> dims;
  std::string device;           // its name
  std::string device_identity;  // with what else its speed depends on
  int64_t candidates = 0;       // measured
  std::string library;          // version that made it
};

// What of a device decides how fast a kernel runs there.
std::string DeviceIdentity(const DeviceInfo& device);

// Whose records a program may take: those of the same text and parameters, for the same target, by
// the same passes and code generator. `bound` has the parameters that `request` comes to; tune
// parameters and dims are not among what is compared, nor parameters that follow from dims unless
// the request gives them.
std::string RecordScope(const syntax::Program& program, const Module& bound, const Backend& backend,
                        const Target& target, const CompileRequest& request);

// The program's dims: fixed ones have their values, dynamic ones 0 until they are known.
std::vector<TunedDim> DimsOf(const syntax::Program& program, const Module& bound);

Record ToRecord(const std::string& scope, const TunedRecord& tuned);
// DATA_LOSS where the value is none of ours.
StatusOr<TunedRecord> ReadRecord(const Record& record);
nlohmann::json RecordJson(const TunedRecord& tuned);

// Whom a record must have been made for.
struct RecordQuery {
  std::vector<TunedDim> dims;
  std::string device_identity;  // empty: any device of the target,
  std::string device_name;      // whose name has this in it
};
struct FoundRecord {
  TunedRecord tuned;
  bool exact = false;  // same dims, fixed and dynamic; else the nearest
};
// Of the records of one scope: the nearest in shape whose dims are within a factor of two. A
// dynamic dim of the query fits any; of several, the one that was tuned for the most work.
std::optional<FoundRecord> ChooseRecord(const std::vector<Record>& records,
                                        const RecordQuery& query);

}  // namespace tl

#endif  // TILEJIT_SERVICE_RECORD_H_
