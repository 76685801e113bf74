// Fuzz target: parses any bytes as a GGUF file. They are refused, or all tensors lie within the
// file. If the file describes a model, its configuration, its tokenizer and its weights are each
// read or refused.
#include <algorithm>
#include <span>
#include <vector>

#include "core/block_matrix.h"
#include "nn/models/gguf.h"
#include "nn/models/hugging_face.h"
#include "nn/text/tokenizer_json.h"
#include "tests/fuzz/gguf_mutator.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  GgufFile file;
  if (!done_or_refused([&] { file = GgufFile::parse(input, source); })) return 0;
  for (const GgufFile::Entry& entry : file.entries()) {
    require(entry.bytes.data() >= input.data() &&
                entry.bytes.data() + entry.bytes.size() <= input.data() + input.size(),
            "a tensor lies inside the file");
    require(file.find(entry.name) == &entry, "a tensor is found by its name");
    std::vector<double> numbers(
        static_cast<std::size_t>(std::min<std::int64_t>(entry.shape.size(), 600)));
    decode_gguf(*entry.type, entry.bytes, entry.shape.size() - std::ssize(numbers), numbers);
  }
  done_or_refused([&] { nn::parse_config(nn::gguf_config(file).dump(), source); });
  done_or_refused([&] { nn::parse_tokenizer_json(nn::gguf_tokenizer(file), source); });
  done_or_refused([&] {
    const auto weights =
        nn::gguf_weights(std::make_shared<const GgufFile>(GgufFile::parse(input, source)));
    for (const char* name : {"model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                             "model.layers.0.input_layernorm.weight"}) {
      if (const auto blocks = weights->find_blocks(name)) {
        require(blocks->shape.rank() == 2 &&
                    std::ssize(blocks->bytes) ==
                        blocks->shape.rows() * row_bytes(*blocks->type, blocks->shape.columns()),
                "blocks have the bytes of all rows");
        for (const std::int64_t row : blocks->rows) {
          require(row >= 0 && row < blocks->shape.rows(), "a row of blocks lies in the matrix");
        }
      }
      const auto tensor = weights->find(name);
      if (!tensor) continue;
      std::vector<double> numbers(
          static_cast<std::size_t>(std::min<std::int64_t>(tensor->shape.size(), 600)));
      tensor->read(0, numbers);
    }
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t room, unsigned seed) {
  return mutate_gguf_input(data, size, room, seed);
}
