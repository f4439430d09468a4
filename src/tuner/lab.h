// What the search asks of its surroundings. Candidates are numbers: indices into the space's
// combinations.
#ifndef TILEJIT_TUNER_LAB_H_
#define TILEJIT_TUNER_LAB_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"

namespace tl {

// The outcome of an experiment. A fault is the candidate's own: it died, ran past its time or gave
// wrong results.
struct Measured {
  Status fault;
  double ns = 0;  // of one launch
};

// How long to measure.
struct Effort {
  double round_ns = 0;  // of launches
  // A candidate that a few launches, each by itself, show to be slower than this is not measured
  // further.
  double give_up_ns = 0;  // 0: never
};

// What has become of a candidate.
enum class Fate : uint8_t {
  kUntried,
  kRefused,       // it cannot be built for this target, and was not: too much shared memory ...
  kUnbuilt,       // the compiler failed
  kMeasured,      // still in the race
  kStopped,       // too slow to win; measured shortly
  kDisqualified,  // faulted, ran past its time, or gave wrong results
};

struct Progress {
  size_t candidate = 0;
  Fate fate = Fate::kUntried;
  const Status* fault = nullptr;  // of kRefused, kUnbuilt, kDisqualified
  double ns = 0;                  // of kMeasured and kStopped
  size_t done = 0;                // candidates of which something is known
};

class Lab {
 public:
  virtual ~Lab() = default;

  // Whether the candidate can be built at all, found without building it. Any thread.
  virtual Status Admit(size_t candidate) = 0;
  // Compiles one that was admitted. Any thread.
  virtual Status Build(size_t candidate) = 0;
  // Times a built one. A status that is not OK ends the search: the lab itself failed.
  virtual StatusOr<Measured> Time(size_t candidate, const Effort& effort) = 0;
  // Whether a built one gives right results, on data that it has not seen.
  virtual StatusOr<Measured> Validate(size_t candidate, uint64_t seed) = 0;

  // Since the search began.
  virtual double Seconds() = 0;
  virtual bool cancelled() = 0;
  virtual void Report(const Progress& progress) = 0;
};

}  // namespace tl

#endif  // TILEJIT_TUNER_LAB_H_
