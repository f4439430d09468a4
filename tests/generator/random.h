// Random choices that are the same on every machine.
#ifndef TILEJIT_TESTS_GENERATOR_RANDOM_H_
#define TILEJIT_TESTS_GENERATOR_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tl::generator {

class Random {
 public:
  // Neighbouring seeds start far apart: the state steps by a constant.
  explicit Random(uint64_t seed) : state_(seed) { state_ = Bits() ^ seed << 32; }

  uint64_t Bits() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // lo … hi, both included.
  int64_t Range(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(Bits() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool Chance(int percent) { return Range(0, 99) < percent; }

  template <typename T>
  T Pick(std::initializer_list<T> list) {
    return list.begin()[Range(0, static_cast<int64_t>(list.size()) - 1)];
  }
  template <typename T>
  const T& Pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(Range(0, static_cast<int64_t>(list.size()) - 1))];
  }
  // Index of a weight, with that probability.
  int Weighted(std::initializer_list<int> weights) {
    int64_t sum = 0;
    for (int w : weights) sum += w;
    int64_t at = Range(0, sum - 1);
    int i = 0;
    for (int w : weights) {
      if (at < w) return i;
      at -= w;
      ++i;
    }
    return 0;
  }
  template <typename T>
  void Shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<size_t>(Range(0, static_cast<int64_t>(i) - 1))]);
    }
  }

 private:
  uint64_t state_;
};

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_RANDOM_H_
