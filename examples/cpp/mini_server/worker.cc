#include "worker.h"

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>

namespace server {

Worker::Worker(memory* m, const tilejit::Device& device, const std::vector<Service>& services,
               int64_t tokens, uint32_t seed)
    : device_(device), services_(services), tokens_(tokens), random_(seed), stream_(m) {
  for (const Service& service : services) tensors_.push_back(MakeTensors(m, *service.request));
  latencies_.resize(services.size());
}

Worker::Tensors Worker::MakeTensors(memory* m, const Request& request) {
  Tensors out;
  const std::vector<int64_t> sizes = request.Sizes(tokens_);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    // The output begins as NaN, so that what is not written shows.
    std::vector<uint16_t> bits(sizes[i], 0x7fff);
    if (i + 1 < sizes.size()) {
      Values values;
      for (uint16_t& b : bits) values.push_back(FromBf16(b = ToBf16(uniform(random_))));
      out.inputs.push_back(std::move(values));
    }
    out.buffers.emplace_back(m, bits.data(), bits.size() * sizeof(bits[0]));
    out.pointers.push_back(out.buffers.back().get());
  }
  return out;
}

double Worker::Answer(size_t service, int64_t tokens) {
  const Service& s = services_[service];
  tilejit::LaunchOptions options;
  options.stream = stream_.get();
  options.scalars = s.request->Scalars();
  const auto start = std::chrono::steady_clock::now();
  s.kernel.Launch(device_, s.request->Views(tensors_[service].pointers, tokens), options);
  stream_.Wait();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

void Worker::Verify(size_t service, int64_t tokens) const {
  const Request& request = *services_[service].request;
  const Tensors& t = tensors_[service];
  const Values expected = request.Expected(t.inputs, tokens);
  std::vector<uint16_t> bits(request.Sizes(tokens_).back());
  t.buffers.back().Download(bits.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    // A bf16 has 8 bits; so have the weights of the attention.
    const double error = std::fabs(FromBf16(bits[i]) - expected[i]);
    if (!(error <= std::fabs(expected[i]) / 128 + 1.0 / 128))
      throw std::runtime_error(request.name() + " of " + std::to_string(tokens) +
                               " tokens is wrong at " + std::to_string(i));
  }
}

void Worker::Run(int rounds) {
  std::uniform_int_distribution<int64_t> length(1, tokens_);
  for (int round = 0; round < rounds; ++round) {
    for (size_t service = 0; service < services_.size(); ++service) {
      const int64_t tokens = length(random_);
      latencies_[service].push_back(Answer(service, tokens));
      if (round == 0 || round + 1 == rounds) Verify(service, tokens);
    }
  }
}

}  // namespace server
