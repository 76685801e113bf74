#include "nn/text/merge_builder.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand::nn {
namespace {

/// True for a name of the form <0xNN>, which is a token for the single byte NN.
bool names_a_byte(std::string_view name) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return name.size() == 6 && name.starts_with("<0x") && hex(name[3]) && hex(name[4]) &&
         name[5] == '>';
}

}  // namespace

JoinedBytes::JoinedBytes() {
  for (int left = 0; left < 256; ++left) {
    for (int right = 0; right < 256; ++right) {
      const char next = static_cast<char>(right);
      if (continues_utf8(next)) insert(static_cast<char>(left), next);
    }
  }
}

void MergeBuilder::add(std::string_view left, std::string_view right) {
  pool_.append(left);
  ends_.push_back(pool_.size());
  pool_.append(right);
  ends_.push_back(pool_.size());
  if (ends_.size() == 2 * at_once) find_waiting();
}

void MergeBuilder::find_waiting() {
  names_.clear();
  for (std::size_t begin = 0; const std::size_t end : ends_) {
    names_.push_back(std::string_view(pool_).substr(begin, end - begin));
    begin = end;
  }
  ids_.resize(names_.size());
  tokens_.find_all(names_, ids_);
  for (std::size_t i = 0; i < names_.size(); i += 2) {
    const std::string_view left = names_[i], right = names_[i + 1];
    for (const std::size_t k : {i, i + 1}) {
      LONGHAND_CHECK(ids_[k] != TokenTable::none, "merge ", found_.size(), ": ", quote(names_[k]),
                     " is not a token");
    }
    const TokenId whole = whole_of(left, right);
    LONGHAND_CHECK(whole != TokenTable::none && !left.empty() && !right.empty(), "merge ",
                   found_.size(), ": the text of ", quote(left), " followed by ", quote(right),
                   " is not a token");
    found_.push_back({ids_[i], ids_[i + 1], whole});
    joined_.insert(left.back(), right.front());
    if (names_a_byte(left) || names_a_byte(right)) joined_.insert_all();
  }
  pool_.clear();
  ends_.clear();
}

/// The id of the token whose bytes are those of `left` followed by those of `right`, or
/// TokenTable::none. Most vocabularies sort merges by the ids of the resulting tokens, and several
/// merges may result in the same token. The result of the previous merge and the id after it are
/// therefore tried first.
TokenId MergeBuilder::whole_of(std::string_view left, std::string_view right) {
  const auto is = [&](TokenId id) {
    const std::string_view name = tokens_.bytes(id);
    return name.size() == left.size() + right.size() && name.starts_with(left) &&
           name.ends_with(right) && tokens_.findable(id);
  };
  if (is(last_whole_)) return last_whole_;
  if (is(last_whole_ + 1)) return ++last_whole_;
  whole_name_.assign(left).append(right);
  const TokenId whole = tokens_.find(whole_name_).value_or(TokenTable::none);
  if (whole != TokenTable::none) last_whole_ = whole;
  return whole;
}

MergeTable MergeBuilder::table() {
  find_waiting();
  MergeTable table(found_.size());
  constexpr std::size_t ahead = 16;
  for (std::size_t rank = 0; rank < found_.size(); ++rank) {
    const Found& next = found_[std::min(rank + ahead, found_.size() - 1)];
    table.prefetch(next.left, next.right);
    const auto& [left, right, whole] = found_[rank];
    table.add(left, right, {static_cast<std::uint32_t>(rank), whole});
  }
  found_.clear();
  return table;
}

}  // namespace longhand::nn
