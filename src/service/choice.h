// Where a kernel's tune parameters come from.
#ifndef TILEJIT_SERVICE_CHOICE_H_
#define TILEJIT_SERVICE_CHOICE_H_

#include <memory>
#include <string_view>

#include "service/record.h"

namespace tl {

struct Choice {
  enum class From : uint8_t {
    kDefault,  // the first combination that the program's conditions allow
    kCaller,   // the caller gave some; the rest as above
    kRecord,   // tuned for these dims on this device
    kNearest,  // tuned for dims that are near
  };
  From from = From::kDefault;
  std::shared_ptr<const TunedRecord> record;  // of the last two

  // In reports: "default", "caller", "record", "nearest record".
  std::string_view name() const;
};

inline std::string_view Choice::name() const {
  switch (from) {
    case From::kDefault:
      return "default";
    case From::kCaller:
      return "caller";
    case From::kRecord:
      return "record";
    case From::kNearest:
      break;
  }
  return "nearest record";
}

}  // namespace tl

#endif  // TILEJIT_SERVICE_CHOICE_H_
