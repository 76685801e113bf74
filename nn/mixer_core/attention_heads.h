#pragma once

#include "autograd/attention.h"
#include "nn/layers/norm.h"
#include "nn/mixer_core/mixer.h"

namespace longhand::nn {

/// How scores are tempered before the softmax. Unless this is `none`, the scores of a token are
/// multiplied by beta ln n, where beta is a trained number (core/contract/cumulate.h). For
/// `position`, n is the number of keys up to the token. For `length`, n is the number of keys of
/// the whole sequence.
enum class Temper { none, position, length };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Temper>{"none", "position", "length"};

/// The norm of each head's queries and keys, applied before rotation. `standard` selects the norm
/// that default_head_norm() returns. `rms_plus_one` has the gain 1 + weight, and `rms_fixed` has no
/// trained gain.
enum class HeadNorm { standard, none, rms, rms_plus_one, rms_fixed };
template <>
inline constexpr std::array<std::string_view, 5> names_of<HeadNorm>{"default", "none", "rms",
                                                                    "rms_plus_one", "rms_fixed"};

/// Base class of mixers whose heads have queries, keys and values. Their columns of the projection
/// are [queries | keys | values]. Queries and keys are adjacent because they may be rotated
/// together. Keys and values are adjacent because they are cached together.
class AttentionHeads : public Mixer {
 public:
  RopeOptions rope;
  HeadNorm head_norm = HeadNorm::standard;

  void declare(Options& options) override;
  std::int64_t projection_columns() const override { return (heads + 2 * key_heads) * width; }
  std::vector<Projected> projected() const override;
  std::int64_t cached_columns() const override { return 2 * key_heads * width; }
  void build(MixerScope& layer, const MixerPlace& place) override;
  void prepare(RopeTables& tables, Backend& backend, DType type,
               std::int64_t longest) const override;
  Var turn(Var projection, const Input& input, RopeTables& tables) const override;

  /// The norm that is selected by HeadNorm::standard.
  virtual HeadNorm default_head_norm() const { return HeadNorm::none; }
  HeadNorm norm_of_heads() const {
    return head_norm == HeadNorm::standard ? default_head_norm() : head_norm;
  }

  /// The trained gains of the norms of queries and keys; empty if there are no trained gains.
  const Parameter& query_norm() const { return query_norm_.weight; }
  const Parameter& key_norm() const { return key_norm_.weight; }

 protected:
  virtual bool turns() const { return true; }  // true if queries and keys are rotated by position

  /// Queries, keys and values after norms and rotation. In decoding, k and v contain all cached
  /// tokens, including the new ones.
  struct Operands {
    HeadVars q, k, v;
    HeadVars own_k = k;  // keys of the current pass's tokens only
  };
  Operands operands(const MixerPass& pass) const;
  /// Writes the keys and values of `own` to the cache and returns operands with all cached keys and
  /// values. If the pass has no cache, returns `own`.
  Operands with_cache(Operands own, const MixerPass& pass) const;
  Heads output(const MixerPass& pass) const;
  /// The scores q . k / sqrt(width). A derived class can modify the result.
  ScoreVars plain_scores(const Operands& operand, const MixerPass& pass) const;
  /// Computes attention with these scores and with the rule that turns scores into weights. If
  /// pass.view is not null, stores the scores and the rule in this view for inspection.
  HeadsBackward attend(const ScoreVars& scores, const HeadVars& v, const MixerPass& pass,
                       const RuleVars& rule = {}) const;
  const MixerPlace& place() const { return place_; }
  /// Returns the values of a parameter that has one entry per head, for reports. Each value has the
  /// given name and the index of its head. The result is empty if the parameter is empty.
  std::vector<LearnedNumber> numbers_of_heads(std::string_view name,
                                              const Parameter& parameter) const;
  /// Rotates `count` heads of x by the tokens' positions, in place. The first of these heads begins
  /// at column `first_column`.
  Var turned(Var x, std::int64_t first_column, std::int64_t count, const Input& input,
             RopeTables& tables) const;

 private:
  /// Copies `count` heads of the layer's projection, from column `first_column` on, to a separate
  /// tensor. Normalizes and rotates the copy and returns it.
  HeadVars normed(const MixerPass& pass, std::int64_t first_column, std::int64_t count,
                  const RmsNorm& norm) const;

  MixerPlace place_;
  std::vector<double> frequencies_;  // rotation frequencies; empty: no rotation
  std::int64_t dims_ = 0;            // number of rotated entries per head
  RmsNorm query_norm_, key_norm_;    // norms of queries and keys; may be empty
};

/// Options that determine the factors of the scores, for mixers with a softmax.
struct ScoreOptions {
  double scale = 0;  // factor of all scores; 0: 1/sqrt(width)
  Temper temper = Temper::none;
  /// Initial value of beta. Tempered scores are multiplied by beta ln n (see Temper), and each
  /// layer trains one beta.
  double beta = 1;

  void declare(Options& options);
  /// Creates the layer's trained number beta, a factor of tempered scores. Returns an empty
  /// parameter for Temper::none.
  Parameter build(MixerScope& layer) const;
  /// Throws an Error for Temper::length, because such scores depend on later tokens.
  void check_decoding() const;
  ScoreVars scores(const HeadVars& q, const HeadVars& k, const MixerPass& pass,
                   const Parameter& learned_beta) const;
};

/// Copies the rows of each sequence of x to the last rows of the same sequence in y.
void put(const Heads& x, const Segments& from, const Heads& y, const Segments& to);
/// Copies the heads x to a separate tensor. No other operation may use the columns of these heads
/// in x.data, because the gradient of the copy overwrites the gradient of these columns.
HeadVars copy_heads(const HeadVars& x, const Segments& rows);
/// Copies the computed heads x to y, the output of a mixer. x.data must have no columns other than
/// those of the heads. Returns the backward function, which is empty if no gradient is required.
HeadsBackward write_output(const HeadVars& x, const Segments& rows, const Heads& y);

/// ln n for each token of a pass, [tokens, heads]. n is the number of keys that the token sees or,
/// if `whole`, the number of keys of its sequence.
Tensor log_counts_of(const MixerPass& pass, std::int64_t heads, bool whole = false);

/// ln max(sigmoid(z), 1e-30).
Var log_sigmoid(const Var& z);
/// ln sigmoid(w_h . x_t + b_h) for token t and head h. x_t is row t of x, w_h is row h of `weight`
/// [heads, columns of x], and b_h is entry h of `bias` [heads]. The result is [tokens, heads] and
/// has the type of the parameters.
Var log_gates(const Var& x, const Var& weight, const Var& bias);

/// The sequences of the keys in the pass's cache. Empty if there is no cache; keys and queries then
/// have the same sequences.
Segments cached_segments(const MixerPass& pass);

}  // namespace longhand::nn
