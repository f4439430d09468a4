// Random numbers by position: element i of stream s is the same however the elements are visited.
#ifndef TILEJIT_BACKENDS_REFERENCE_RANDOM_H_
#define TILEJIT_BACKENDS_REFERENCE_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tl::reference {

// The finalizer of splitmix64.
inline uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream)
      : base_(Mix(seed ^ Mix(stream + 0x9e3779b97f4a7c15u))) {}

  uint64_t Bits(uint64_t i) const { return Mix(base_ + (i + 1) * 0x9e3779b97f4a7c15u); }
  // [0, 1)
  double Unit(uint64_t i) const { return static_cast<double>(Bits(i) >> 11) * 0x1p-53; }
  // Below n, n >= 1; the bias of 2^-64·n does not matter here.
  uint64_t Below(uint64_t i, uint64_t n) const {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Bits(i)) * n) >> 64);
  }
  // Mean 0, deviation 1, by Box and Muller.
  double Normal(uint64_t i) const {
    const double u = 1 - Unit(2 * i), v = Unit(2 * i + 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  uint64_t base_;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_RANDOM_H_
