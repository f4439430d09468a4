// The kinds of request that the server answers: which kernel, which tensors, what the answer must
// be.
#ifndef TILEJIT_EXAMPLES_CPP_MINI_SERVER_REQUESTS_H_
#define TILEJIT_EXAMPLES_CPP_MINI_SERVER_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tl/tl.hpp"

namespace server {

using Values = std::vector<double>;

// bf16 is the upper half of an f32.
uint16_t ToBf16(double value);
double FromBf16(uint16_t bits);

class Request {
 public:
  virtual ~Request() = default;
  virtual std::string name() const = 0;
  virtual tilejit::Program program() const = 0;
  // Elements of each tensor of a request for so many tokens, inputs first, the output last.
  virtual std::vector<int64_t> Sizes(int64_t tokens) const = 0;
  // The same tensors as the kernel takes them.
  virtual std::vector<tilejit::TensorView> Views(const std::vector<void*>& data,
                                                 int64_t tokens) const = 0;
  virtual std::vector<tilejit::Scalar> Scalars() const { return {}; }
  // The formula, in double precision.
  virtual Values Expected(const std::vector<Values>& inputs, int64_t tokens) const = 0;
};

std::vector<std::unique_ptr<Request>> AllRequests();

}  // namespace server

#endif  // TILEJIT_EXAMPLES_CPP_MINI_SERVER_REQUESTS_H_
