// One scalar while a program is interpreted.
#ifndef TILEJIT_BACKENDS_REFERENCE_VALUE_H_
#define TILEJIT_BACKENDS_REFERENCE_VALUE_H_

#include <cstdint>

#include "base/dtype.h"
#include "ir/expr.h"

namespace tl::reference {

enum class Mode : uint8_t {
  kRounded,  // f32 arithmetic in f32, elements rounded to their dtype: what a backend computes
  kExact,    // everything in float64, nothing rounded, with an error bound beside every value
};

// Floats of every width in f, ints and bools in i.
union Cell {
  double f;
  int64_t i;
};

struct Value {
  Cell c{.i = 0};
  // kExact: how far a legitimate implementation may be from c. For a bool, anything but 0 means
  // that it may come out either way.
  double err = 0;
  // The tile or tensor whose unwritten element this value stems from.
  BufferId undefined = kNoId;
};

inline Value IntOf(int64_t i) { return Value{.c = {.i = i}}; }
inline Value FloatOf(double f) { return Value{.c = {.f = f}}; }

inline BufferId FirstUndefined(const Value& a, const Value& b) {
  return a.undefined != kNoId ? a.undefined : b.undefined;
}

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_VALUE_H_
