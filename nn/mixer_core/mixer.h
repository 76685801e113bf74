#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/heads.h"
#include "autograd/reinforce.h"
#include "core/contract/attention.h"
#include "nn/input.h"
#include "nn/layers/lora.h"
#include "nn/layers/rope.h"
#include "nn/module.h"
#include "nn/options.h"

namespace longhand::nn {

/// The position of a mixer's heads within their layer.
struct MixerPlace {
  std::int64_t projection = 0;    // first column in the layer's projection
  std::int64_t output = 0;        // first column in the layer's output
  std::int64_t heads_before = 0;  // number of heads of the same kind in earlier mixers of the layer
  std::int64_t heads_alike = 0;   // number of heads of the same kind in all mixers of the layer
  std::int64_t index = 0;         // index among the layer's mixers
};

/// The data that a mixer stores about the tokens read so far: one row per token, or one state of
/// fixed size per sequence.
struct MixerCache {
  Tensor keys_values = {};  // [rows, columns of keys and values]
  Tensor outputs = {};      // [rows, columns()], for mixers whose outputs depend on earlier outputs
  // Numbers other than keys, values and outputs, such as the logarithms of forget gates: [rows,
  // cached_numbers()], of the parameters' type.
  Tensor numbers = {};
  // States of fixed size: [sequences, n] for each n in cached_memories(), initially 0.
  std::vector<Tensor> memories = {};
};

/// Intermediate results of a mixer in one pass, for inspection. A mixer sets at most one of the
/// members `scores`, `weights` and `selected`.
struct MixerView {
  /// Attention scores. The weights are computed from the scores only when requested.
  std::optional<Scores> scores = {};
  AttentionRule rule = {};  // how attention weights are computed from the scores
  std::optional<Reinforcement> reinforcement = {};  // amounts that reinforced heads add to weights
  Tensor gamma = {};  // gamma of ChaCAL heads: one number, or one per head
  // Attention weights, laid out as in AttentionWeights (core/contract/attention.h); may be empty.
  Tensor weights = {};
  // Index of the key that each head selected, i32 [tokens, heads]; -1: no key. May be empty.
  Tensor selected = {};

  /// The attention weights of all heads and sequences, without the amounts that reinforced heads
  /// add; empty if the mixer has no attention weights.
  Tensor all_weights() const;
};

/// One pass of a layer over the tokens of a batch.
struct MixerPass {
  const Var& projection;  // [tokens, columns of all mixers], already rotated by turn()
  const Input& input;     // the tokens' positions and sequences
  RopeTables& tables;
  /// The layer's output, [tokens, columns of all mixers]; each mixer writes its own columns.
  const Tensor& y;
  // `cache` is the mixer's cache. `cached` contains the cached sequences, including the new tokens.
  // Both pointers are null except in decoding.
  const MixerCache* cache = nullptr;
  const Segments* cached = nullptr;
  MixerView* view = nullptr;  // unless null, receives the mixer's intermediate results
  // Input of the projection; some mixers also multiply it by matrices of their own.
  const Var* x = nullptr;
};

/// The scope (prefix of parameter names) of a layer, and parameters that several mixers of the
/// layer use.
class MixerScope {
 public:
  MixerScope(Scope scope, std::int64_t width, bool rotary, double epsilon)
      : scope_(std::move(scope)), width_(width), rotary_(rotary), epsilon_(epsilon) {}

  /// A parameter that the mixers of the layer share. The first call creates the parameter.
  Parameter shared(std::string_view name, const Shape& shape, double initial);
  /// A tensor of constants with the type of the parameters.
  Tensor constants(std::span<const double> values) const;
  std::int64_t width() const { return width_; }  // width of the residual stream
  bool rotary() const { return rotary_; }        // true if the model uses rotary positions
  double epsilon() const { return epsilon_; }    // epsilon of the model's norms
  const Scope& scope() const { return scope_; }

 private:
  Scope scope_;
  std::int64_t width_;
  bool rotary_;
  double epsilon_;
  std::vector<std::pair<std::string, Parameter>> shared_;
};

/// A trained number and its name in reports.
struct LearnedNumber {
  std::string_view name;
  std::optional<std::int64_t> head = {};  // index of the head; empty: shared by the whole layer
  double value = 0;
};

/// The heads of a layer that share one mechanism, which moves information between tokens. A layer's
/// mixing consists of several mixers side by side. Each mechanism is a file in nn/mixers/. Layers
/// use a mechanism only through this interface.
class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual std::unique_ptr<Mixer> clone() const = 0;
  virtual std::string_view kind() const = 0;
  virtual void declare(Options&) {}
  virtual void check() const {}  // throws an Error if the options are invalid

  std::int64_t heads = 1;
  /// Number of heads of keys and values. It must divide `heads`. Each key head is shared by
  /// (heads / key_heads) successive query heads.
  std::int64_t key_heads = 1;
  std::int64_t width = 0;  // width of a head

  /// projection_columns() is the number of the mixer's columns in the layer's projection, and
  /// columns() is the number of its columns in the layer's output.
  virtual std::int64_t projection_columns() const = 0;
  virtual std::int64_t columns() const { return heads * width; }
  /// The named parts of the mixer's projection, such as the queries, to which LoRA can be applied.
  /// Columns are counted from the mixer's first column.
  virtual std::vector<Projected> projected() const { return {}; }
  /// cached_columns() is the number of key and value columns that are cached per token.
  /// caches_outputs() is true if the outputs are cached as well.
  virtual std::int64_t cached_columns() const = 0;
  virtual bool caches_outputs() const { return false; }
  /// Number of further entries that are cached per token, in addition to keys, values and outputs.
  /// These entries have the type of the parameters.
  virtual std::int64_t cached_numbers() const { return 0; }
  /// The number of entries per sequence of each cached state of fixed size.
  virtual std::vector<std::int64_t> cached_memories() const { return {}; }
  /// Throws an Error if decoding is impossible because a token's output depends on later tokens.
  virtual void check_decoding() const {}
  /// Maximum number of tokens of a sequence; no value: no limit.
  virtual std::optional<std::int64_t> most_tokens() const { return std::nullopt; }
  /// True if the operations of a training step depend only on the shape of the batch
  /// (nn/training/step_shape.h), and the operations of decoding do not depend on the contents of
  /// the cache (nn/models/cached_decoder.h). If false, neither training nor decoding is recorded as
  /// a CUDA graph.
  virtual bool repeats() const { return true; }

  /// True if the output depends on Batch::reference, a list of pairs of tokens of which the first
  /// should attend to the second.
  virtual bool wants_reference() const { return false; }

  /// Creates the mixer's own parameters. Called after the matrices of the block have been created.
  virtual void build(MixerScope& layer, const MixerPlace& place) = 0;
  /// Creates position tables for sequences of at most `longest` tokens.
  virtual void prepare(RopeTables&, Backend&, DType, std::int64_t /*longest*/) const {}
  /// Rotates the mixer's own columns of the projection by the tokens' positions, in place. This
  /// function is called for all mixers of a layer before any of them computes its output.
  virtual Var turn(Var projection, const Input&, RopeTables&) const { return projection; }
  /// Computes the mixer's columns of the layer's output from its columns of pass.projection, such
  /// as queries, keys and values. In decoding, also writes the data of the new tokens to the cache.
  /// The returned function is the backward pass, which writes the gradient of the mixer's columns
  /// of pass.projection. The function is empty if no gradient is required.
  virtual HeadsBackward forward(const MixerPass& pass) const = 0;

  /// The mixer's own parameters. If one of them requires a gradient, the layer runs the backward
  /// functions of its mixers even if the projection requires no gradient.
  virtual std::vector<Var> learned() const { return {}; }
  /// Parameters that this mixer adds to a trained model, in the same way as LoRA adds matrices.
  /// They are trained while the rest of the model is frozen. Loading a model that lacks these
  /// parameters does not change their values.
  virtual std::vector<Parameter> added() const { return {}; }
  virtual std::vector<LearnedNumber> learned_numbers() const { return {}; }
  /// Number of operations of a training step per pair of a query and a key that the query sees.
  virtual double operations_of_pair() const = 0;
  /// Number of operations of a training step per token. operations_of_pair() and the products with
  /// the matrices of Mixing are not included.
  virtual double operations_of_token() const { return 0; }
};

/// A mixer of class M with `count` heads of this width, such as heads_of<FalHeads>(2, 16).
template <std::derived_from<Mixer> M>
M heads_of(std::int64_t count, std::int64_t width) {
  M mixer;
  mixer.heads = mixer.key_heads = count;
  mixer.width = width;
  return mixer;
}

/// A mixer with value semantics: copying it clones the mixer.
class AnyMixer {
 public:
  AnyMixer(std::unique_ptr<Mixer> mixer) : mixer_(std::move(mixer)) {}  // NOLINT: implicit
  template <std::derived_from<Mixer> M>
  AnyMixer(const M& mixer) : mixer_(mixer.clone()) {}  // NOLINT: implicit
  AnyMixer(const AnyMixer& other) : mixer_(other.mixer_->clone()) {}
  AnyMixer(AnyMixer&&) noexcept = default;
  AnyMixer& operator=(AnyMixer other) noexcept {
    mixer_ = std::move(other.mixer_);
    return *this;
  }
  Mixer& operator*() const { return *mixer_; }
  Mixer* operator->() const { return mixer_.get(); }

 private:
  std::unique_ptr<Mixer> mixer_;
};

/// A kind of mixer. A file NAME.cpp in nn/mixers/ defines `constinit const MixerKind NAME_mixer`,
/// which is initialized at compile time.
struct MixerKind {
  std::string_view name;
  std::unique_ptr<Mixer> (*make)();
};
std::span<const MixerKind* const> mixer_kinds();  // sorted by name

template <class M>
constexpr MixerKind mixer_kind(std::string_view name) {
  return {name, [] { return std::unique_ptr<Mixer>(std::make_unique<M>()); }};
}

}  // namespace longhand::nn
