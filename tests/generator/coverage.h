// Which operation has met which element type.
#ifndef TILEJIT_TESTS_GENERATOR_COVERAGE_H_
#define TILEJIT_TESTS_GENERATOR_COVERAGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "ir/module.h"

namespace tl::generator {

class Coverage {
 public:
  void Add(const Module& module);
  // A row an operation, a column a type; '.' where the language does not allow the pair.
  std::string Table() const;
  // Pairs that the language allows and that no program had.
  std::vector<std::string> Missing() const;

 private:
  std::map<std::pair<std::string, DType>, int64_t> counts_;
};

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_COVERAGE_H_
