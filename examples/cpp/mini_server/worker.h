// One thread of the server: its own stream, its own tensors, its own measurements.
#ifndef TILEJIT_EXAMPLES_CPP_MINI_SERVER_WORKER_H_
#define TILEJIT_EXAMPLES_CPP_MINI_SERVER_WORKER_H_

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "device.h"
#include "requests.h"
#include "tl/tl.hpp"

namespace server {

struct Service {
  std::unique_ptr<Request> request;
  tilejit::Kernel kernel;
};

class Worker {
 public:
  // Room for requests of up to `tokens` tokens.
  Worker(memory* m, const tilejit::Device& device, const std::vector<Service>& services,
         int64_t tokens, uint32_t seed);

  // Answers `rounds` requests of each kind, of random lengths. The first and the last of each are
  // compared with the formula; throws when one is wrong.
  void Run(int rounds);

  // Microseconds from the launch to the result, for each service.
  const std::vector<std::vector<double>>& latencies() const { return latencies_; }

 private:
  struct Tensors {
    std::vector<Values> inputs;
    std::vector<Buffer> buffers;  // inputs, then the output
    std::vector<void*> pointers;
  };

  Tensors MakeTensors(memory* m, const Request& request);
  double Answer(size_t service, int64_t tokens);
  void Verify(size_t service, int64_t tokens) const;

  const tilejit::Device& device_;
  const std::vector<Service>& services_;
  int64_t tokens_;
  std::mt19937 random_;
  Stream stream_;
  std::vector<Tensors> tensors_;
  std::vector<std::vector<double>> latencies_;
};

}  // namespace server

#endif  // TILEJIT_EXAMPLES_CPP_MINI_SERVER_WORKER_H_
