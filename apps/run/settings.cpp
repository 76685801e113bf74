#include "apps/run/settings.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace longhand::app {

void ModelSettings::declare_decoder(nn::Options& options) {
  nn::DecoderConfig& d = decoder;
  options.integer("width", d.width, 1, 1 << 16, "width of the residual stream").common = true;
  options.integer("layers", d.layers, 0, 1000, "number of blocks").common = true;
  const std::string kinds =
      "heads by kind (docs/guide/train.md), such as softmax:3,fal:1; semicolons separate layers; "
      "kinds: " +
      nn::kind_names();
  options.text("heads", heads, kinds, "LIST").common = true;
  options.integer("inner", d.inner, 0, 1 << 18,
                  "hidden width of the feed-forward network; 0: 3 times --width");
  options.choice(
      "norm", d.norm,
      "normalization: layer, rms or rms_plus_one; rms_plus_one: RMSNorm with gain 1 + weight");
  options.number("norm_epsilon", d.epsilon, 0, 1,
                 "epsilon that normalization adds to the variance");
  options.flag("norms_after", d.norms_after,
               "1: also normalize the outputs of attention and feed-forward network");
  options.choice("order", d.order,
                 "attention and feed-forward network of a block: parallel or sequential");
  options.choice_of("activation", d.activation,
                    {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu},
                    "activation function: gelu, gelu_tanh, relu or silu; gelu: exact; gelu_tanh: "
                    "tanh approximation");
  options.flag("gated", d.gated, "1: gated feed-forward network, such as SwiGLU");
  options.flag("feed_forward_bias", d.feed_forward_bias,
               "1: the projections of the feed-forward network have biases");
  options.number("dropout", d.dropout, 0, 0.99,
                 "dropout rate after embedding, attention and feed-forward network");
  options.flag("attention_bias", d.projection_bias, "1: the projections of attention have biases");
  options.flag("out_bias", d.mixing_bias, "0: the output projection of attention has no bias");
  options.flag("output_bias", d.output_bias, "1: the output layers have biases");
  options.number("embedding_scale", d.embedding_scale, 1e-6, 1e6,
                 "factor that multiplies the embeddings");
  options.choice("positions", d.positions, "positions: none, rotary, learned or sinusoidal")
      .common = true;
  options.choice("position_ids", position_ids,
                 "position ids of tokens: places, random, coupled or abacus; places: index in the "
                 "sequence; random: random numbers in ascending order; coupled: equal ids for "
                 "tokens that belong together in the task; abacus: index of a digit in its number; "
                 "all kinds except places give ids less than --longest",
                 {tasks::position_ids_names.begin(), tasks::position_ids_names.end()});
  options.integer("longest", d.longest, 0, 1 << 24,
                  "number of positions; 0: as --position-ids requires (places: length of the "
                  "task's longest sample; random: 2048; coupled, abacus: enough for all "
                  "distributions, and at least twice as many as training needs)");
  options.flag("tied", d.tied, "1: the output layer shares the embedding's weights");
  options.choice("start", d.start,
                 "initialization: plain or residual; residual: multiply the standard deviation of "
                 "residual projections by 1/sqrt(2 * layers)");
  options.number("deviation", d.deviation, 0, 100, "standard deviation of the initial weights");
}

void ModelSettings::declare(nn::Options& options) {
  declare_decoder(options);
  decoder.lora.declare(options);
}

namespace {

std::string warm_up_text(const WarmUp& warm_up) {
  return warm_up.percent ? nn::shortest(*warm_up.percent) + "%" : std::to_string(warm_up.steps);
}

WarmUp read_warm_up(std::string_view text) {
  WarmUp warm_up;
  nn::Options options("training.");
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    options.number("warm_up", warm_up.percent.emplace(), 0, 100, "").assign(text);
  } else {
    options.integer("warm_up", warm_up.steps, 0, longest_training, "").assign(text);
  }
  return warm_up;
}

void declare_batches(nn::Options& options, TrainingSettings& s) {
  options.integer("steps", s.schedule.steps, 0, longest_training, "number of optimizer steps")
      .common = true;
  options.integer("batch", s.batch, 1, 1 << 24, "batch size, in sequences").common = true;
  options.integer("batch_tokens", s.batch_tokens, 0, 1 << 30,
                  "batch size in tokens, filled with whole sequences; 0: use --batch");
  options.integer("set", s.set, 0, largest_training_set,
                  "number of samples in a fixed training set; 0: new samples in every step");
  options.integer("parts", s.parts, 1, 1 << 16,
                  "number of parts of a batch, a power of two; also the maximum number of ranks; "
                  "default under mpirun: 8");
  options.integer("accumulation", s.accumulation, 1, 1 << 16,
                  "number of micro-batches per part (gradient accumulation)");
  options.choice("shard", s.shard,
                 "state to shard over the ranks: none, optimizer or gradients; optimizer: Adam's "
                 "moments; gradients: moments and gradients",
                 {"none", "optimizer", "gradients"});
}

void declare_trained(nn::Options& options, TrainingSettings& s) {
  options.text("train", s.train,
               "parameters to train: all, auto, or names such as blocks.*.mixing,*.bias; auto: "
               "only the parameters that LoRA and biased heads add; without them, all",
               "PARTS");
  options.text("columns", s.columns,
               "train only these columns of each head's query and key projections: last, or "
               "indices such as 0,60..63; none: no restriction",
               "LIST");
  options.text("train_on", s.train_on, "distribution of the task to train on", "NAME");
}

void declare_optimizer(nn::Options& options, TrainingSettings& s) {
  options.number("rate", s.schedule.peak, 0, 1e3, "peak learning rate").common = true;
  using Curve = nn::Schedule::Curve;
  options.choice_of("schedule", s.schedule.curve,
                    {Curve::constant, Curve::linear, Curve::cosine, Curve::one_cycle},
                    "learning rate schedule: constant, linear, cosine or one_cycle");
  options.bind("warm_up", s.warm_up, warm_up_text, read_warm_up, "N",
               "number of warm-up steps, or a percentage of all steps, such as 10%");
  options.choice("rate_at", s.schedule.place,
                 "point of step s at which the schedule is evaluated: start or end; start: after s "
                 "- 1 steps, as in PyTorch; end: after s steps",
                 {"start", "end"});
  options.choice("optimizer", s.by_muon,
                 "optimizer: adam or muon; muon: Muon for matrices, AdamW for embeddings, output "
                 "layers and vectors",
                 {"adam", "muon"});
  options.number("muon_momentum", s.muon.momentum, 0, 0.999999, "Muon's momentum");
  options.flag("muon_nesterov", s.muon.nesterov, "1: Muon uses Nesterov's momentum");
  options.integer("muon_steps", s.muon.steps, 1, 100, "number of Newton-Schulz iterations in Muon");
  options.choice("muon_scale", s.muon.scale,
                 "factor of Muon's updates: adam or original; adam: 0.2 sqrt(max(rows, columns)), "
                 "which suits AdamW's learning rates; original: sqrt(max(1, rows / columns))",
                 {"adam", "original"});
  options.number("muon_rate", s.muon.rate, 0, 1e6, "Muon's learning rate, as a multiple of --rate");
  options.number("beta1", s.adam.beta1, 0, 0.999999, "decay rate of Adam's first moment");
  options.number("beta2", s.adam.beta2, 0, 0.9999999, "decay rate of Adam's second moment");
  options.number("epsilon", s.adam.epsilon, 0, 1, "Adam's epsilon");
  options.choice("moments", s.adam.short_moments,
                 "type of Adam's moments: f32 or bf16; bf16 halves their memory and requires "
                 "--beta2 of at most 0.99",
                 {"f32", "bf16"}, "TYPE");
  options.choice(
      "weights", s.weights,
      "form of the weight matrices: f32, bf16, or file, in which matrices that the model's "
      "file stores in blocks stay in blocks; bf16 and file need less memory and require "
      "that these matrices are not trained, as with --lora",
      {"f32", "bf16", "file"}, "FORM");
  options.flag("recompute", s.recompute,
               "1: recompute each block in the backward pass, to save memory at the cost of time");
  options.number("decay", s.adam.decay, 0, 1e3, "decoupled weight decay of matrices");
  options.number("clip", s.adam.clip, 0, 1e9, "maximum global gradient norm; 0: no clipping");
}

void declare_saving(nn::Options& options, TrainingSettings& s) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  options.integer("seed", s.seed, 0, largest, "seed of all random numbers of the run").common =
      true;
  options.integer(
      "evaluate_every", s.evaluate_every, 0, longest_training,
      "number of steps between evaluations; 0: only by --evaluate-minutes and at the end");
  options.number("evaluate_minutes", s.evaluate_minutes, 0, 1e6,
                 "maximum number of minutes between evaluations; 0: no limit");
  options.integer("evaluate_samples", s.evaluate_samples, 0, 1 << 24,
                  "number of sequences per distribution in an evaluation; 0: no evaluation");
  options.integer(
      "checkpoint_every", s.checkpoint_every, 0, longest_training,
      "number of steps between checkpoints; 0: only by --checkpoint-minutes and at the end");
  options.number("checkpoint_minutes", s.checkpoint_minutes, 0, 1e6,
                 "maximum number of minutes between checkpoints; 0: no limit");
  options.integer("keep", s.keep, 1, 1000,
                  "number of latest checkpoints to keep, in addition to the best");
  options.integer(
      "part_mib", s.part_mib, 0, largest_part_mib,
      "maximum size of a checkpoint file, in MiB; larger checkpoints are split; 0: no limit");
}

}  // namespace

std::int64_t WarmUp::of(std::int64_t all_steps) const {
  if (!percent) return steps;
  return std::llround(*percent / 100 * static_cast<double>(all_steps));
}

void TrainingSettings::declare(nn::Options& options) {
  declare_batches(options, *this);
  declare_trained(options, *this);
  declare_optimizer(options, *this);
  declare_saving(options, *this);
}

void TrainingSettings::check() const {
  LONGHAND_CHECK(std::has_single_bit(static_cast<std::uint64_t>(parts)),
                 "training.parts: expected a power of two, got ", parts);
  LONGHAND_CHECK(!adam.short_moments || adam.beta2 <= 0.99,
                 "training.moments: bf16 needs a beta2 of at most 0.99, got ", adam.beta2,
                 "; for a larger beta2, bf16 rounds small changes of the moving average away");
  LONGHAND_CHECK(!by_muon || !adam.short_moments,
                 "training.moments: expected f32 with the optimizer muon, got bf16");
  LONGHAND_CHECK(by_muon || muon == nn::MuonOptions(),
                 "training.optimizer: expected muon, because options of Muon are set, got adam");
  const auto check_multiple = [&](std::string_view name, std::int64_t value) {
    LONGHAND_CHECK(value % batches() == 0, name, ": expected a multiple of ", batches(),
                   parts == 1 ? " (accumulation)" : " (parts * accumulation)", ", got ", value);
  };
  check_multiple("training.batch", batch);
  check_multiple("training.batch_tokens", batch_tokens);
}

}  // namespace longhand::app
