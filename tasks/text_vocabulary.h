#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "nn/text/tokenizer.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// A vocabulary with one token per byte.
class ByteVocabulary final : public Vocabulary {
 public:
  std::int32_t size() const override { return 256; }
  std::string text(std::int32_t token) const override;
  std::optional<std::int32_t> find(std::string_view text) const override;
  using Vocabulary::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;
};

/// The tokens of a tokenizer, for a model whose vocabulary may have another size. If the model has
/// more tokens, the additional tokens have no text. If the model has fewer tokens, encoding throws
/// an Error when the text needs a missing token.
class TokenizerVocabulary final : public Vocabulary {
 public:
  /// If `size` is 0, the vocabulary has the size of the tokenizer.
  TokenizerVocabulary(std::shared_ptr<const nn::Tokenizer> tokenizer, std::int64_t size);

  const nn::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::int32_t size() const override { return size_; }
  std::string text(std::int32_t token) const override;
  std::optional<std::int32_t> find(std::string_view text) const override;
  using Vocabulary::encode;
  /// The result includes the tokens that the tokenizer adds around a text.
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::vector<std::int32_t> encode_part(std::string_view text) const override;
  std::vector<std::int32_t> beginning() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  std::vector<std::int32_t> encode(std::string_view text, bool around) const;

  std::shared_ptr<const nn::Tokenizer> tokenizer_;
  std::int32_t size_;
};

/// True if the value of a task's option `tokenizer` is a path, not `bytes`, `characters` or
/// `spaces`.
inline bool names_tokenizer(std::string_view tokenizer) {
  return tokenizer != "bytes" && tokenizer != "characters" && tokenizer != "spaces";
}

/// The tokenizer of a file or folder. As long as a caller uses it and the files are unchanged, all
/// further callers receive the same object.
std::shared_ptr<const nn::Tokenizer> shared_tokenizer(const std::filesystem::path& path);

}  // namespace longhand::tasks
