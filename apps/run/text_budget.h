#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/run/config.h"

namespace longhand::app {

/// The time, speed and text with which `longhand train --minutes` trains a language model.
struct TextBudget {
  double seconds = 0;      // time until the training must end
  double speed = 0;        // operations per second of training steps on this machine
  std::int64_t bytes = 0;  // size of the part of the text that is trained on

  double operations() const { return seconds * speed; }
};

/// --minutes requires at least this many bytes to train on.
inline constexpr std::int64_t shortest_text = 20'000;

/// Number of tokens of the tokenizer that is trained on the text, including 256 tokens for single
/// bytes.
std::int64_t vocabulary_for(const TextBudget& budget);

/// Sets the model, the batch size and the optimizer as the budget allows. Settings that a file or a
/// flag has set are kept. The tokenizer must be set already. Returns lines that describe the chosen
/// settings and the reasons.
std::vector<std::string> choose_text_settings(Config& config, const TextBudget& budget);

/// The measurements of a machine by which a training is planned. Tests replace these functions.
struct Machine {
  std::function<double()> elapsed;  // seconds since the command started
  std::function<double()> speed;    // an estimate of TextBudget::speed
  /// Mean time of a training step with these settings, in seconds.
  std::function<double(const Config&)> seconds_per_step;
};

/// This machine. It measures the duration of a step with a model that is discarded afterwards. The
/// measured steps take about `calibration` seconds.
Machine this_machine(const ComputeSettings& compute, double calibration);

/// A training that ends within a given time.
struct TextPlan {
  Config config;
  double training_ends = 0;  // time at which training must stop, in seconds since the start
};

/// Plans a training of the task `text` that ends `seconds` seconds after the command started.
/// Unless the configuration names a tokenizer, trains one and writes it to the folder of the run.
/// `say` is called with each line that describes the plan.
TextPlan plan_text_training(const Config& config, const std::filesystem::path& run, double seconds,
                            const Machine& machine,
                            const std::function<void(const std::string&)>& say);

}  // namespace longhand::app
