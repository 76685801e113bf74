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

/// The token ids of a text, stored in a file. Only the requested parts of the file are read, so the
/// text may be larger than memory. If the file is changed while it is open, an Error is thrown
/// (core/data_file.h).
///
/// If each byte is a token, the file is the text itself. Otherwise the file has a header of 64
/// bytes, followed by little-endian ids. Each id has two bytes, or four bytes if the vocabulary has
/// more than 65,536 tokens.
class TokenFile {
 public:
  /// The token file of a text in which each byte is a token.
  static TokenFile of_bytes(const std::filesystem::path& text);

  /// Everything that determines the contents of a token file, except the text.
  struct Key {
    std::uint32_t tokenizer = 0;  // result of tokenizer_sum()
    bool lossy = false;           // true: invalid UTF-8 becomes U+FFFD; false: it is an Error
    /// The text between two documents. If it is empty, the whole text is one document. Documents
    /// are encoded separately, and the tokens `end` replace each separator.
    std::string separator = {};
    std::vector<TokenId> end = {};

    // Checksum of `separator` and `end`; 0 if the separator is empty.
    std::uint32_t documents_sum() const;
  };
  /// Opens `file`, which contains the tokens of `text`. If the file is missing, or was made from
  /// another text or with another `key`, it is created first. If the creation is interrupted, no
  /// incomplete file is left. Throws an Error if the file is damaged.
  static TokenFile of_tokens(const std::filesystem::path& text, const Tokenizer& tokenizer,
                             const Key& key, const std::filesystem::path& file);

  std::uint64_t size() const { return size_; }
  std::int32_t operator[](std::uint64_t place) const;
  /// Reads out.size() tokens from index `begin` on.
  void read(std::uint64_t begin, std::span<std::int32_t> out) const;

 private:
  TokenFile(std::unique_ptr<const DataFile> file, std::uint64_t begin, std::size_t width)
      : file_(std::move(file)),
        begin_(begin),
        size_((file_->size() - begin) / width),
        width_(width) {}

  std::unique_ptr<const DataFile> file_;
  std::uint64_t begin_, size_;  // begin_: offset of the first id in bytes; size_: number of ids
  std::size_t width_;           // bytes per id
};

/// All files that read_tokenizer(path) reads.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& path);
/// CRC-32C of the contents of all files that read_tokenizer(path) reads.
std::uint32_t tokenizer_sum(const std::filesystem::path& path);

}  // namespace longhand::nn
