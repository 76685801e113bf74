#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// Reads a tokenizer.json, a folder that contains one, or a folder with vocab.json and merges.txt,
/// which is read as a GPT-2 tokenizer. An unsupported feature (a model other than BPE, an unknown
/// pattern, ...) throws an Error that names it.
Tokenizer read_tokenizer(const std::filesystem::path& path);

/// Parses the text of a tokenizer.json. Messages begin with `file`.
Tokenizer parse_tokenizer_json(std::string_view text, const std::string& file);
/// Parses the texts of vocab.json and merges.txt.
Tokenizer parse_vocabulary_and_merges(std::string_view vocabulary, std::string_view merges,
                                      const std::string& folder);

}  // namespace longhand::nn
