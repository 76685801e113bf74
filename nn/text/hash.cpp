#include "nn/text/hash.h"

#include <random>

namespace longhand::nn {
namespace {

HashSecrets draw() {
  std::random_device device;
  const auto word = [&] {
    const std::uint64_t high = device();
    return (high << 32 | device()) | 1;
  };
  return {.first = word(), .second = word()};
}

}  // namespace

const HashSecrets hash_secrets = draw();

}  // namespace longhand::nn
