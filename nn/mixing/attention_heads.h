#pragma once

#include "autograd/attention.h"
#include "nn/layers/norm.h"
#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// What scores are multiplied by: nothing, or beta ln n with n the number of keys up to the token
/// or of its whole sequence (core/contract/cumulate.h).
enum class Temper { none, position, length };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Temper>{"none", "position", "length"};

/// How each head's queries and keys are normed before they turn. `standard`: as the kind of heads
/// has it by default.
enum class HeadNorm { standard, none, rms, rms_plus_one, rms_fixed };
template <>
inline constexpr std::array<std::string_view, 5> names_of<HeadNorm>{"default", "none", "rms",
                                                                    "rms_plus_one", "rms_fixed"};

/// What mixers whose heads have queries, keys and values have in common. Their columns of the
/// projection are [queries | keys | values], so that queries and keys, which may turn, lie side by
/// side, and so do keys and values, which are cached.
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

  /// What `standard` stands for.
  virtual HeadNorm default_head_norm() const { return HeadNorm::none; }
  HeadNorm norm_of_heads() const {
    return head_norm == HeadNorm::standard ? default_head_norm() : head_norm;
  }

  /// Of the queries' and keys' norms; empty without them.
  const Parameter& query_norm() const { return query_norm_.weight; }
  const Parameter& key_norm() const { return key_norm_.weight; }

 protected:
  virtual bool turns() const { return true; }  // where the model tells positions by turning

  /// Queries, keys and values as the mechanism reads them: normed and turned. In decoding keys and
  /// values are those of the cache, into which the new ones were put.
  struct Operands {
    HeadVars q, k, v;
    HeadVars own_k = k;  // of the pass's tokens alone
  };
  Operands operands(const MixerPass& pass) const;
  /// In decoding: with keys and values put into the cache, and those of the cache.
  Operands with_cache(Operands own, const MixerPass& pass) const;
  Heads output(const MixerPass& pass) const;
  /// The scores q . k / sqrt(width), to which a mixer adds what makes its own.
  ScoreVars plain_scores(const Operands& operand, const MixerPass& pass) const;
  /// Attention by such scores; they can be looked at.
  HeadsBackward attend(const ScoreVars& scores, const HeadVars& v, const MixerPass& pass) const;
  const MixerPlace& place() const { return place_; }
  /// The entries of a parameter [heads], head by head; none of an empty one.
  std::vector<LearnedNumber> numbers_of_heads(std::string_view name,
                                              const Parameter& parameter) const;
  /// Heads of this width that begin in that column, turned in place as queries and keys are.
  Var turned(Var x, std::int64_t first_column, std::int64_t count, const Input& input,
             RopeTables& tables) const;

 private:
  /// Some of the projection's heads by themselves, normed and turned.
  HeadVars normed(const MixerPass& pass, std::int64_t first_column, std::int64_t count,
                  const RmsNorm& norm) const;

  MixerPlace place_;
  std::vector<double> frequencies_;  // empty: nothing turns
  std::int64_t dims_ = 0;            // of a head, turned in pairs
  RmsNorm query_norm_, key_norm_;    // or empty
};

/// How scores are read, of mixers that have a softmax.
struct ScoreOptions {
  double scale = 0;  // factor of all scores; 0: 1/sqrt(width)
  Temper temper = Temper::none;
  double beta = 1;  // the temper's at first; learned, one a layer

  void declare(Options& options);
  /// The layer's beta; empty without a temper.
  Parameter build(MixerScope& layer) const;
  /// An Error for a temper that looks ahead.
  void check_decoding() const;
  ScoreVars scores(const HeadVars& q, const HeadVars& k, const MixerPass& pass,
                   const Parameter& learned_beta) const;
};

/// Copies heads to the last rows of each sequence.
void put(const Heads& x, const Segments& from, const Heads& y, const Segments& to);
/// Heads of a batch's tokens in a tensor of their own. Their columns must be read here alone: the
/// gradient of these columns is that of the copy.
HeadVars alone(const HeadVars& x, const Segments& rows);
/// Writes heads that have been computed already, all columns of x, to a mixer's output.
HeadsBackward put_into(const HeadVars& x, const Segments& rows, const Heads& y);

/// ln n of a pass's tokens, n the keys that each sees or, of `whole` sequences, all: [tokens,
/// heads].
Tensor log_counts_of(const MixerPass& pass, std::int64_t heads, bool whole = false);

/// ln sigmoid(z). Below 1e-30 a sigmoid is taken for that.
Var log_sigmoid(const Var& z);
/// ln sigmoid(w . x_t + b) of weights [heads, width of the stream] and biases [heads], [tokens,
/// heads] of the master type.
Var log_gates(const Var& x, const Var& weight, const Var& bias);

/// The sequences of a pass's keys, where they are not the tokens' own.
Segments cached_segments(const MixerPass& pass);

}  // namespace longhand::nn
