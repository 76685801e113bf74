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
  std::size_t size = 8192;  // number of tokens, including special tokens and the 256 bytes
  WordPattern pattern = WordPattern::gpt2;
  /// Special tokens. They get the ids 0, 1, ... The text is split where they occur.
  std::vector<std::string> special = {};
  std::uint64_t least_count = 2;  // a pair that occurs fewer times is not merged
};

/// A byte-level byte-pair encoding: special tokens, the 256 bytes, and one token per merge.
struct TrainedBpe {
  WordPattern pattern;
  std::size_t special = 0;          // `tokens` begins with this number of special tokens
  std::vector<std::string> tokens;  // the bytes of each token
  std::vector<std::pair<TokenId, TokenId>> merges;
  std::size_t distinct_words = 0;
};

/// Trains a byte-pair encoding. Training starts from single bytes. It repeatedly merges the pair of
/// neighbouring tokens that occurs most often within the words of the text. If several pairs are
/// equally frequent, the pair with the lowest ids is merged. Training ends early if no pair occurs
/// least_count times. Throws an Error if the text is not UTF-8.
TrainedBpe train_bpe(std::string_view text, const BpeTraining& training);

/// The contents of the file tokenizer.json for a trained encoding.
Json tokenizer_json(const TrainedBpe& trained);

}  // namespace longhand::nn
