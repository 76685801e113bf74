#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/run/batches.h"
#include "nn/models/decoder_config.h"
#include "nn/options.h"
#include "nn/training/optimizer.h"
#include "nn/training/schedule.h"
#include "tasks/position_ids.h"

namespace longhand::app {

/// Maximum number of training steps.
inline constexpr std::int64_t longest_training = std::int64_t{1} << 40;
inline constexpr std::int64_t largest_part_mib = 1 << 20;

/// The [model] section of config.ini without the options of mixers. The members are initialized
/// with the default settings.
struct ModelSettings {
  /// `inner` is the width of the feed-forward layer; 0 stands for 3 times the width of the model.
  /// If `longest` is 0, the task determines it. Vocabulary, outputs and mixers are not set here.
  nn::DecoderConfig decoder{.inner = 0, .longest = 0, .lora = {.targets = {"query", "value"}}};
  std::string heads = "softmax:4";
  tasks::PositionIds position_ids = tasks::PositionIds::places;

  /// Declares all settings except those of low-rank products (LoRA).
  void declare_decoder(nn::Options& options);
  void declare(nn::Options& options);
};

/// The length of the warm-up: a number of steps, or a share of all steps. Written "100" or "10%".
struct WarmUp {
  std::int64_t steps = 100;
  std::optional<double> percent = {};  // replaces `steps`

  std::int64_t of(std::int64_t all_steps) const;
};

/// The [training] section. Settings that belong to structs of the library, such as nn::AdamOptions,
/// are members of these types.
/// The form of the matrices in training. `file`: as the checkpoint with which training begins
/// stores them, for example in blocks (core/block_matrix.h).
enum class TrainedForm : std::uint8_t { f32, bf16, file };

struct TrainingSettings {
  nn::Schedule schedule{.steps = 1000};  // Config::training() sets its warm_up
  WarmUp warm_up;
  nn::AdamOptions adam;
  bool by_muon = false;  // the optimizer is Muon, with AdamW for parameters other than matrices
  nn::MuonOptions muon;  // optimizer_of() replaces its member `adam` by `adam` above
  std::int64_t batch = 32, batch_tokens = 0;
  std::int64_t set = 0;
  std::int64_t parts = 1, accumulation = 1;
  nn::Sharing shard = nn::Sharing::nothing;
  std::string train = "auto", columns = "none", train_on = "train";
  TrainedForm weights = TrainedForm::f32;
  bool recompute = false;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 0, evaluate_samples = 200;
  double evaluate_minutes = 0;
  std::int64_t checkpoint_every = 0;
  double checkpoint_minutes = 10;
  int keep = 2;
  std::int64_t part_mib = 0;

  void declare(nn::Options& options);
  /// Throws an Error if settings contradict each other.
  void check() const;

  std::int64_t batches() const { return parts * accumulation; }  // number of batches of a step
  BatchPlan batch_plan() const {
    return {batch / batches(), batch_tokens / batches(), batches(), set};
  }
  /// Maximum bytes of a checkpoint file. 0: no limit.
  std::uint64_t most_file_bytes() const { return static_cast<std::uint64_t>(part_mib) << 20; }
};

}  // namespace longhand::app
