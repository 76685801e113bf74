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

/// Position of a mixer's heads in their layer.
struct MixerPlace {
  std::int64_t projection = 0;    // first column in the layer's projection
  std::int64_t output = 0;        // first column in the layer's output
  std::int64_t heads_before = 0;  // heads of its kind in earlier mixers of the layer
  std::int64_t heads_alike = 0;   // heads of its kind in all mixers of the layer
  std::int64_t index = 0;         // index among the layer's mixers
};

/// The cache of a mixer: what it stores of the tokens it has read, as rows per token, or per
/// sequence of any length.
struct MixerCache {
  Tensor keys_values = {};  // [rows, keys and values]
  Tensor outputs = {};      // [rows, columns()], for mixers whose outputs depend on earlier outputs
  Tensor numbers = {};      // [rows, cached_numbers()], of the parameters' type
  // [sequences, n] with n from cached_memories(), initially 0; for states of fixed size
  std::vector<Tensor> memories = {};
};

/// The intermediate results of a pass, for inspection. A mixer fills in one of these, or none.
struct MixerView {
  std::optional<Scores> scores = {};                // the inputs of P, which is computed on request
  std::optional<Reinforcement> reinforcement = {};  // amounts added to P
  Tensor gamma = {};                                // of ChaCAL: one number, or one per head
  // P in the layout of AttentionWeights (core/contract/attention.h); may be empty
  Tensor weights = {};
  // i32 [tokens, heads], the key that each head selected, -1 for none; may be empty
  Tensor selected = {};

  /// P of all heads and sequences, without reinforcement; empty if the mixer has none.
  Tensor all_weights() const;
};

/// One pass of a layer over the tokens of a batch.
struct MixerPass {
  const Var& projection;  // [tokens, columns of all mixers], after turn()
  const Input& input;     // positions and sequences of the tokens
  RopeTables& tables;
  const Tensor& y;  // [tokens, columns of all mixers]; a mixer writes its own columns
  // In decoding: the mixer's cache and its sequences, including room for these tokens.
  const MixerCache* cache = nullptr;
  const Segments* cached = nullptr;
  MixerView* view = nullptr;  // filled if not null
  const Var* x = nullptr;     // input of the projection, for mixers with products of their own
};

/// Shared by the mixers of a layer: its scope, and parameters that several of them use.
class MixerScope {
 public:
  MixerScope(Scope scope, std::int64_t width, bool rotary, double epsilon)
      : scope_(std::move(scope)), width_(width), rotary_(rotary), epsilon_(epsilon) {}

  /// A parameter of the layer. The first mixer that requests it creates it.
  Parameter shared(std::string_view name, const Shape& shape, double initial);
  /// Constant numbers of the parameters' type.
  Tensor constants(std::span<const double> values) const;
  std::int64_t width() const { return width_; }  // width of the stream
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

/// A trained number, with the name that reports use.
struct LearnedNumber {
  std::string_view name;
  std::optional<std::int64_t> head = {};  // empty: shared by the whole layer
  double value = 0;
};

/// Some heads of one mechanism that moves information between tokens. Mixers side by side form a
/// layer's mixing. A mechanism is one file in nn/mixers/; nothing else in nn names it.
class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual std::unique_ptr<Mixer> clone() const = 0;
  virtual std::string_view kind() const = 0;
  virtual void declare(Options&) {}
  virtual void check() const {}  // throws an Error if the options are invalid

  std::int64_t heads = 1;
  std::int64_t key_heads =
      1;  // a divisor of heads: query head h reads key head h / (heads / key_heads)
  std::int64_t width = 0;  // width of a head

  /// Number of columns in the layer's projection, and in its output.
  virtual std::int64_t projection_columns() const = 0;
  virtual std::int64_t columns() const { return heads * width; }
  /// The named projections among its columns of the projection, counted from its own first column.
  virtual std::vector<Projected> projected() const { return {}; }
  /// Columns of keys and values that it caches per token, and whether it also caches its outputs.
  virtual std::int64_t cached_columns() const = 0;
  virtual bool caches_outputs() const { return false; }
  /// Additional numbers that it caches per token, in the parameters' type.
  virtual std::int64_t cached_numbers() const { return 0; }
  /// Numbers that it stores per sequence: the size of each state tensor.
  virtual std::vector<std::int64_t> cached_memories() const { return {}; }
  /// Throws an Error if the model cannot decode because a token's output depends on later tokens.
  virtual void check_decoding() const {}
  /// Maximum tokens of a sequence; empty: no limit.
  virtual std::optional<std::int64_t> most_tokens() const { return std::nullopt; }
  /// True if it runs the same operations for every batch of a shape (nn/training/step_shape.h), and
  /// in decoding for any contents of the cache (nn/models/cached_decoder.h). Otherwise neither is
  /// recorded.
  virtual bool repeats() const { return true; }

  /// True if reference pairs change its output.
  virtual bool wants_reference() const { return false; }

  /// Creates its own parameters, which follow the matrices of its block.
  virtual void build(MixerScope& layer, const MixerPlace& place) = 0;
  /// Makes tables for sequences of up to `longest` tokens.
  virtual void prepare(RopeTables&, Backend&, DType, std::int64_t /*longest*/) const {}
  /// Applies positions to its own columns of the projection, in place. All mixers of a layer do
  /// this before any of them computes.
  virtual Var turn(Var projection, const Input&, RopeTables&) const { return projection; }
  /// Writes its columns of the output, and stores the tokens in its cache. The returned backward
  /// function, if there is one, writes its columns of the projection's gradient.
  virtual HeadsBackward forward(const MixerPass& pass) const = 0;

  /// The values of its own parameters, which the layer's record on the tape needs.
  virtual std::vector<Var> learned() const { return {}; }
  /// Parameters added to a trained model, like low-rank products: they are trained instead of the
  /// model, and are not copied when another model's values are loaded.
  virtual std::vector<Parameter> added() const { return {}; }
  virtual std::vector<LearnedNumber> learned_numbers() const { return {}; }
  /// Operations of a training step per pair of a token and a token it sees.
  virtual double operations_of_pair() const = 0;
  /// Operations of a training step per token, besides products with the layer's matrices.
  virtual double operations_of_token() const { return 0; }
};

/// `count` heads of a kind with this width: heads_of<FalHeads>(2, 16).
template <std::derived_from<Mixer> M>
M heads_of(std::int64_t count, std::int64_t width) {
  M mixer;
  mixer.heads = mixer.key_heads = count;
  mixer.width = width;
  return mixer;
}

/// A mixer with value semantics; copies are clones.
class AnyMixer {
 public:
  AnyMixer(std::unique_ptr<Mixer> mixer) : mixer_(std::move(mixer)) {}  // NOLINT: what it holds
  template <std::derived_from<Mixer> M>
  AnyMixer(const M& mixer) : mixer_(mixer.clone()) {}  // NOLINT: the same
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
