// The C library functions that generated code may call: those of maths.cc, and those that LLVM's
// code generator calls by itself where the processor lacks an instruction.

#include <cmath>
#include <cstring>

#include "backends/cpu/maths.h"

namespace tl::cpu {
namespace {

struct Known {
  std::string_view name;
  void* address;
};

template <typename T>
void* Address(T (*function)(T)) {
  return reinterpret_cast<void*>(function);
}
template <typename T>
void* Address2(T (*function)(T, T)) {
  return reinterpret_cast<void*>(function);
}
template <typename T>
void* Address3(T (*function)(T, T, T)) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* LibraryFunction(std::string_view name) {
  static const Known kKnown[] = {
      {"memcpy", reinterpret_cast<void*>(&std::memcpy)},
      {"memmove", reinterpret_cast<void*>(&std::memmove)},
      {"memset", reinterpret_cast<void*>(&std::memset)},
      {"sinf", Address<float>(::sinf)},
      {"cosf", Address<float>(::cosf)},
      {"powf", Address2<float>(::powf)},
      {"exp", Address<double>(::exp)},
      {"exp2", Address<double>(::exp2)},
      {"log", Address<double>(::log)},
      {"log2", Address<double>(::log2)},
      {"tanh", Address<double>(::tanh)},
      {"erf", Address<double>(::erf)},
      {"sin", Address<double>(::sin)},
      {"cos", Address<double>(::cos)},
      {"pow", Address2<double>(::pow)},
      // Where LLVM has no code of its own for them.
      {"fmaxf", Address2<float>(::fmaxf)},
      {"fmax", Address2<double>(::fmax)},
      {"fminf", Address2<float>(::fminf)},
      {"fmin", Address2<double>(::fmin)},
      // Without SSE 4.1.
      {"floorf", Address<float>(::floorf)},
      {"floor", Address<double>(::floor)},
      {"ceilf", Address<float>(::ceilf)},
      {"ceil", Address<double>(::ceil)},
      {"roundevenf", Address<float>(::roundevenf)},
      {"roundeven", Address<double>(::roundeven)},
      // Without FMA.
      {"fmaf", Address3<float>(::fmaf)},
      {"fma", Address3<double>(::fma)},
  };
  for (const Known& known : kKnown) {
    if (known.name == name) return known.address;
  }
  return nullptr;
}

}  // namespace tl::cpu
