#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/data_file.h"
#include "nn/text/tokenizer.h"

namespace longhand::nn {

/// A text as token ids, stored in a file. Only requested parts of the file are read, so the text
/// may be larger than memory. If the file changes while it is open, an Error is thrown
/// (core/data_file.h).
///
/// If tokens are bytes, the file is the text itself. Otherwise the file is created once: a header
/// of 64 bytes, then little-endian ids of two bytes each, or four if the vocabulary has more than
/// 65,536 tokens.
class TokenFile {
 public:
  /// Each byte of the text is a token.
  static TokenFile of_bytes(const std::filesystem::path& text);

  /// Everything that determines the contents of a token file, except the text.
  struct Key {
    std::uint32_t tokenizer = 0;  // result of tokenizer_sum()
    bool lossy = false;           // replace invalid UTF-8 by U+FFFD; if false, it is an Error
    /// The text between two documents. Documents are encoded separately, and each separator is
    /// replaced by the tokens `end`. If empty, the whole text is one document.
    std::string separator = {};
    std::vector<TokenId> end = {};

    // Checksum of separator and end tokens; 0 without a separator.
    std::uint32_t documents_sum() const;
  };
  /// Opens `file`. If it is missing or was made for another text or key, it is first created,
  /// completely or not at all. A damaged file throws an Error.
  static TokenFile of_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer,
                             const Key& key, const std::filesystem::path& file);

  std::uint64_t size() const { return size_; }
  std::int32_t operator[](std::uint64_t place) const;
  /// Reads tokens from index `begin` on, as many as `out` has room for.
  void read(std::uint64_t begin, std::span<std::int32_t> out) const;

 private:
  TokenFile(std::unique_ptr<const DataFile> file, std::uint64_t begin, std::size_t width)
      : file_(std::move(file)),
        begin_(begin),
        size_((file_->size() - begin) / width),
        width_(width) {}

  std::unique_ptr<const DataFile> file_;
  std::uint64_t begin_, size_;  // offset of the first id, and number of ids
  std::size_t width_;           // bytes per id
};

/// The paths of a tokenizer's files, and one checksum over all of these files. read_tokenizer()
/// accepts the same `path`.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);
std::uint32_t tokenizer_sum(const std::filesystem::path& path);

}  // namespace longhand::nn
