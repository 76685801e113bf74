#include "nn/training/checkpoint_store.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quote.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

constexpr std::string_view set_aside = "set-aside-";
const std::string best_file = "best";

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep, std::uint64_t most)
    : folder_(std::move(folder)), keep_(keep), most_(most) {
  LONGHAND_CHECK(keep >= 1,
                 "checkpoints: the number of checkpoints to keep: expected at least 1, got ", keep);
}

const Folder& CheckpointStore::held() {
  if (!held_) held_ = Folder::make(folder_);
  return *held_;
}

void CheckpointStore::open() {
  for (const std::string& name : held().names()) {
    if (name.starts_with(unfinished_prefix) || is_temporary(name)) {
      held().remove(name);
    } else if (step_of(name) && fs::is_directory(folder_ / name)) {
      // Remove the temporary file that an interrupted save_score() left in the checkpoint's folder.
      const Folder checkpoint = held().make_folder(name);
      for (const std::string& file : checkpoint.names()) {
        if (is_temporary(file)) checkpoint.remove(file);
      }
    }
  }
}

void CheckpointStore::save(const CheckpointInfo& info, const Parameters& parameters,
                           const Optimizer* optimizer) {
  try {
    save_checkpoint(held(), checkpoint_name(info.step), info, parameters, optimizer, most_);
  } catch (const Error&) {
    // If the folder of the checkpoints was removed, moved or replaced, report this as the cause.
    held().require_in_place();
    throw;
  }
  after_save(info.step);
}

void CheckpointStore::save(const CheckpointInfo& info, const Parameters& parameters,
                           const Optimizer& optimizer, Communicator& ranks) {
  ranks.together([&] { held(); });
  save_checkpoint(held(), checkpoint_name(info.step), info, parameters, optimizer, most_, ranks);
  ranks.together([&] {
    if (ranks.rank() == 0) after_save(info.step);
  });
}

void CheckpointStore::after_save(std::int64_t step) {
  LONGHAND_CHECK(held().in_place(), folder_.string(),
                 ": the folder was moved or replaced while it was in use; the checkpoint of step ",
                 step, " is in the moved folder");
  prune();
}

void CheckpointStore::save_score(std::int64_t step, double score) {
  nn::save_score(held().make_folder(checkpoint_name(step)), score);
}

void CheckpointStore::mark_best(std::int64_t step) {
  write_atomically(held(), best_file, checkpoint_name(step) + "\n");
  prune();
}

void CheckpointStore::set_aside_after(std::int64_t step) {
  for (const std::int64_t later : steps()) {
    if (later <= step) continue;
    const std::string name = checkpoint_name(later), aside = std::string(set_aside) + name;
    held().remove(aside);
    held().rename(name, aside);
  }
  if (const std::optional<std::int64_t> best = best_up_to(step)) {
    write_atomically(held(), best_file, checkpoint_name(*best) + "\n");
  } else {
    held().remove(best_file);
  }
  held().sync();
}

std::optional<std::int64_t> CheckpointStore::best_up_to(std::int64_t step) const {
  std::optional<std::int64_t> best;
  double highest = 0;
  for (const std::int64_t one : steps()) {
    if (one > step) break;
    try {
      const std::optional<double> score = read_checkpoint_info(path(one)).score;
      if (!score || (best && *score <= highest)) continue;
      best = one;
      highest = *score;
    } catch (const Error&) {  // a damaged checkpoint cannot be the best one
    }
  }
  return best;
}

fs::path CheckpointStore::path(std::int64_t step) const { return folder_ / checkpoint_name(step); }

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> found;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder_, missing)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && is_checkpoint(entry.path())) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::int64_t> CheckpointStore::latest() const {
  const auto all = steps();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<std::int64_t> CheckpointStore::best() const {
  std::error_code missing;
  if (!fs::exists(folder_ / best_file, missing)) return std::nullopt;
  std::string name = Folder(folder_).read(best_file, 1 << 10).value_or("");
  if (name.ends_with('\n')) name.pop_back();
  const auto step = step_of(name);
  const std::string file = (folder_ / best_file).string();
  LONGHAND_CHECK(step, file, ": damaged: expected the name of a checkpoint, such as step-100, got ",
                 quote(name), "; `longhand train --resume` rewrites this file");
  LONGHAND_CHECK(is_checkpoint(path(*step)), file,
                 ": expected the name of an existing checkpoint, got ", name,
                 ", which does not exist; `longhand train --resume` rewrites this file");
  return step;
}

std::optional<std::int64_t> CheckpointStore::last_sound_before(std::int64_t step) const {
  const auto all = steps();
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    if (*at >= step) continue;
    try {
      if (check_checkpoint(path(*at)).optimizer) return *at;
    } catch (const Error&) {  // damaged: try the checkpoint before it
    }
  }
  return std::nullopt;
}

void CheckpointStore::prune() {
  const auto all = steps();
  std::optional<std::int64_t> kept;
  try {
    kept = best();
    // the file `best` is damaged, so the best checkpoint is unknown and no checkpoint is removed
  } catch (const Error&) {
    return;
  }
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < all.size(); ++i) {
    if (all[i] == kept) continue;
    // The folder is renamed first, so that a partly removed folder does not look like a checkpoint.
    const std::string doomed = text(unfinished_prefix, "old-", checkpoint_name(all[i]));
    held().remove(doomed);
    held().rename(checkpoint_name(all[i]), doomed);
    held().remove(doomed);
  }
}

}  // namespace longhand::nn
