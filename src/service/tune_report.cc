#include "service/tune_report.h"

#include <algorithm>

#include "tuner/statistics.h"

namespace tl {
namespace {

using Json = nlohmann::json;

// One that was tried.
Json CandidateJson(const Configuration& configuration, const Candidate& candidate) {
  Json out = {{"configuration", Json::object()}, {"fate", FateName(candidate.fate)}};
  for (const auto& [name, value] : configuration) out["configuration"][name] = value;
  if (candidate.ns > 0) out["median_ns"] = candidate.ns;
  if (candidate.validated) out["validated"] = true;
  if (!candidate.fault.ok()) out["reason"] = std::string(candidate.fault.message());
  return out;
}

}  // namespace

TunedTime SpreadOf(const std::vector<double>& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {Median(times), *least, *most};
}

std::string LibraryVersion() { return TL_LIBRARY_VERSION; }

std::string_view FateName(Fate fate) {
  switch (fate) {
    case Fate::kUntried:
      return "untried";
    case Fate::kRefused:
      return "refused";
    case Fate::kUnbuilt:
      return "unbuilt";
    case Fate::kMeasured:
      return "measured";
    case Fate::kStopped:
      return "stopped";
    case Fate::kDisqualified:
      break;
  }
  return "disqualified";
}

std::string TuneReport(std::string_view program, const RequestedSpace& space,
                       const TuneResult& result) {
  const Outcome& o = result.outcome;
  Json report = RecordJson(result.tuned);
  report.update({{"kernel", program},
                 {"space", result.space},
                 {"whole_space", space.complete},
                 {"refused", o.refused},
                 {"built", o.built},
                 {"measured", o.measured},
                 {"stopped", o.stopped},
                 {"disqualified", o.disqualified},
                 {"recorded", result.recorded},
                 {"seconds", result.seconds}});
  report["tried"] = Json::array();
  for (size_t i = 0; i < o.candidates.size(); ++i) {
    if (o.candidates[i].fate == Fate::kUntried) continue;
    report["tried"].push_back(CandidateJson(space.configuration(i), o.candidates[i]));
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tl
