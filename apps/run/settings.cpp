#include "apps/run/settings.h"

#include <bit>
#include <limits>

#include "core/error.h"

namespace longhand::app {

void ModelSettings::declare_decoder(nn::Options& options) {
  nn::DecoderConfig& d = decoder;
  options.integer("width", d.width, 1, 1 << 16, "width of the residual stream").common = true;
  options.integer("layers", d.layers, 0, 1000, "number of blocks").common = true;
  const std::string kinds =
      "heads of all layers, such as softmax:3,fal:1, or of each: softmax:8;chacal:8; kinds: " +
      nn::kind_names();
  options.text("heads", heads, kinds, "LIST").common = true;
  options.integer("inner", d.inner, 0, 1 << 18,
                  "width inside the feed forward; 0: 3 times the width");
  options.choice("norm", d.norm, "norms of the blocks: layer, rms or rms_plus_one");
  options.number("norm_epsilon", d.epsilon, 0, 1, "added to the variance in the norms");
  options.flag("norms_after", d.norms_after,
               "1: attention and feed forward are normed again after");
  options.choice("order", d.order, "attention and feed forward parallel or sequential");
  options.choice_of("activation", d.activation,
                    {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu},
                    "gelu (exact), gelu_tanh, relu or silu");
  options.flag("gated", d.gated, "1: the feed forward has a gate");
  options.flag("feed_forward_bias", d.feed_forward_bias,
               "1: biases in the feed forward's products");
  options.flag("attention_bias", d.projection_bias, "1: biases in the attention's products");
  options.flag("out_bias", d.mixing_bias, "0: none in the attention's last product");
  options.flag("output_bias", d.output_bias, "1: a bias in the output layers");
  options.number("embedding_scale", d.embedding_scale, 1e-6, 1e6, "factor of the embeddings");
  options.choice("positions", d.positions, "none, rotary, learned or sinusoidal").common = true;
  options.choice(
      "position_ids", position_ids,
      "what positions are: places; or numbers below model.longest: random (ascending), coupled "
      "(one for tokens that belong together, where the task says so), abacus (of digits in their "
      "numbers)",
      {tasks::position_ids_names.begin(), tasks::position_ids_names.end()});
  options.integer("longest", d.longest, 0, 1 << 24,
                  "learned positions; 0: as many as the task's longest sample has; 2048 of random "
                  "ones; of coupled ones and abacus what all of its distributions need, twice "
                  "training's at least");
  options.flag("tied", d.tied, "1: the output layer is the embedding");
  options.choice("start", d.start,
                 "plain; residual: what is added to the stream starts at 1/sqrt(2 layers)");
  options.number("deviation", d.deviation, 0, 100, "of the weights at first");
}

void ModelSettings::declare(nn::Options& options) {
  declare_decoder(options);
  decoder.lora.declare(options);
}

void TrainingSettings::declare(nn::Options& options) {
  options.integer("steps", schedule.steps, 0, longest_training, "optimizer steps").common = true;
  options.integer("batch", batch, 1, 1 << 24, "sequences in a step").common = true;
  options.integer("batch_tokens", batch_tokens, 0, 1 << 30,
                  "so many tokens in a step, whole sequences, in place of training.batch; 0: by "
                  "sequences");
  options.integer("set", set, 0, largest_training_set,
                  "samples in the training set; 0: new ones in every step");
  options.integer("parts", parts, 1, 1 << 16,
                  "parts of a step's batch, a power of two, whose gradients are added in one tree: "
                  "at most so many ranks share the run; 8 unless given where mpirun starts it");
  options.integer("accumulation", accumulation, 1, 1 << 16,
                  "batches each part of a step is computed in");
  options.choice(
      "shard", shard,
      "what ranks share, in place of each having all of it: none, the optimizer's moments "
      "(optimizer), or these and the gradients (gradients)",
      {"none", "optimizer", "gradients"});
  options.text(
      "train", train,
      "what learns: all, or parameters by name, such as blocks.*.mixing,*.bias; auto: all, "
      "or what lora and biased heads add",
      "PARTS");
  options.text("columns", columns,
               "of all that gives every head's queries and keys only these entries' columns learn: "
               "last, or numbers such as 0,60..63; none: no such limit",
               "LIST");
  options.text("train_on", train_on, "the distribution of the task that is learned", "NAME");
  options.number("rate", schedule.peak, 0, 1e3, "peak learning rate").common = true;
  using Curve = nn::Schedule::Curve;
  options.choice_of("schedule", schedule.curve,
                    {Curve::constant, Curve::linear, Curve::cosine, Curve::one_cycle},
                    "constant, linear, cosine or one_cycle");
  options.integer("warm_up", schedule.warm_up, 0, longest_training, "steps of warm-up");
  options.choice("rate_at", schedule.place,
                 "start: step s has the schedule's rate after s - 1 steps, as in transformers and "
                 "PyTorch; end: the rate after s steps, 0 in the last step, as in version 0.1",
                 {"start", "end"});
  options.number("beta1", adam.beta1, 0, 0.999999, "Adam's decay of the first moment");
  options.number("beta2", adam.beta2, 0, 0.9999999, "Adam's decay of the second moment");
  options.number("epsilon", adam.epsilon, 0, 1, "Adam's epsilon");
  options.choice(
      "moments", adam.short_moments,
      "what Adam's moments are kept in: f32, or bf16 in half the memory, for beta2 of at "
      "most 0.99",
      {"f32", "bf16"}, "TYPE");
  options.choice("weights", bf16_weights,
                 "how matrices are held: f32, or, where none but lora's learn, bf16 in half the "
                 "memory",
                 {"f32", "bf16"}, "TYPE");
  options.flag("recompute", recompute,
               "1: backward computes each block again, which takes less memory and more time");
  options.number("decay", adam.decay, 0, 1e3, "decoupled weight decay of matrices");
  options.number("clip", adam.clip, 0, 1e9, "largest global gradient norm; 0: no clipping");
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  options.integer("seed", seed, 0, largest, "names all random numbers of the run").common = true;
  options.integer("evaluate_every", evaluate_every, 0, longest_training,
                  "steps between evaluations; 0: at the end only");
  options.integer("evaluate_samples", evaluate_samples, 0, 1 << 24,
                  "sequences of each distribution in an evaluation");
  options.integer("checkpoint_every", checkpoint_every, 0, longest_training,
                  "steps between checkpoints; 0: by time and at the end only");
  options.number("checkpoint_minutes", checkpoint_minutes, 0, 1e6,
                 "a checkpoint after so many minutes without one, too; 0: not by time");
  options.integer("keep", keep, 1, 1000, "latest checkpoints kept; the best is kept too");
  options.integer("part_mib", part_mib, 0, largest_part_mib,
                  "largest file of a checkpoint, which then lies in parts; 0: no limit");
}

void TrainingSettings::check() const {
  LONGHAND_CHECK(std::has_single_bit(static_cast<std::uint64_t>(parts)),
                 "training.parts: expected a power of two, got ", parts);
  LONGHAND_CHECK(!adam.short_moments || adam.beta2 <= 0.99,
                 "training.moments: bf16 needs beta2 of at most 0.99, because its rounding loses "
                 "the small steps of a slower mean; got ",
                 adam.beta2);
  const auto check_multiple = [&](std::string_view name, std::int64_t value) {
    LONGHAND_CHECK(value % batches() == 0, name, ": expected a multiple of ",
                   parts == 1 ? "" : "parts * ", "accumulation = ", batches(), ", got ", value);
  };
  check_multiple("training.batch", batch);
  check_multiple("training.batch_tokens", batch_tokens);
}

}  // namespace longhand::app
