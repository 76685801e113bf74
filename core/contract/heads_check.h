#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contract/scores.h"
#include "core/error.h"

namespace longhand {

/// Checks the arguments of one operation on attention heads: first the inputs, then the outputs.
/// The class Arguments does the same for whole tensors. Several Heads may share a tensor, but the
/// columns of an output must not overlap the columns of any other argument.
class HeadArguments {
 public:
  HeadArguments(std::string_view op, const Heads& q);

  /// Requires `count` heads, at least `rows` rows, and the same element type as `q`, the argument
  /// of the constructor. If `width` is negative, the heads may have any width.
  void in(std::string_view name, const Heads& heads, std::int64_t rows, std::int64_t count,
          std::int64_t width);
  void out(std::string_view name, const Heads& heads, std::int64_t rows, std::int64_t count,
           std::int64_t width);
  void out(std::string_view name, const HeadsTarget& target, const Heads& like);
  void in(std::string_view name, const Tensor& tensor, const Shape& shape, DType type);
  void out(std::string_view name, const Tensor& tensor, const Shape& shape, DType type);
  void segments(const Segments& queries, const Segments& keys, std::int64_t key_rows, bool backward,
                bool causal);
  /// Checks q and k, which must have the same width, and their segments.
  void queries_and_keys(const Heads& q, const Heads& k, const Segments& queries,
                        const Segments& keys, bool backward, bool causal = true);
  /// Checks all members of `scores`, including q and k.
  void scores(const Scores& scores, bool backward);
  /// Requires a causal mask. Only softmax attention works without one.
  void causal(const Scores& scores) const;
  /// Checks `earlier`, the cached outputs at the positions before the first query. They are
  /// required if there are fewer queries than keys.
  void earlier(const Heads& earlier, const Segments& queries, const Segments& keys,
               std::int64_t heads, std::int64_t width);
  /// Requires as many queries as keys in every segment.
  void same_tokens(const Segments& queries, const Segments& keys) const;
  void out(const ScoreTargets& targets, const Scores& scores);
  /// Checks the target that receives the gradient of the tensor `like`. It is an Error if there is
  /// a target but `like` is empty.
  void out(std::string_view name, const Target& target, const Tensor& like);

  DType type() const { return type_; }
  DType master() const { return master_type(type_); }

  template <class... Parts>
  void require(bool condition, std::string_view name, const Parts&... parts) const {
    LONGHAND_CHECK(condition, op_, ": ", name, ": ", parts...);
  }

 private:
  struct Place {
    std::string_view name;
    const std::byte *begin, *end;  // memory of the tensor that contains the heads
    std::int64_t columns, first, last;
  };
  void same_backend(std::string_view name, const Tensor& tensor) const;
  void place(std::string_view name, const Heads& heads, bool output);

  std::string_view op_;
  const Backend* backend_ = nullptr;
  DType type_{};
  std::vector<Place> places_;
};

}  // namespace longhand
