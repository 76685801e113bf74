#include "nn/training/run_checkpoints.h"

#include <utility>

namespace longhand::nn {

RunCheckpoints::RunCheckpoints(CheckpointOptions options, const Parameters& parameters,
                               const Optimizer& optimizer, bool writes)
    : options_(std::move(options)),
      parameters_(parameters),
      optimizer_(optimizer),
      writes_(writes) {
  if (options_.folder.empty()) return;
  store_.emplace(options_.folder, options_.keep, options_.most_file_bytes);
  check_file_size(parameters_, optimizer_, options_.metadata, options_.most_file_bytes);
}

void RunCheckpoints::open() {
  if (writes()) store_->open();
}

CheckpointInfo RunCheckpoints::load(const std::filesystem::path& checkpoint) {
  CheckpointInfo info = load_checkpoint(checkpoint, parameters_, &optimizer_);
  saved_ = info.step;
  best_ = info.score;
  if (!store_ || store_->path(info.step) != checkpoint) return info;
  if (const std::optional<std::int64_t> best = store_->best_up_to(info.step)) {
    best_ = read_checkpoint_info(store_->path(*best)).score;
  }
  // set_aside_after() also writes the file `best` anew, from the scores. The file may be damaged,
  // or it may be missing because the run ended before it was written.
  if (writes() && store_->latest() == info.step) store_->set_aside_after(info.step);
  return info;
}

std::optional<std::filesystem::path> RunCheckpoints::latest() const {
  const auto step = store_ ? store_->latest() : std::nullopt;
  if (!step) return std::nullopt;
  return store_->path(*step);
}

std::optional<std::filesystem::path> RunCheckpoints::save(std::int64_t step,
                                                          Communicator* sharing) {
  const CheckpointInfo info{.step = step, .more = options_.metadata};
  if (sharing) {
    store_->save(info, parameters_, optimizer_, *sharing);
  } else {
    if (!wants(step)) return std::nullopt;
    store_->save(info, parameters_, &optimizer_);
  }
  saved_ = step;
  return store_->path(step);
}

void RunCheckpoints::score(std::int64_t step, double score) {
  if (writes()) store_->save_score(step, score);
  if (best_ && score <= *best_) return;
  best_ = score;
  if (writes()) store_->mark_best(step);
}

}  // namespace longhand::nn
