#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// A tokenizer as files on disk have it: a tokenizer.json, or a folder that holds one, or a
/// folder with vocab.json and merges.txt, which are GPT-2's. What a file asks for that
/// is not done here (another model than BPE, another pattern, ...) is an Error that names it.
Tokenizer read_tokenizer(const std::filesystem::path& path);

/// The text of a tokenizer.json; `file` begins the messages.
Tokenizer parse_tokenizer_json(std::string_view text, const std::string& file);
/// The texts of vocab.json and merges.txt.
Tokenizer parse_vocabulary_and_merges(std::string_view vocabulary, std::string_view merges,
                                      const std::string& folder);

}  // namespace longhand::nn
