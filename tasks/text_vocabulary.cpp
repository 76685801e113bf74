#include "tasks/text_vocabulary.h"

#include <map>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "nn/text/encoder.h"
#include "nn/text/token_file.h"
#include "nn/text/tokenizer_json.h"

namespace longhand::tasks {

std::string ByteVocabulary::text(std::int32_t token) const {
  LONGHAND_CHECK(token >= 0 && token < 256, "vocabulary: expected a byte from 0 to 255, got ",
                 token);
  return std::string(1, static_cast<char>(token));
}

std::optional<std::int32_t> ByteVocabulary::find(std::string_view text) const {
  if (text.size() != 1) return std::nullopt;
  return static_cast<unsigned char>(text.front());
}

std::vector<std::int32_t> ByteVocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

TokenizerVocabulary::TokenizerVocabulary(std::shared_ptr<const nn::Tokenizer> tokenizer,
                                         std::int64_t size)
    : tokenizer_(std::move(tokenizer)) {
  size_ =
      static_cast<std::int32_t>(size == 0 ? static_cast<std::int64_t>(tokenizer_->size()) : size);
}

std::string TokenizerVocabulary::text(std::int32_t token) const {
  LONGHAND_CHECK(token >= 0 && token < size_, "vocabulary: expected a token from 0 to ", size_ - 1,
                 ", got ", token);
  const auto id = static_cast<nn::TokenId>(token);
  return tokenizer_->parts().tokens.has(id) ? tokenizer_->token_bytes(id) : std::string();
}

std::optional<std::int32_t> TokenizerVocabulary::find(std::string_view text) const {
  const auto id = tokenizer_->parts().tokens.find(text);
  return id ? std::optional(static_cast<std::int32_t>(*id)) : std::nullopt;
}

std::vector<std::int32_t> TokenizerVocabulary::encode(std::string_view text) const {
  return encode(text, true);
}

std::vector<std::int32_t> TokenizerVocabulary::encode_part(std::string_view text) const {
  return encode(text, false);
}

std::vector<std::int32_t> TokenizerVocabulary::beginning() const {
  return {tokenizer_->parts().before.begin(), tokenizer_->parts().before.end()};
}

std::vector<std::int32_t> TokenizerVocabulary::encode(std::string_view text, bool around) const {
  const std::vector<nn::TokenId> ids =
      nn::Encoder(*tokenizer_).encode(text, {.around = around, .ranges = false});
  for (const nn::TokenId id : ids) {
    LONGHAND_CHECK(id < static_cast<nn::TokenId>(size_), "text: expected token ids below ", size_,
                   ", the vocabulary size of the model, got ", id);
  }
  return {ids.begin(), ids.end()};
}

std::string TokenizerVocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::vector<nn::TokenId> ids;
  for (const std::int32_t token : tokens) {
    const auto id = static_cast<nn::TokenId>(token);
    if (tokenizer_->parts().tokens.has(id)) ids.push_back(id);
  }
  return tokenizer_->decode(ids);
}

std::shared_ptr<const nn::Tokenizer> shared_tokenizer(const std::filesystem::path& path) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::uint32_t>, std::weak_ptr<const nn::Tokenizer>> known;
  LONGHAND_CHECK(
      std::filesystem::exists(path), path.string(),
      ": expected `bytes`, a tokenizer.json or a folder with one, but there is no such file or "
      "folder");
  const auto absolute = std::filesystem::absolute(path).lexically_normal();
  const std::lock_guard lock(mutex);
  auto& place = known[{absolute.string(), nn::tokenizer_sum(path)}];
  auto tokenizer = place.lock();
  if (!tokenizer) {
    tokenizer = std::make_shared<const nn::Tokenizer>(nn::read_tokenizer(path));
    place = tokenizer;
  }
  return tokenizer;
}

}  // namespace longhand::tasks
