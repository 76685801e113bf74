#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/merge_table.h"
#include "nn/text/token_table.h"

namespace longhand::nn {

/// Which bytes may come to lie in one token when they stand next to each other: (left, right) is
/// in it if some merge joins a token that ends in `left` to one that begins with `right`, or if
/// `right` continues a character. Where a pair is not in it a text may be cut, and no merge
/// notices.
class JoinedBytes {
 public:
  JoinedBytes();
  bool operator()(char left, char right) const { return joined_[place(left, right)]; }
  void insert(char left, char right) { joined_.set(place(left, right)); }
  void insert_all() { joined_.set(); }

 private:
  static std::size_t place(char left, char right) {
    return std::size_t{static_cast<unsigned char>(left)} << 8 | static_cast<unsigned char>(right);
  }
  std::bitset<std::size_t{1} << 16> joined_;
};

/// Makes a MergeTable of merges that come by name, the first to be done first. Vocabularies have
/// half a million of them, in tables larger than a CPU's caches: they are looked up many at once.
class MergeBuilder {
 public:
  /// The tokens must outlive it.
  explicit MergeBuilder(const TokenTable& tokens) : tokens_(tokens) {}

  /// The next merge, by the bytes of its two tokens. An Error, here or later, if one of them or
  /// both joined are no token.
  void add(std::string_view left, std::string_view right);
  /// What was added, which is then gone from here.
  MergeTable table();
  /// Of what was added, as of table(). In a vocabulary of characters tokens <0xNN> stand for bytes,
  /// which their names do not show: with a merge of one of these all bytes are joined.
  const JoinedBytes& joined() const { return joined_; }

 private:
  struct Found {
    TokenId left, right, whole;
  };
  void find_waiting();
  TokenId whole_of(std::string_view left, std::string_view right);

  static constexpr std::size_t at_once = 512;
  const TokenTable& tokens_;
  std::string pool_;  // the bytes of those that wait to be found: left, right, left, ...
  std::vector<std::size_t> ends_;  // of each in the pool
  std::vector<std::string_view> names_;
  std::vector<TokenId> ids_;
  std::vector<Found> found_;
  TokenId last_whole_ = 0;
  std::string whole_name_;
  JoinedBytes joined_;
};

}  // namespace longhand::nn
