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

/// Where a mixer's heads lie in their layer.
struct MixerPlace {
  std::int64_t projection = 0;    // its first column of the layer's projection
  std::int64_t output = 0;        // and of the layer's output
  std::int64_t heads_before = 0;  // of its kind, in the layer's mixers before it
  std::int64_t heads_alike = 0;   // of its kind, in all of the layer's mixers
  std::int64_t index = 0;         // among the layer's mixers
};

/// What a mixer keeps of the tokens it has read, one row a token of each sequence, or of a whole
/// sequence whatever its length.
struct MixerCache {
  Tensor keys_values = {};  // [rows, keys and values]
  Tensor outputs = {};      // [rows, columns()], where later outputs are made of earlier ones
  Tensor numbers = {};      // [rows, cached_numbers()], of the parameters' type
  std::vector<Tensor> memories = {};  // [sequences, n], n of cached_memories(); so too, 0 at first
};

/// What can be seen of a pass. A mixer fills in one of these, or none.
struct MixerView {
  std::optional<Scores> scores = {};  // what P is made of: it is computed when it is asked for
  std::optional<Reinforcement> reinforcement = {};  // what is added to P
  Tensor gamma = {};  // of chains along P (core/contract/chain.h): one number, or one for each head
  Tensor weights = {};   // P, as AttentionWeights in core/contract/attention.h; or empty
  Tensor selected = {};  // the key that each head chose, -1: none; i32 [tokens, heads]; or empty

  /// P of all heads and sequences, without what is added; empty where the mixer has none.
  Tensor all_weights() const;
};

/// One pass of a layer over the tokens of a batch.
struct MixerPass {
  const Var& projection;  // [tokens, columns of all mixers], after turn()
  const Input& input;     // the tokens' positions and sequences
  RopeTables& tables;
  const Tensor& y;  // [tokens, columns of all mixers]: a mixer writes its own columns
  // In decoding: the mixer's cache and its sequences, these tokens' room included.
  const MixerCache* cache = nullptr;
  const Segments* cached = nullptr;
  MixerView* view = nullptr;  // to be filled, when somebody looks
  const Var* x = nullptr;     // what the projection is of, for mixers with products of their own
};

/// What the mixers of a layer share: its scope, and parameters that several of them use.
class MixerScope {
 public:
  MixerScope(Scope scope, std::int64_t width, bool rotary, double epsilon)
      : scope_(std::move(scope)), width_(width), rotary_(rotary), epsilon_(epsilon) {}

  /// A parameter of the layer, made by the first mixer that asks for it.
  Parameter shared(std::string_view name, const Shape& shape, double initial);
  /// Numbers that are not learned, of the parameters' type.
  Tensor constants(std::span<const double> values) const;
  std::int64_t width() const { return width_; }  // of the stream
  bool rotary() const { return rotary_; }        // the model tells positions by turning
  double epsilon() const { return epsilon_; }    // of the model's norms
  const Scope& scope() const { return scope_; }

 private:
  Scope scope_;
  std::int64_t width_;
  bool rotary_;
  double epsilon_;
  std::vector<std::pair<std::string, Parameter>> shared_;
};

/// A number that training changes, as reports name it.
struct LearnedNumber {
  std::string_view name;
  std::optional<std::int64_t> head = {};  // none: of the whole layer
  double value = 0;
};

/// Some heads of one mechanism that moves information between tokens: what a layer's mixing is
/// made of. A mechanism is one file in nn/mixers/, which is all that nn knows of it.
class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual std::unique_ptr<Mixer> clone() const = 0;
  virtual std::string_view kind() const = 0;
  virtual void declare(Options&) {}
  virtual void check() const {}  // an Error where its options make no mixer

  std::int64_t heads = 1;
  std::int64_t key_heads =
      1;  // a divisor of heads: query head h reads key head h / (heads / key_heads)
  std::int64_t width = 0;  // of a head

  /// Columns that it needs of the layer's projection, and columns that it gives.
  virtual std::int64_t projection_columns() const = 0;
  virtual std::int64_t columns() const { return heads * width; }
  /// Those of the projection's columns, counted from its own first one, that are queries and the
  /// like.
  virtual std::vector<Projected> projected() const { return {}; }
  /// Keys and values it keeps of a token; whether it keeps its outputs as well.
  virtual std::int64_t cached_columns() const = 0;
  virtual bool caches_outputs() const { return false; }
  /// Numbers that it keeps of a token beside them, in full.
  virtual std::int64_t cached_numbers() const { return 0; }
  /// Numbers that it keeps of a sequence, one count for each tensor of them.
  virtual std::vector<std::int64_t> cached_memories() const { return {}; }
  /// An Error where a token's output depends on what comes later, so that it cannot be decoded.
  virtual void check_decoding() const {}
  /// Tokens of the longest sequence that it reads; none: any.
  virtual std::optional<std::int64_t> most_tokens() const { return std::nullopt; }
  /// Whether it does the same operations for every batch of a shape (nn/training/step_shape.h), and
  /// in decoding whatever the cache holds (nn/models/cached_decoder.h); else neither is recorded.
  virtual bool repeats() const { return true; }

  /// Whether it computes something else where the input tells what tokens are to look at.
  virtual bool wants_reference() const { return false; }

  /// Makes the parameters of its own, which come after the matrices of its block.
  virtual void build(MixerScope& layer, const MixerPlace& place) = 0;
  /// Makes the tables it needs for sequences of up to `longest` tokens.
  virtual void prepare(RopeTables&, Backend&, DType, std::int64_t /*longest*/) const {}
  /// The projection with its own columns told their positions, in place. All mixers of a layer do
  /// this before any of them computes.
  virtual Var turn(Var projection, const Input&, RopeTables&) const { return projection; }
  /// Writes its columns of the output, and what it keeps of the tokens into its cache. The backward
  /// function, when there is one, fills its columns of the projection's gradient.
  virtual HeadsBackward forward(const MixerPass& pass) const = 0;

  /// Values that the layer's record must know of: those of its own parameters.
  virtual std::vector<Var> learned() const { return {}; }
  /// Those of its own parameters that are added to a model that has learned, as LoRA's are: they
  /// learn in its place, and where the model takes another's values they begin anew.
  virtual std::vector<Parameter> added() const { return {}; }
  virtual std::vector<LearnedNumber> learned_numbers() const { return {}; }
  /// Operations of a training step for a pair of a token and one that it sees.
  virtual double operations_of_pair() const = 0;
  /// Those of a token, beside products with the layer's matrices.
  virtual double operations_of_token() const { return 0; }
};

/// So many heads of a kind, each of this width: heads_of<FalHeads>(2, 16).
template <std::derived_from<Mixer> M>
M heads_of(std::int64_t count, std::int64_t width) {
  M mixer;
  mixer.heads = mixer.key_heads = count;
  mixer.width = width;
  return mixer;
}

/// A mixer by value: copies are clones.
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

/// What lies in nn/mixers/: a file NAME.cpp there defines `constinit const MixerKind NAME_mixer`,
/// which is there before anything runs.
struct MixerKind {
  std::string_view name;
  std::unique_ptr<Mixer> (*make)();
};
std::span<const MixerKind* const> mixer_kinds();  // by name

template <class M>
constexpr MixerKind mixer_kind(std::string_view name) {
  return {name, [] { return std::unique_ptr<Mixer>(std::make_unique<M>()); }};
}

}  // namespace longhand::nn
