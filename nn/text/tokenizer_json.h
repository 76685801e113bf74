#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// Reads a tokenizer.json, a folder that contains a tokenizer.json, or a folder with vocab.json and
/// merges.txt, which are read as a GPT-2 tokenizer. If the tokenizer has an unsupported feature,
/// such as a model other than BPE or an unknown pattern, throws an Error that names the feature.
Tokenizer read_tokenizer(const std::filesystem::path& path);

/// Parses the text of a tokenizer.json. Error messages begin with `file`.
Tokenizer parse_tokenizer_json(std::string_view text, const std::string& file);
/// Parses the texts of vocab.json and merges.txt.
Tokenizer parse_vocabulary_and_merges(std::string_view vocabulary, std::string_view merges,
                                      const std::string& folder);

}  // namespace longhand::nn
