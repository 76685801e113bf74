#include "apps/recipes/sorting_construction.h"

#include <cmath>
#include <string>

#include "apps/run/run_folder.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "nn/mixers/softmax.h"
#include "nn/training/checkpoint.h"

namespace longhand::app {
namespace {

/// The values of a parameter on the host, initially zero. A direction of the residual stream
/// occupies two coordinates, +1 and -1 (see SortingDirections). So a row or column that represents
/// the stream has two entries per direction.
class Weights {
 public:
  Weights(const nn::Parameter& parameter, std::int64_t directions)
      : parameter_(parameter),
        columns_(parameter_.value().columns()),
        directions_(directions),
        values_(static_cast<std::size_t>(parameter_.value().size())) {}

  double& at(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// For a weight matrix whose input is the residual stream: adds to output `row` the stream's
  /// coordinate along `direction`, times `factor`.
  void read(std::int64_t row, std::int64_t direction, double factor = 1) {
    at(row, direction) += factor / 2;
    at(row, directions_ + direction) -= factor / 2;
  }
  /// For a weight matrix whose output is added to the residual stream: adds input `column`, times
  /// `factor`, to the stream's coordinate along `direction`.
  void write(std::int64_t column, std::int64_t direction, double factor = 1) {
    at(direction, column) += factor;
    at(directions_ + direction, column) -= factor;
  }
  /// Adds the vector of a direction to row `row`, for parameters whose rows are vectors of the
  /// residual stream, such as embeddings.
  void place(std::int64_t row, std::int64_t direction) {
    at(row, direction) += 1;
    at(row, directions_ + direction) -= 1;
  }
  void fill(double value) { values_.assign(values_.size(), value); }

  void store() const {
    const Tensor& to = parameter_.value();
    to.backend()(Copy{.x = Tensor::from(to.backend(), to.shape(), to.dtype(), values_), .y = to});
  }

 private:
  nn::Parameter parameter_;
  std::int64_t columns_, directions_;
  std::vector<double> values_;
};

/// Computes and stores the weights of a decoder, one part of the model after another.
class Builder {
 public:
  Builder(const nn::Decoder& decoder, const SortingConstruction& construction)
      : decoder_(decoder), c_(construction), at_(c_.numbers), q_(c_.numbers), mark_(q_ + 1) {}

  void build() const {
    embed();
    norms();
    first_attention();
    first_feed_forward();
    second_attention();
    second_feed_forward();
    decode();
  }

 private:
  Weights weights(const nn::Parameter& parameter) const { return {parameter, at_.count()}; }
  Weights projection(int layer) const {
    return weights(decoder_.block(layer).mixing.projection.weight);
  }
  Weights mixed(int layer) const { return weights(decoder_.block(layer).mixing.out.weight); }
  const nn::FeedForward& feed_forward(int layer) const {
    return decoder_.block(layer).feed_forward;
  }

  /// The row of the fused query-key-value projection that computes the entry for `symbol` of a
  /// head's queries (part 0), keys (part 1) or values (part 2).
  std::int64_t row(int part, int head, std::int64_t symbol) const {
    return (2 * part + head) * mark_ + symbol - 1;
  }
  std::int64_t query(int head, std::int64_t symbol) const { return row(0, head, symbol); }
  std::int64_t key(int head, std::int64_t symbol) const { return row(1, head, symbol); }
  std::int64_t value(int head, std::int64_t symbol) const { return row(2, head, symbol); }
  /// The column of the output projection that reads the entry for `symbol` of a head's output.
  std::int64_t output(int head, std::int64_t symbol) const { return head * mark_ + symbol - 1; }

  double gamma(std::int64_t number) const { return static_cast<double>(q_ - number + 1); }

  void embed() const {
    Weights table = weights(decoder_.embedding().weight);
    for (std::int64_t s = 1; s <= mark_; ++s) table.place(s, at_.e(s));
    table.store();
  }

  /// Chooses the gain of each norm so that the norm returns its input unchanged. This is possible
  /// because the sum of squares of the stream's coordinates is a known constant at each norm.
  void norms() const {
    const double told = 3 + c_.successor * c_.successor;
    norm(decoder_.block(0).norm1, 1);
    norm(decoder_.block(0).norm2, 3);
    norm(decoder_.block(1).norm1, 3);
    norm(decoder_.block(1).norm2, told);
    norm(decoder_.final_norm(), told);
  }
  void norm(const nn::Norm& norm, double squares) const {
    Weights gain = weights(norm.weight());
    gain.fill(std::sqrt(squares / static_cast<double>(at_.count()) + decoder_.config().epsilon));
    gain.store();
  }

  /// Head 0 detects the token's own symbol, and whether the delimiter ⊥ (the end of the input)
  /// precedes the token. In head 1, a number attends to itself, and ⊥ attends to the smallest
  /// number.
  void first_attention() const {
    // The score of a number's query with the key of the delimiter ⊥. It is called C in
    // docs/math/sorting_construction.md.
    constexpr double delimiter_first = 3;
    Weights in = projection(0);
    Weights out = mixed(0);
    for (std::int64_t s = 1; s <= mark_; ++s) {
      in.read(query(0, s), at_.e(s));
      if (s != mark_) in.read(query(0, mark_), at_.e(s), delimiter_first);
      in.read(key(0, s), at_.e(s));
      in.read(value(0, s), at_.e(s));
      out.write(output(0, s), at_.tilde(s));
      in.read(key(1, s), at_.e(s));
    }
    for (std::int64_t a = 1; a <= q_; ++a) {
      in.read(query(1, a), at_.e(a));
      in.read(query(1, a), at_.e(mark_), gamma(a));
      in.read(value(1, a), at_.e(a));
      out.write(output(1, a), at_.hat_prime(a));
    }
    in.store();
    out.store();
  }

  /// Each symbol s has two directions e(s) and tilde(s) in the residual stream (SortingDirections).
  /// The stream of a number b after the delimiter ⊥ contains e(b) and tilde(⊥). This layer replaces
  /// tilde(⊥) by -tilde(b). Its hidden unit of b is relu(x - 3/2), where x is the sum of the
  /// coordinates along e(b) and tilde(⊥). So the unit is 1/2 at these tokens and 0 at all others.
  void first_feed_forward() const {
    Weights up = weights(feed_forward(0).up.weight);
    Weights bias = weights(feed_forward(0).up.bias);
    Weights down = weights(feed_forward(0).down.weight);
    for (std::int64_t b = 1; b <= q_; ++b) {
      const std::int64_t unit = b - 1;
      up.read(unit, at_.e(b));
      up.read(unit, at_.tilde(mark_));
      bias.at(0, unit) = -1.5;
      down.write(unit, at_.tilde(b), -2);
      down.write(unit, at_.tilde(mark_), -2);
    }
    up.store();
    bias.store();
    down.store();
    weights(feed_forward(0).down.bias).store();
  }

  /// Head 0 of a number attends to all copies of the number and averages their coordinates along
  /// the number's direction `tilde`. The coordinate is 1 for copies before the delimiter ⊥ and -1
  /// for copies after it. Head 1 finds the next greater number.
  void second_attention() const {
    Weights in = projection(1);
    Weights out = mixed(1);
    for (std::int64_t s = 1; s <= mark_; ++s) {
      in.read(query(0, s), at_.e(s));
      in.read(key(0, s), at_.e(s));
      in.read(key(1, s), at_.e(s));
    }
    for (std::int64_t a = 1; a <= q_; ++a) {
      in.read(value(0, a), at_.tilde(a));
      out.write(output(0, a), at_.hat(a));
      for (std::int64_t b = a + 1; b <= q_; ++b) in.read(query(1, b), at_.e(a), gamma(b));
      in.read(value(1, a), at_.e(a));
      out.write(output(1, a), at_.hat_prime(a), c_.successor);
    }
    in.read(query(1, mark_), at_.e(mark_));
    in.store();
    out.store();
  }

  /// The coordinates of the residual stream along the directions hat(b) and hat_prime(b) add up to
  /// the logit of number b (before the final norm). After the delimiter ⊥, this layer subtracts 1
  /// from the logit of the current number. It also adds G c to this logit, where G is the gain and
  /// c is the mean that head 0 of the second attention computed. c is positive as long as copies of
  /// the number are left to be output.
  void second_feed_forward() const {
    Weights up = weights(feed_forward(1).up.weight);
    Weights down = weights(feed_forward(1).down.weight);
    for (std::int64_t b = 1; b <= q_; ++b) {
      const std::int64_t again = b - 1, left = q_ + b - 1;
      up.read(again, at_.tilde(b), -1);
      down.write(again, at_.hat_prime(b), -1);
      up.read(left, at_.hat(b));
      down.write(left, at_.hat(b), c_.gain);
    }
    up.store();
    down.store();
    weights(feed_forward(1).up.bias).store();
    weights(feed_forward(1).down.bias).store();
  }

  void decode() const {
    Weights table = weights(decoder_.output().weight);
    for (std::int64_t a = 1; a <= q_; ++a) {
      table.place(a, at_.hat(a));
      table.place(a, at_.hat_prime(a));
    }
    table.store();
  }

  const nn::Decoder& decoder_;
  SortingConstruction c_;
  SortingDirections at_;
  std::int64_t q_, mark_;  // q_: the greatest number; mark_: the symbol of the delimiter ⊥
};

}  // namespace

SortingConstruction SortingConstruction::for_inputs(std::int64_t numbers, std::int64_t longest) {
  const double n = static_cast<double>(longest);
  return {.numbers = numbers,
          .longest = longest,
          .sharpness = 10 + 2 * std::log2(2 * n),
          .gain = 2.5 * n};
}

SortingConstruction SortingConstruction::as_printed(std::int64_t numbers, std::int64_t longest) {
  return {.numbers = numbers, .longest = longest, .sharpness = 3, .gain = 0};
}

nn::DecoderConfig decoder_config(const SortingConstruction& c) {
  nn::SoftmaxHeads heads;
  heads.heads = heads.key_heads = 2;
  heads.width = c.numbers + 1;
  heads.scores = {.scale = 1, .temper = nn::Temper::position, .beta = c.sharpness};
  return {.vocabulary = c.vocabulary(),
          .width = 2 * c.directions(),
          .layers = 2,
          .order = nn::Order::sequential,
          .mixers = nn::softmax_layers(heads),
          .projection_bias = false,
          .mixing_bias = false,
          .inner = 2 * c.numbers,
          .activation = Activation::relu,
          .positions = nn::Positions::none,
          .deviation = 0};
}

std::unique_ptr<nn::Decoder> make_sorting_decoder(Backend& backend,
                                                  const SortingConstruction& construction,
                                                  DType type) {
  const SortingConstruction& c = construction;
  LONGHAND_CHECK(c.numbers >= 1 && c.numbers <= 4096 && c.longest >= 1,
                 "sorting construction: expected 1 to 4096 numbers and a maximum input length of "
                 "at least 1, got ",
                 c.numbers, " numbers and a maximum length of ", c.longest);
  auto decoder = std::make_unique<nn::Decoder>(backend, decoder_config(c), 0, nn::Storage{type});
  Builder(*decoder, c).build();
  return decoder;
}

void save_as_run(const nn::Decoder& decoder, const SortingConstruction& construction,
                 const std::filesystem::path& path) {
  const nn::DecoderConfig& model = decoder.config();
  Config config("sorting");
  config.set("task.numbers", text(construction.numbers));
  config.set_model(model);
  config.set("training.steps", "0");
  if (!std::filesystem::exists(path / "config.ini")) {
    RunFolder fresh = RunFolder::create(path, config);
    fresh.open();
    fresh.open_logs(0);
  }
  const RunFolder folder(path);
  LONGHAND_CHECK(folder.config().ini() == config.ini(), path.string(),
                 ": the folder holds another run; choose another folder");
  const nn::CheckpointStore store(folder.checkpoints(), 1);
  std::filesystem::create_directories(folder.checkpoints());
  nn::save_checkpoint(store.path(0), {.step = 0}, decoder.parameters(), nullptr);
}

}  // namespace longhand::app
