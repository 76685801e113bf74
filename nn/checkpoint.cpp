#include "nn/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/safetensors_parts.h"
#include "nn/released_names.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

const std::string model_file = "model", optimizer_file = "optimizer";  // .safetensors
constexpr std::string_view prefix = "step-";
constexpr std::string_view hidden = ".unfinished-";  // never a checkpoint, whatever it holds

struct Named {
  std::string name;
  Tensor tensor;
};

std::vector<Named> named(const Parameters& parameters) {
  std::vector<Named> all;
  for (const Parameter& p : parameters.all()) all.push_back({p.name(), p.value()});
  return all;
}

std::vector<Named> named(const AdamOptimizer& optimizer) {
  std::vector<Named> all;
  for (auto& state : optimizer.state()) all.push_back({std::move(state.name), state.tensor});
  return all;
}

/// Under their released names where the file has those (nn/released_names.h).
std::vector<Named> as_named_in(const SafetensorsParts& parts, std::vector<Named> tensors) {
  for (Named& n : tensors) {
    if (parts.find(n.name).entry) continue;
    if (std::string released = released_name(n.name); parts.find(released).entry) {
      n.name = std::move(released);
    }
  }
  return tensors;
}

/// Their bytes come through `host`, one tensor at a time.
std::vector<SafetensorsItem> items_of(const std::vector<Named>& tensors,
                                      std::vector<std::byte>& host) {
  std::vector<SafetensorsItem> items;
  for (const Named& n : tensors) {
    const auto bytes = [&host, tensor = n.tensor]() -> std::span<const std::byte> {
      host.resize(tensor.bytes());
      tensor.backend().download(host.data(), tensor.address(), tensor.bytes());
      return host;
    };
    items.push_back({n.name, n.tensor.dtype(), n.tensor.shape(), bytes});
  }
  return items;
}

void write(const fs::path& folder, const std::string& name, const std::vector<Named>& tensors,
           const Metadata& metadata, std::uint64_t most) {
  std::vector<std::byte> host;
  write_safetensors_parts(folder, name, items_of(tensors, host), metadata, most);
}

SafetensorsParts open(const fs::path& folder, const std::string& name) {
  SafetensorsParts parts = SafetensorsParts::open(folder, name);
  parts.check_exact();
  return parts;
}

void require_fit(const SafetensorsParts& parts, const std::vector<Named>& tensors) {
  std::size_t found = 0;
  for (const Named& n : tensors) parts.at(n.name, n.tensor.dtype(), n.tensor.shape());
  for (const SafetensorsFile& file : parts.files()) found += file.entries().size();
  if (found == tensors.size()) return;
  for (const SafetensorsFile& file : parts.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      const bool known = std::any_of(tensors.begin(), tensors.end(),
                                     [&](const Named& n) { return n.name == entry.name; });
      LONGHAND_CHECK(known, file.name(), ": tensor ", quote(entry.name), ": expected none, got ",
                     entry.shape, " ", entry.type, "; the model has no such parameter");
    }
  }
}

void read(const SafetensorsParts& parts, const std::vector<Named>& tensors) {
  for (const Named& n : tensors) {
    const auto bytes = parts.find(n.name).entry->bytes;
    n.tensor.backend().upload(n.tensor.address(), bytes.data(), bytes.size());
  }
}

template <class Number>
Number parse(std::string_view text, const SafetensorsFile& file, std::string_view key) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  LONGHAND_CHECK(error == std::errc() && end == text.data() + text.size(), file.name(),
                 ": metadata ", key, ": expected a number, got ", quote(text));
  return value;
}

CheckpointInfo info_of(const SafetensorsFile& file) {
  CheckpointInfo info;
  LONGHAND_CHECK(file.metadata().contains("step"), file.name(),
                 ": metadata step: expected a number, got none; this is no checkpoint");
  for (const auto& [key, value] : file.metadata()) {
    if (key == "step") {
      info.step = parse<std::int64_t>(value, file, key);
    } else if (key == "score") {
      info.score = parse<double>(value, file, key);
    } else {
      info.more[key] = value;
    }
  }
  return info;
}

/// Parts have it all alike.
CheckpointInfo info_of(const SafetensorsParts& parts) {
  const SafetensorsFile& first = parts.files().front();
  for (const SafetensorsFile& file : parts.files()) {
    LONGHAND_CHECK(file.metadata() == first.metadata(), file.name(),
                   ": metadata: expected that of ", first.name(),
                   ", got another; these are parts of two checkpoints");
  }
  return info_of(first);
}

Metadata metadata_of(const CheckpointInfo& info) {
  Metadata metadata = info.more;
  metadata["step"] = std::to_string(info.step);
  if (info.score) {
    char digits[32];  // the shortest text that reads back as the same number
    metadata["score"] = std::string(digits, std::to_chars(digits, digits + 32, *info.score).ptr);
  }
  return metadata;
}

std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

void remove_folder(const fs::path& folder) {
  // Renamed first: a folder that is half removed must not look like a checkpoint.
  const fs::path doomed =
      folder.parent_path() / (std::string(hidden) + "old-" + folder.filename().string());
  std::error_code error;
  fs::remove_all(doomed, error);
  fs::rename(folder, doomed, error);
  LONGHAND_CHECK(!error, "cannot remove ", folder.string(), ": ", error.message());
  fs::remove_all(doomed, error);
  LONGHAND_CHECK(!error, "cannot remove ", doomed.string(), ": ", error.message());
}

}  // namespace

void save_checkpoint(const fs::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const AdamOptimizer* optimizer,
                     std::uint64_t most) {
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  const fs::path unfinished = parent / (std::string(hidden) + std::to_string(::getpid()) + "-" +
                                        folder.filename().string());
  std::error_code error;
  fs::remove_all(unfinished, error);
  fs::create_directories(unfinished, error);
  LONGHAND_CHECK(!error, "cannot make ", unfinished.string(), ": ", error.message());
  try {
    write(unfinished, model_file, named(parameters), metadata_of(info), most);
    if (optimizer) {
      write(unfinished, optimizer_file, named(*optimizer), {{"step", std::to_string(info.step)}},
            most);
    }
    sync_folder(unfinished);
    if (fs::exists(folder)) remove_folder(folder);
    fs::rename(unfinished, folder, error);
    LONGHAND_CHECK(!error, "cannot rename ", unfinished.string(), " to ", folder.string(), ": ",
                   error.message());
    sync_folder(parent);
  } catch (...) {
    fs::remove_all(unfinished, error);
    throw;
  }
}

CheckpointInfo load_checkpoint(const fs::path& folder, const Parameters& parameters,
                               const AdamOptimizer* optimizer) {
  const auto model = open(folder, model_file);
  const CheckpointInfo info = info_of(model);
  const auto values = as_named_in(model, named(parameters));
  require_fit(model, values);
  if (optimizer) {
    const auto file = open(folder, optimizer_file);
    const auto moments = as_named_in(file, named(*optimizer));
    require_fit(file, moments);
    const std::int64_t step = info_of(file).step;
    LONGHAND_CHECK(step == info.step, file.name(), ": metadata step: expected ", info.step,
                   " as beside it, got ", step);
    read(file, moments);
  }
  read(model, values);
  return info;
}

CheckpointInfo read_checkpoint_info(const fs::path& folder) {
  return info_of(open(folder, model_file));
}

void check_file_size(const Parameters& parameters, const AdamOptimizer& optimizer,
                     const Metadata& more, std::uint64_t most) {
  // The longest metadata that a save may have, so that none later takes more room.
  const CheckpointInfo longest{.step = std::numeric_limits<std::int64_t>::min(),
                               .score = -std::numeric_limits<double>::min(),
                               .more = more};
  std::vector<std::byte> none;
  cut_into_parts(model_file, items_of(named(parameters), none), metadata_of(longest), most);
  cut_into_parts(optimizer_file, items_of(named(optimizer), none),
                 {{"step", std::to_string(longest.step)}}, most);
}

CheckpointStore::CheckpointStore(fs::path folder, int keep, std::uint64_t most)
    : folder_(std::move(folder)), keep_(keep), most_(most) {
  LONGHAND_CHECK(keep >= 1, "checkpoints: expected to keep at least 1, got ", keep);
}

void CheckpointStore::clean() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    // Folders half written, and what a kill left of the file `best`.
    const std::string name = entry.path().filename().string();
    if (name.starts_with(hidden) || is_temporary(name)) fs::remove_all(entry.path(), error);
  }
}

void CheckpointStore::save(const CheckpointInfo& info, const Parameters& parameters,
                           const AdamOptimizer& optimizer) const {
  save_checkpoint(path(info.step), info, parameters, &optimizer, most_);
  prune();
}

void CheckpointStore::mark_best(std::int64_t step) const {
  write_atomically(folder_ / "best", text(prefix, step, "\n"));
  prune();
}

fs::path CheckpointStore::path(std::int64_t step) const { return folder_ / text(prefix, step); }

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (const auto step = step_of(entry.path().filename().string())) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<std::int64_t> CheckpointStore::latest() const {
  const auto all = steps();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::optional<std::int64_t> CheckpointStore::best() const {
  std::ifstream file(folder_ / "best");
  std::string name;
  if (!std::getline(file, name)) return std::nullopt;
  const auto step = step_of(name);
  if (!step || !fs::exists(path(*step))) return std::nullopt;
  return step;
}

void CheckpointStore::prune() const {
  const auto all = steps();
  const auto kept = best();
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < all.size(); ++i) {
    if (all[i] != kept) remove_folder(path(all[i]));
  }
}

}  // namespace longhand::nn
