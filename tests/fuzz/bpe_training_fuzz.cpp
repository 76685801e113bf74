// Fuzz target that trains a BPE tokenizer. The first line of the input contains the settings: which
// pattern splits words, the vocabulary size, the minimum count of a merged pair, and a special
// token. The other bytes are the training text. The text is refused, or the trained tokenizer can
// be written and read back, and then encodes and decodes the text without loss.
#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "nn/text/bpe_trainer.h"
#include "nn/text/encoder.h"
#include "nn/text/tokenizer_json.h"
#include "tests/fuzz/promise.h"

using namespace longhand;
using namespace longhand::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  constexpr std::array patterns{nn::WordPattern::gpt2, nn::WordPattern::llama3,
                                nn::WordPattern::qwen2, nn::WordPattern::digits_gpt2,
                                nn::WordPattern::spaces};
  nn::BpeTraining training{.size = std::size_t{256} + data[1],
                           .pattern = patterns[data[0] % patterns.size()],
                           .least_count = 1u + data[2] % 4};
  const std::size_t end = std::min(input.find('\n', 3), size);
  if (end > 3 || data[2] % 2 == 1) training.special.emplace_back(input.substr(3, end - 3));
  const std::string_view text = input.substr(std::min(end + 1, size));
  std::optional<nn::TrainedBpe> trained;
  if (!done_or_refused([&] { trained = nn::train_bpe(text, training); }, "")) return 0;
  require(trained->tokens.size() <= std::max<std::size_t>(training.size, trained->special + 256),
          "there are no more tokens than asked for");
  const std::string json = nn::tokenizer_json(*trained).dump();
  done_or_refused([&] {
    const nn::Tokenizer tokenizer = nn::parse_tokenizer_json(json, source);
    nn::Encoder encoder(tokenizer);
    require(tokenizer.decode(encoder.encode(text)) == text, "a text comes back from its tokens");
  });
  return 0;
}
