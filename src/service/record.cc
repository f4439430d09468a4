#include "service/record.h"

#include <cmath>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "service/generate.h"

namespace tl {
namespace {

using Json = nlohmann::json;

// Changes whenever a record of the same content means something else.
constexpr int kFormat = 1;
// Octaves that a dim may be away from the tuned one's.
constexpr double kFarthest = 1;

Json ConfigurationJson(const Configuration& configuration) {
  Json out = Json::object();
  for (const auto& [name, value] : configuration) out[name] = value;
  return out;
}

Configuration ReadConfiguration(const Json& json) {
  Configuration out;
  for (const auto& [name, value] : json.items()) out.emplace_back(name, value.get<std::string>());
  return out;
}

Json TimeJson(const TunedTime& time) {
  return {{"median_ns", time.median_ns}, {"min_ns", time.min_ns}, {"max_ns", time.max_ns}};
}

TunedTime ReadTime(const Json& json) {
  return {json.at("median_ns").get<double>(), json.at("min_ns").get<double>(),
          json.at("max_ns").get<double>()};
}

// A configuration with its time, or null.
Json EntryJson(const Configuration& configuration, const std::optional<TunedTime>& time) {
  if (!time) return nullptr;
  Json out = TimeJson(*time);
  out["configuration"] = ConfigurationJson(configuration);
  return out;
}

void ReadEntry(const Json& json, Configuration& configuration, std::optional<TunedTime>& time) {
  if (json.is_null()) return;
  configuration = ReadConfiguration(json.at("configuration"));
  time = ReadTime(json);
}

TunedRecord Parse(const Json& json) {
  TunedRecord out;
  out.configuration = ReadConfiguration(json.at("configuration"));
  out.time = ReadTime(json);
  ReadEntry(json.at("default"), out.default_configuration, out.default_time);
  ReadEntry(json.at("runner_up"), out.runner_up, out.runner_up_time);
  for (const Json& dim : json.at("dims")) {
    out.dims.push_back({dim.at("name").get<std::string>(), dim.at("value").get<int64_t>(),
                        dim.at("dynamic").get<bool>()});
  }
  out.device = json.at("device").get<std::string>();
  out.device_identity = json.at("device_identity").get<std::string>();
  out.candidates = json.at("candidates").get<int64_t>();
  out.library = json.at("library").get<std::string>();
  return out;
}

std::string KeyDocument(const std::string& scope, const TunedRecord& tuned) {
  std::string key = absl::StrCat("device ", tuned.device_identity, "\ndims");
  for (const TunedDim& dim : tuned.dims)
    absl::StrAppend(&key, " ", dim.name, "=", dim.value, dim.dynamic ? " dynamic" : "");
  return absl::StrCat(key, "\n", scope);
}

double Octaves(int64_t a, int64_t b) {
  const auto size = [](int64_t n) { return static_cast<double>(n < 1 ? 1 : n); };
  return std::fabs(std::log2(size(a) / size(b)));
}

// How far in shape; nothing where it is too far.
std::optional<double> Distance(const TunedRecord& tuned, const RecordQuery& query) {
  if (tuned.dims.size() != query.dims.size()) return std::nullopt;
  double sum = 0;
  for (size_t i = 0; i < tuned.dims.size(); ++i) {
    if (tuned.dims[i].name != query.dims[i].name) return std::nullopt;
    if (query.dims[i].dynamic) continue;
    const double octaves = Octaves(tuned.dims[i].value, query.dims[i].value);
    if (octaves > kFarthest) return std::nullopt;
    sum += octaves;
  }
  return sum;
}

bool SameDims(const TunedRecord& tuned, const RecordQuery& query) {
  for (size_t i = 0; i < tuned.dims.size(); ++i) {
    if (tuned.dims[i].dynamic != query.dims[i].dynamic) return false;
    if (!query.dims[i].dynamic && tuned.dims[i].value != query.dims[i].value) return false;
  }
  return true;
}

double Work(const TunedRecord& tuned) {
  double product = 1;
  for (const TunedDim& dim : tuned.dims) product *= static_cast<double>(dim.value);
  return product;
}

bool SameDevice(const TunedRecord& tuned, const RecordQuery& query) {
  if (!query.device_identity.empty()) return tuned.device_identity == query.device_identity;
  return absl::StrContains(absl::AsciiStrToLower(tuned.device),
                           absl::AsciiStrToLower(query.device_name));
}

using NameSet = absl::flat_hash_set<std::string_view>;

bool Mentions(const syntax::ExprRef& e, const NameSet& names) {
  if (!e) return false;
  return names.contains(e->text) ||
         absl::c_any_of(e->args, [&](const syntax::ExprRef& arg) { return Mentions(arg, names); });
}

// A default that is computed from dims differs between near dims, whose records are to be found.
NameSet ComparedParameters(const syntax::Program& program, const CompileRequest& request) {
  NameSet follow, compared;
  for (const syntax::Name& dim : program.dims) follow.insert(dim.text);
  for (const syntax::Param& p : program.params) {
    const bool given = absl::c_any_of(
        request.params, [&](const auto& param) { return param.first == p.name.text; });
    (!given && Mentions(p.default_value, follow) ? follow : compared).insert(p.name.text);
  }
  return compared;
}

}  // namespace

std::string DeviceIdentity(const DeviceInfo& device) {
  return absl::StrCat(device.name, ", ", device.units, " units, memory at ",
                      device.memory_clock_khz, " kHz");
}

std::string RecordScope(const syntax::Program& program, const Module& bound, const Backend& backend,
                        const Target& target, const CompileRequest& request) {
  std::string scope = absl::StrCat("record ", kFormat, "\npasses ", PassesHash(), "\ncodegen ",
                                   backend.CodegenIdentity(), "\ntarget ", target.identity,
                                   "\nshared_budget ", request.shared_budget, "\nparameters");
  const NameSet compared = ComparedParameters(program, request);
  for (const BoundParam& param : bound.params) {
    if (compared.contains(param.name)) absl::StrAppend(&scope, " ", param.name, "=", param.value);
  }
  return absl::StrCat(scope, "\n", syntax::Print(program));
}

std::vector<TunedDim> DimsOf(const syntax::Program& program, const Module& bound) {
  std::vector<TunedDim> dims;
  for (const syntax::Name& name : program.dims) {
    TunedDim& dim = dims.emplace_back(TunedDim{name.text, 0, true});
    for (const BoundParam& param : bound.params) {
      if (param.name != name.text) continue;
      dim.dynamic = !absl::SimpleAtoi(param.value, &dim.value);
    }
  }
  return dims;
}

Json RecordJson(const TunedRecord& tuned) {
  Json dims = Json::array();
  for (const TunedDim& dim : tuned.dims)
    dims.push_back({{"name", dim.name}, {"value", dim.value}, {"dynamic", dim.dynamic}});
  Json out = TimeJson(tuned.time);
  out.update({{"configuration", ConfigurationJson(tuned.configuration)},
              {"default", EntryJson(tuned.default_configuration, tuned.default_time)},
              {"runner_up", EntryJson(tuned.runner_up, tuned.runner_up_time)},
              {"dims", std::move(dims)},
              {"device", tuned.device},
              {"device_identity", tuned.device_identity},
              {"candidates", tuned.candidates},
              {"library", tuned.library}});
  return out;
}

Record ToRecord(const std::string& scope, const TunedRecord& tuned) {
  return {scope, KeyDocument(scope, tuned),
          RecordJson(tuned).dump(-1, ' ', false, Json::error_handler_t::replace)};
}

StatusOr<TunedRecord> ReadRecord(const Record& record) {
  try {
    TunedRecord tuned = Parse(Json::parse(record.value));
    // What it says of itself is what it is kept under.
    if (KeyDocument(record.scope_document, tuned) == record.key_document) return tuned;
    return absl::DataLossError("a tuned configuration is not that of its key");
  } catch (const Json::exception& e) {
    return absl::DataLossError(absl::StrCat("a tuned configuration cannot be read: ", e.what()));
  }
}

std::optional<FoundRecord> ChooseRecord(const std::vector<Record>& records,
                                        const RecordQuery& query) {
  std::optional<FoundRecord> best;
  // Nearest first, then made for just these dims, then most work; of equals the first, the newest.
  std::tuple<double, bool, double> best_rank;
  for (const Record& record : records) {
    StatusOr<TunedRecord> tuned = ReadRecord(record);
    if (!tuned.ok() || !SameDevice(*tuned, query)) continue;
    const std::optional<double> distance = Distance(*tuned, query);
    if (!distance) continue;
    const bool exact = SameDims(*tuned, query);
    const std::tuple rank(*distance, !exact, -Work(*tuned));
    if (best && rank >= best_rank) continue;
    best = FoundRecord{*std::move(tuned), exact};
    best_rank = rank;
  }
  return best;
}

}  // namespace tl
