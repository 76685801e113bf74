#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>
#include "tests/check.h"

#include "core/safetensors.h"
#include "nn/batch.h"
#include "tests/paths.h"

/// Files of tests/golden: models with what another program computes for them.
namespace longhand {

inline SafetensorsFile open_golden(const std::string& name) {
  return SafetensorsFile::open(std::string(test_data) + "/golden/" + name + ".safetensors");
}

/// The batch that its numbers are for.
inline nn::Batch batch_in(const SafetensorsFile& golden) {
  nn::Batch batch;
  batch.tokens = golden.to_i32("golden.tokens");
  batch.lengths = golden.to_i32("golden.lengths");
  batch.targets = golden.to_i32("golden.targets");
  return batch;
}

inline std::vector<double> floats_in(const SafetensorsFile& golden, const std::string& name) {
  const auto bytes = golden.at(name).bytes;
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return {floats.begin(), floats.end()};
}

/// The largest difference, relative to the largest entry expected.
inline double distance(const std::vector<double>& expected, const std::vector<double>& got) {
  BOOST_REQUIRE(expected.size() == got.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(expected[i] - got[i]);
    worst = difference <= worst ? worst : difference;  // NaN gets through
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace longhand
