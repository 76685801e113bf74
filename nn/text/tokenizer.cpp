#include "nn/text/tokenizer.h"

#include <algorithm>
#include <cstdio>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand::nn {
namespace {

std::string byte_token_text(unsigned byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

}  // namespace

std::string replaced_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string all;
  for (std::size_t at = 0; (at = text.find(from)) != std::string_view::npos;) {
    all.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return all.append(text);
}

std::string_view TokenizerParts::normalize(std::string_view text, std::string& buffer,
                                           std::vector<Rewritten>* changes) const {
  if (nfc) return to_nfc(text, buffer, changes);
  if (changes) changes->clear();
  if (pattern != WordPattern::spaces) return text;
  std::size_t found = text.find(space_mark);
  if (found == std::string_view::npos) return text;
  buffer.clear();
  std::size_t copied = 0;
  for (; found != std::string_view::npos; found = text.find(space_mark, copied)) {
    buffer += text.substr(copied, found - copied);
    if (changes) {
      changes->push_back({buffer.size(), buffer.size() + 1, found, found + space_mark.size()});
    }
    buffer += ' ';
    copied = found + space_mark.size();
  }
  buffer += text.substr(copied);
  return buffer;
}

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_(std::move(parts)), added_(parts_.added), added_late_(parts_.added_late) {
  for (const auto* const added : {&parts_.added, &parts_.added_late}) {
    for (const AddedToken& token : *added) {
      LONGHAND_CHECK(parts_.tokens.has(token.id), "added token ", quote(token.content),
                     ": expected the id of a token in the vocabulary, got ", token.id);
      if (!token.special) continue;
      special_.resize(std::max<std::size_t>(special_.size(), token.id + 1));
      special_[token.id] = true;
    }
  }
  for (const auto* const around : {&parts_.before, &parts_.after}) {
    for (const TokenId id : *around) {
      LONGHAND_CHECK(
          parts_.tokens.has(id),
          "tokens that are added to each text (post_processor): expected ids of tokens in "
          "the vocabulary, got ",
          id);
    }
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    ascii_tokens_[byte] =
        parts_.tokens.find(std::string(1, static_cast<char>(byte))).value_or(none);
  }
  ascii_merges_.assign(std::size_t{128} * 128, MergeTable::none);
  for (unsigned a = 0; a < 128; ++a) {
    for (unsigned b = 0; b < 128; ++b) {
      if (ascii_tokens_[a] == none || ascii_tokens_[b] == none) continue;
      ascii_merges_[a * 128 + b] = parts_.merges.find(ascii_tokens_[a], ascii_tokens_[b]);
    }
  }
  if (byte_level()) {
    byte_tokens_ = ascii_tokens_;
    return;
  }
  LONGHAND_CHECK(!parts_.whole_words && !parts_.nfc,
                 "vocabulary of characters: expected a tokenizer without NFC normalizer and "
                 "without \"ignore_merges\"");
  byte_of_.assign(parts_.tokens.size(), -1);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = parts_.tokens.find(byte_token_text(byte));
    LONGHAND_CHECK(found, "vocabulary of characters: expected the token ", byte_token_text(byte),
                   ", got none");
    byte_tokens_[byte] = *found;
    byte_of_[*found] = static_cast<std::int16_t>(byte);
  }
}

std::string Tokenizer::token_bytes(TokenId id) const {
  if (!byte_level() && id < byte_of_.size() && byte_of_[id] >= 0) {
    return std::string(1, static_cast<char>(byte_of_[id]));
  }
  return std::string(parts_.tokens.bytes(id));
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool with_special) const {
  std::string out, byte_run;
  const auto end_run = [&] {
    if (find_broken_utf8(byte_run) == std::string::npos) {
      out += byte_run;
    } else {
      for (std::size_t i = 0; i < byte_run.size(); ++i) out += "\xef\xbf\xbd";
    }
    byte_run.clear();
  };
  for (const TokenId id : ids) {
    LONGHAND_CHECK(parts_.tokens.has(id), "expected token ids below ", size(), ", got ", id);
    if (!with_special && special(id)) continue;
    if (!byte_level() && byte_of_[id] >= 0) {
      byte_run += static_cast<char>(byte_of_[id]);
      continue;
    }
    end_run();
    out += parts_.tokens.bytes(id);
  }
  end_run();
  return byte_level() ? replace_broken_utf8(out) : out;
}

}  // namespace longhand::nn
