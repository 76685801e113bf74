#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "nn/text/token_table.h"
#include "nn/text/word_scanner.h"

namespace longhand::nn {

struct BpeTraining {
  std::size_t size = 8192;  // tokens wanted, with the special ones and the 256 bytes
  WordPattern pattern = WordPattern::gpt2;
  std::vector<std::string> special = {};  // tokens 0, 1, ...; the text is cut at them
  std::uint64_t least_count = 2;          // pairs met less often are not merged
};

/// A byte-level byte-pair encoding: special tokens, the 256 bytes, and one token for each merge.
struct TrainedBpe {
  WordPattern pattern;
  std::size_t special = 0;          // how many of the first tokens are special
  std::vector<std::string> tokens;  // their bytes, by id
  std::vector<std::pair<TokenId, TokenId>> merges;
  std::size_t distinct_words = 0;
};

/// Starting from bytes, joins again and again the two neighbouring tokens that stand together most
/// often in the words of the text; of several such pairs, the one with the lowest ids. An Error if
/// the text is no UTF-8. Stops early when no pair is frequent enough.
TrainedBpe train_bpe(std::string_view text, const BpeTraining& training);

/// The tokenizer.json of a trained encoding.
Json tokenizer_json(const TrainedBpe& trained);

}  // namespace longhand::nn
