// Fuzz target: parses any bytes as the config.json of a Hugging Face folder. They are refused, or
// the configuration of the model is the same after it is exported and read back.
#include "nn/models/hugging_face.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  nn::ForeignConfig foreign;
  if (!done_or_refused([&] { foreign = nn::parse_config(text, source); })) return 0;
  const std::string json = foreign.family->json(foreign.config).dump();
  const nn::ForeignConfig again = nn::parse_config(json, source);
  require(again.family->type == foreign.family->type, "an export is of the same family");
  require(again.family->json(again.config).dump() == json,
          "what is exported reads back as the same");
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  return mutate_json_input(data, size, room, seed);
}
