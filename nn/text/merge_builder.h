#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nn/text/merge_table.h"
#include "nn/text/token_table.h"

namespace longhand::nn {

/// The pairs of adjacent bytes between which a text must not be split. (left, right) is such a pair
/// if a merge joins a token that ends in `left` and a token that begins with `right`, or if `right`
/// continues a UTF-8 character. Splitting a text between other bytes does not affect merges.
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

/// Builds a MergeTable. Merges are added in the order of their priority, each by the bytes of its
/// two tokens. Vocabularies have up to half a million merges, and their tables are larger than the
/// CPU's caches. Tokens are therefore looked up in batches, so that memory accesses overlap.
class MergeBuilder {
 public:
  /// `tokens` must outlive the builder.
  explicit MergeBuilder(const TokenTable& tokens) : tokens_(tokens) {}

  /// Adds the next merge, given the bytes of its two tokens. If `left`, `right` or their
  /// concatenation is not a token, an Error is thrown, here or by a later call.
  void add(std::string_view left, std::string_view right);
  /// Returns the table of all added merges, and leaves the builder empty.
  MergeTable table();
  /// The pairs of adjacent bytes that the added merges can join. In a vocabulary for
  /// WordPattern::spaces, a token <0xNN> represents the byte NN, but its name does not contain this
  /// byte. If a merge contains such a token, all pairs of bytes therefore count as joined.
  const JoinedBytes& joined() const { return joined_; }

 private:
  struct Found {
    TokenId left, right, whole;
  };
  void find_waiting();
  TokenId whole_of(std::string_view left, std::string_view right);

  static constexpr std::size_t at_once = 512;
  const TokenTable& tokens_;
  std::string pool_;  // bytes of the merges that are not yet looked up: left, right, left, ...
  std::vector<std::size_t> ends_;  // where each `left` and each `right` ends in pool_
  std::vector<std::string_view> names_;
  std::vector<TokenId> ids_;
  std::vector<Found> found_;
  TokenId last_whole_ = 0;
  std::string whole_name_;
  JoinedBytes joined_;
};

}  // namespace longhand::nn
