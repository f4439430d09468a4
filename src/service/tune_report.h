// What tuning tells: JSON of the whole search.
#ifndef TILEJIT_SERVICE_TUNE_REPORT_H_
#define TILEJIT_SERVICE_TUNE_REPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "service/tune.h"
#include "service/tune_space.h"

namespace tl {

TunedTime SpreadOf(const std::vector<double>& times);

// "0.1.0"
std::string LibraryVersion();

// "refused", "unbuilt", "measured", "stopped", "disqualified"; "untried".
std::string_view FateName(Fate fate);

std::string TuneReport(std::string_view program, const RequestedSpace& space,
                       const TuneResult& result);

}  // namespace tl

#endif  // TILEJIT_SERVICE_TUNE_REPORT_H_
