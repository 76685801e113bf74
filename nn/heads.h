#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/attention.h"

namespace longhand::nn {

enum class HeadKind {
  softmax,  // core/contract/attention.h
  fal,      // core/contract/fal.h
  chacal,   // core/contract/chacal.h
};
std::string_view name_of(HeadKind kind);

/// Heads of one kind and width in an attention layer.
struct HeadGroup {
  HeadKind kind = HeadKind::softmax;
  std::int64_t heads = 1, width = 0;

  std::int64_t columns() const { return heads * width; }
  friend bool operator==(const HeadGroup&, const HeadGroup&) = default;
};

/// The heads of a layer, group after group. The fused projection has, for each group in turn, its
/// queries, its keys and its values: [q | k | v] of columns() each. So queries and keys lie side by
/// side, and so do keys and values.
using HeadList = std::vector<HeadGroup>;

/// "softmax:3,fal:1": heads that share `width` evenly; "softmax:1x704,fal:1x64": with a width of
/// their own. Heads without one share what the others leave.
HeadList parse_heads(std::string_view text, std::int64_t width);
std::string text_of(const HeadList& heads);  // every width written out
/// "softmax:8;chacal:8": lists of layers, from the first on.
std::vector<HeadList> parse_layers(std::string_view text, std::int64_t width);
std::string text_of(const std::vector<HeadList>& layers);

std::int64_t columns(const HeadList& heads);  // of the layer's output; the projection has 3 times
std::int64_t chacal_columns(const HeadList& heads);  // of those, ChaCAL's
std::int64_t chacal_heads(const HeadList& heads);

/// Where a group's queries begin in the projection, and its output in the layer's.
struct HeadPlace {
  HeadGroup group;
  std::int64_t projection = 0, output = 0;
};
std::vector<HeadPlace> places(const HeadList& heads);

/// Keys and values that lie in a cache: [rows, 2 columns], for each group in turn its keys and its
/// values. The queries are the last positions of its segments (core/contract/heads.h).
struct CachedHeads {
  Tensor data = {};
  Segments segments = {};
  /// For ChaCAL heads, their outputs at earlier positions, [rows, their columns] group after group;
  /// the new ones are put there.
  Tensor outputs = {};
};

/// What a layer's heads share beside their columns.
struct HeadOptions {
  Var gamma = {};  // of ChaCAL heads: [1], or one for each in the list's order; empty: 0.9
  Temper temper = Temper::none;  // of softmax and ChaCAL heads
  Var beta = {};
  std::int64_t window = 0;           // of softmax heads
  std::optional<double> scale = {};  // of softmax and ChaCAL heads; none: 1 / sqrt(width)
};
/// The scores of a group's heads.
ScoreVars scores_of(HeadKind kind, const HeadVars& q, const HeadVars& k, const Segments& queries,
                    const Segments& keys, const HeadOptions& options);

/// What heads of all kinds make of the projection `qkv` [tokens, 3 columns]: [tokens, columns], one
/// record. Keys and values are the projection's own, or those of a cache. `matches`, when given,
/// gets one entry a group: a FAL group's matches (i32 [tokens, heads]), else an empty tensor.
Var mixed_attention(const Var& qkv, const HeadList& heads, const Segments& segments,
                    const CachedHeads& cached = {}, std::vector<Tensor>* matches = nullptr,
                    const HeadOptions& options = {});

}  // namespace longhand::nn
