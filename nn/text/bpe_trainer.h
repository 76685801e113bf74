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
  std::size_t size = 8192;  // number of tokens, including the special ones and the 256 bytes
  WordPattern pattern = WordPattern::gpt2;
  std::vector<std::string> special = {};  // tokens 0, 1, ...; the text is split at them
  std::uint64_t least_count = 2;          // rarer pairs are not merged
};

/// A byte-level byte-pair encoding: special tokens, the 256 bytes, and one token per merge.
struct TrainedBpe {
  WordPattern pattern;
  std::size_t special = 0;          // number of special tokens, which come first
  std::vector<std::string> tokens;  // bytes of each token, by id
  std::vector<std::pair<TokenId, TokenId>> merges;
  std::size_t distinct_words = 0;
};

/// Starts from bytes and repeatedly merges the two neighbouring tokens that occur most often in the
/// words of the text; of equally frequent pairs, the one with the lowest ids. Throws an Error if
/// the text is not UTF-8. Stops early if no pair is frequent enough.
TrainedBpe train_bpe(std::string_view text, const BpeTraining& training);

/// The tokenizer.json of a trained encoding.
Json tokenizer_json(const TrainedBpe& trained);

}  // namespace longhand::nn
