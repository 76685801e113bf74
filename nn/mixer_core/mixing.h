#pragma once

#include <functional>

#include "core/segments.h"
#include "nn/input.h"
#include "nn/layers/linear.h"
#include "nn/mixer_core/mixer_list.h"

namespace longhand::nn {

/// The part of a block that moves information between tokens. One projection computes the input
/// columns of all mixers. The mixers write their outputs side by side, and an output projection
/// combines these outputs.
class Mixing {
 public:
  struct Settings {
    std::int64_t width = 0;  // width of the residual stream
    bool projection_bias = true, out_bias = true;
    bool rotary = true;     // use rotary positions in mixers that support them
    double epsilon = 1e-5;  // epsilon of the norms
  };
  Mixing() = default;
  Mixing(const Scope& scope, const Settings& settings, const MixerList& mixers, Initial projection,
         Initial out);
  /// Creates the mixers' own parameters.
  void build();

  /// The caches of one layer, one per mixer, and the cached sequences.
  struct Cache {
    std::span<const MixerCache> mixers;
    const Segments& keys;
  };
  using Show = std::function<void(std::string_view part, const Tensor& x)>;
  struct Pass {
    const Input& input;
    RopeTables& tables;
    std::optional<Cache> cache = {};
    Show show = {};                           // if set, called with intermediate results
    std::vector<MixerView>* views = nullptr;  // if not null, receives one view per mixer
  };
  /// Returns the result of mixing the tokens of x, plus `residual`.
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
