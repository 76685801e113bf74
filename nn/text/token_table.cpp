#include "nn/text/token_table.h"

#include <bit>

#include "core/error.h"
#include "core/quote.h"
#include "nn/text/hash.h"

namespace longhand::nn {

TokenTable::TokenTable(std::size_t ids)
    : entries_(ids, {absent, 0}),
      slots_(std::bit_ceil(2 * ids + 1), {free, 0}),
      mask_(slots_.size() - 1) {}

void TokenTable::add(TokenId id, std::string_view bytes, Found found) {
  LONGHAND_CHECK(id < entries_.size(), "expected token ids below ", entries_.size(), ", got ", id);
  LONGHAND_CHECK(entries_[id].begin == absent, "two tokens have the id ", id);
  LONGHAND_CHECK(pool_.size() + bytes.size() < absent, "expected tokens of less than 4 GiB");
  if (found == Found::yes) {
    const std::uint64_t hash = hash_of(bytes);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & mask_;
    for (; slots_[at].id != free; at = (at + 1) & mask_) {
      LONGHAND_CHECK(slots_[at].tag != tag || this->bytes(slots_[at].id) != bytes, "the tokens ",
                     slots_[at].id, " and ", id, " are both ", quote(bytes));
    }
    slots_[at] = {id, tag};
  }
  entries_[id] = {static_cast<std::uint32_t>(pool_.size()),
                  static_cast<std::uint32_t>(bytes.size())};
  pool_ += bytes;
}

std::string_view TokenTable::bytes(TokenId id) const {
  if (!has(id)) return {};
  return std::string_view(pool_).substr(entries_[id].begin, entries_[id].length);
}

std::optional<TokenId> TokenTable::find(std::string_view bytes) const {
  const std::uint64_t hash = hash_of(bytes);
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask_; slots_[at].id != free; at = (at + 1) & mask_) {
    if (slots_[at].tag == tag && this->bytes(slots_[at].id) == bytes) return slots_[at].id;
  }
  return std::nullopt;
}

std::optional<TokenId> TokenTable::find_joined(TokenId left, TokenId right) const {
  const std::string_view a = bytes(left), b = bytes(right);
  char small[128];
  if (a.size() + b.size() <= sizeof small) {
    a.copy(small, a.size());
    b.copy(small + a.size(), b.size());
    return find({small, a.size() + b.size()});
  }
  return find(std::string(a).append(b));
}

}  // namespace longhand::nn
