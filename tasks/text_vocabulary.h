#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "nn/text/tokenizer.h"
#include "tasks/vocabulary.h"

namespace longhand::tasks {

/// 256 tokens, the bytes.
class ByteVocabulary final : public Vocabulary {
 public:
  std::int32_t size() const override { return 256; }
  std::string text(std::int32_t token) const override;
  std::optional<std::int32_t> find(std::string_view text) const override;
  using Vocabulary::encode;
  std::vector<std::int32_t> encode(std::string_view text) const override;
};

/// A tokenizer's tokens, as many as a model has: where those are more, the rest stand for no text;
/// where they are fewer, a text with one that is missing is refused.
class TokenizerVocabulary final : public Vocabulary {
 public:
  /// `size` 0: the tokenizer's.
  TokenizerVocabulary(std::shared_ptr<const nn::Tokenizer> tokenizer, std::int64_t size);

  const nn::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::int32_t size() const override { return size_; }
  std::string text(std::int32_t token) const override;
  std::optional<std::int32_t> find(std::string_view text) const override;
  using Vocabulary::encode;
  /// With what the tokenizer puts around a text, as a model was shown it.
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::vector<std::int32_t> encode_part(std::string_view text) const override;
  std::vector<std::int32_t> beginning() const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;

 private:
  std::vector<std::int32_t> encode(std::string_view text, bool around) const;

  std::shared_ptr<const nn::Tokenizer> tokenizer_;
  std::int32_t size_;
};

/// Whether a task's option `tokenizer` names files; `bytes` and `characters` need none.
inline bool names_tokenizer(std::string_view tokenizer) {
  return tokenizer != "bytes" && tokenizer != "characters";
}

/// The tokenizer of a file or folder; the same one for all who ask while one of them holds it and
/// the files are unchanged.
std::shared_ptr<const nn::Tokenizer> shared_tokenizer(const std::filesystem::path& path);

}  // namespace longhand::tasks
