#pragma once

#include <functional>

#include "core/segments.h"
#include "nn/input.h"
#include "nn/layers/linear.h"
#include "nn/mixing/mixer_list.h"

namespace longhand::nn {

/// The part of a block in which tokens read each other: one projection with the columns of all its
/// mixers, the mixers side by side, and a product that brings their outputs back to the stream.
class Mixing {
 public:
  struct Settings {
    std::int64_t width = 0;  // of the stream
    bool projection_bias = true, out_bias = true;
    bool rotary = true;     // mixers that can turn do
    double epsilon = 1e-5;  // of the norms
  };
  Mixing() = default;
  Mixing(const Scope& scope, const Settings& settings, const MixerList& mixers, Initial projection,
         Initial out);
  /// Makes the mixers' own parameters.
  void build();

  /// A pass's cache: one of each mixer's, and the sequences whose keys they hold.
  struct Cache {
    std::span<const MixerCache> mixers;
    const Segments& keys;
  };
  using Show = std::function<void(std::string_view part, const Tensor& x)>;
  struct Pass {
    const Input& input;
    RopeTables& tables;
    std::optional<Cache> cache = {};
    Show show = {};                           // told what is computed on the way
    std::vector<MixerView>* views = nullptr;  // gets one of each mixer
  };
  /// mixing(x) + residual
  Var operator()(const Var& x, const Var& residual, const Pass& pass) const;

  void prepare(RopeTables& tables, std::int64_t longest) const;
  std::vector<MixerCache> make_cache(DType type, std::int64_t rows, std::int64_t sequences) const;
  std::vector<LearnedNumber> learned_numbers() const;

  const MixerList& mixers() const { return mixers_; }
  const std::vector<MixerPlace>& places() const { return places_; }

  Linear projection, out;

 private:
  std::optional<Scope> scope_;
  Settings settings_;
  MixerList mixers_;
  std::vector<MixerPlace> places_;
};

}  // namespace longhand::nn
