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

/// A text as the ids of its tokens, in a file of which only what is asked for is read: the text may
/// be larger than memory. An Error if the file changes while it is open (core/data_file.h).
///
/// Of bytes it is the text's own file. Otherwise it is made once: a header of 64 bytes, then ids of
/// two bytes each, or four where the vocabulary has more than 65,536 tokens, little-endian.
class TokenFile {
 public:
  /// Each byte of the text is a token.
  static TokenFile of_bytes(const std::filesystem::path& text);

  /// Everything that determines a token file, besides its text.
  struct Key {
    std::uint32_t tokenizer = 0;  // from tokenizer_sum()
    bool lossy = false;           // invalid UTF-8 was replaced by U+FFFD; otherwise it is an Error
    /// The text between two documents, which are encoded separately; empty: one document. It is
    /// replaced by the tokens `end`.
    std::string separator = {};
    std::vector<TokenId> end = {};

    std::uint32_t documents_sum() const;  // checksum of separator and end; 0 without a separator
  };
  /// Opens `file`. If it is missing, or has another text or other tokens, it is created first,
  /// completely or not at all. A damaged file is an Error.
  static TokenFile of_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer,
                             const Key& key, const std::filesystem::path& file);

  std::uint64_t size() const { return size_; }
  std::int32_t operator[](std::uint64_t place) const;
  /// Reads tokens from a place on, as many as fit in `out`.
  void read(std::uint64_t begin, std::span<std::int32_t> out) const;

 private:
  TokenFile(std::unique_ptr<const DataFile> file, std::uint64_t begin, std::size_t width)
      : file_(std::move(file)),
        begin_(begin),
        size_((file_->size() - begin) / width),
        width_(width) {}

  std::unique_ptr<const DataFile> file_;
  std::uint64_t begin_, size_;  // the byte of the first id, and how many there are
  std::size_t width_;           // bytes per id
};

/// A tokenizer's files, and the checksum of all of them: `path` is as read_tokenizer() has it.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);
std::uint32_t tokenizer_sum(const std::filesystem::path& path);

}  // namespace longhand::nn
