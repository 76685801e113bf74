#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/safetensors.h"
#include "nn/batch.h"
#include "tests/contents.h"
#include "tests/distance.h"
#include "tests/paths.h"

/// Reads the files of tests/golden. They contain models and texts, and the outputs that other
/// programs computed for them.
namespace longhand {

inline SafetensorsFile open_golden(const std::string& name) {
  return SafetensorsFile::open(std::string(test_data) + "/golden/" + name + ".safetensors");
}

/// The batch for which a file of tests/golden contains another program's results.
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

inline Json golden_json(const std::string& name) {
  return Json::parse(contents(std::string(test_data) + "/golden/" + name + ".json")).value();
}

}  // namespace longhand
