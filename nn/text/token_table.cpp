#include "nn/text/token_table.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {

TokenTable::TokenTable(std::size_t ids)
    : entries_(ids, {absent, 0}),
      findable_(ids),
      slots_(std::bit_ceil(2 * ids + 1), {free, 0}),
      mask_(slots_.size() - 1) {}

void TokenTable::add(TokenId id, std::string_view bytes, Found found) {
  LONGHAND_CHECK(id < entries_.size(), "expected token ids below ", entries_.size(), ", got ", id);
  LONGHAND_CHECK(entries_[id].begin == absent, "two tokens have the id ", id);
  LONGHAND_CHECK(pool_.size() + bytes.size() < absent,
                 "expected tokens of less than 4 GiB in total");
  if (found == Found::yes) {
    const std::uint64_t hash = hash_of(bytes);
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t at = hash & mask_;
    for (; slots_[at].id != free; at = (at + 1) & mask_) {
      LONGHAND_CHECK(slots_[at].tag != tag || this->bytes(slots_[at].id) != bytes,
                     "the tokens with the ids ", slots_[at].id, " and ", id, " have the same text ",
                     quote(bytes));
    }
    slots_[at] = {id, tag};
    findable_[id] = true;
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
  return find(bytes, hash_of(bytes));
}

std::optional<TokenId> TokenTable::find(std::string_view bytes, std::uint64_t hash) const {
  const auto tag = static_cast<std::uint32_t>(hash >> 32);
  for (std::size_t at = hash & mask_; slots_[at].id != free; at = (at + 1) & mask_) {
    if (slots_[at].tag == tag && this->bytes(slots_[at].id) == bytes) return slots_[at].id;
  }
  return std::nullopt;
}

void TokenTable::find_all(std::span<const std::string_view> wanted, std::span<TokenId> ids) const {
  constexpr std::size_t at_once = 32;
  std::array<std::uint64_t, at_once> hashes{};
  for (std::size_t begin = 0; begin < wanted.size(); begin += at_once) {
    const std::size_t count = std::min(at_once, wanted.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(wanted[begin + i]);
      __builtin_prefetch(&slots_[hashes[i] & mask_]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[hashes[i] & mask_];
      if (slot.id != free) __builtin_prefetch(&entries_[slot.id]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Slot& slot = slots_[hashes[i] & mask_];
      if (slot.id != free) __builtin_prefetch(pool_.data() + entries_[slot.id].begin);
    }
    for (std::size_t i = 0; i < count; ++i) {
      ids[begin + i] = find(wanted[begin + i], hashes[i]).value_or(none);
    }
  }
}

}  // namespace longhand::nn
