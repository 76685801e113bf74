#include "nn/training/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/safetensors_parts.h"
#include "core/tensor_file.h"
#include "nn/released_names.h"

namespace fs = std::filesystem;

namespace longhand::nn {
namespace {

// Each name stands for the file NAME.safetensors, or for its parts and their index.
const std::string model_file = "model", optimizer_file = "optimizer";
const std::string score_file = "score";
constexpr std::string_view checkpoint_prefix = "step-";

/// The part `number` of a matrix in blocks is stored as a u8 tensor with the name
/// "PARAMETER.partNUMBER.TYPE".
std::string part_name(const std::string& parameter, std::size_t number, const GgufType& type) {
  return text(parameter, ".part", number, '.', small_name(type));
}

std::vector<NamedTensor> named(const Parameters& parameters) {
  std::vector<NamedTensor> all;
  for (const Parameter& p : parameters.all()) {
    const std::vector<BlockRows>& parts = p.blocks().parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      all.push_back({part_name(p.name(), i, *parts[i].type), parts[i].bytes});
    }
    if (parts.empty()) all.push_back({p.name(), p.value()});
  }
  for (const Buffer& b : parameters.buffers()) all.push_back({b.name(), b.value()});
  return all;
}

std::vector<NamedTensor> named(const Optimizer& optimizer) {
  std::vector<NamedTensor> all;
  for (auto& state : optimizer.state()) all.push_back({std::move(state.name), state.tensor});
  return all;
}

/// Returns the tensors with their names in the file. A parameter that was renamed since version 0.1
/// may have its old name in the file (nn/released_names.h). If only the old name is in the file,
/// the tensor gets the old name.
std::vector<NamedTensor> as_named_in(const SafetensorsParts& parts,
                                     std::vector<NamedTensor> tensors) {
  for (NamedTensor& n : tensors) {
    if (parts.find(n.name).entry) continue;
    if (std::string released = released_name(n.name); parts.find(released).entry) {
      n.name = std::move(released);
    }
  }
  return tensors;
}

/// The blocks in which the file stores a parameter, with memory for them but without their
/// contents. Empty if the file does not store this parameter in blocks.
BlockMatrix blocks_in(const SafetensorsParts& file, const Parameter& p) {
  if (!p.accepts_blocks()) return {};
  BlockMatrix found{.parts = {}, .columns = p.shape().columns()};
  while (found.parts.size() < most_block_parts) {
    const std::size_t before = found.parts.size();
    for (const GgufType* const type : block_types()) {
      const auto entry = file.find(part_name(p.name(), before, *type)).entry;
      if (!entry) continue;
      LONGHAND_CHECK(entry->dtype == DType::u8 && entry->shape.rank() == 2 &&
                         found.columns % type->block == 0 &&
                         entry->shape.columns() == row_bytes(*type, found.columns),
                     file.name(), ": tensor ", quote(entry->name), ": expected u8 rows of ",
                     found.columns, " numbers in blocks, got ", entry->shape, " ", entry->type);
      found.parts.push_back({type, Tensor(p.backend(), entry->shape, DType::u8)});
      break;
    }
    if (found.parts.size() == before) break;
  }
  LONGHAND_CHECK(!found || found.rows() == p.shape().rows(), file.name(), ": ", p.name(),
                 ": expected blocks of ", p.shape().rows(), " rows, got ", found.rows());
  return found;
}

/// Gives memory to the matrices of a model that has none yet (Storage::deferred): blocks if the
/// file stores the matrix in blocks, otherwise numbers of the type in the file.
void allocate_as_in(const SafetensorsParts& file, const Parameters& parameters) {
  for (const Parameter& p : parameters.all()) {
    if (p.var() || p.blocks()) continue;
    if (BlockMatrix blocks = blocks_in(file, p)) {
      p.put(std::move(blocks));
      continue;
    }
    const SafetensorsEntry* const entry = file.find(p.name()).entry;
    const bool is_bf16 = entry && entry->dtype == DType::bf16;
    p.allocate(is_bf16 && supports(p.backend(), DType::bf16) ? DType::bf16 : parameters.type());
  }
}

/// A matrix that the file stores in blocks, and the parameter with numbers that receives it.
struct Decoded {
  Parameter parameter;
  BlockMatrix blocks;
};
std::vector<Decoded> decoded_from(const SafetensorsParts& file, const Parameters& parameters) {
  std::vector<Decoded> all;
  for (const Parameter& p : parameters.all()) {
    if (p.blocks()) continue;
    if (BlockMatrix blocks = blocks_in(file, p)) all.push_back({p, std::move(blocks)});
  }
  return all;
}

/// The tensors that are read from the file: those of the model, except that matrices that the file
/// stores in blocks are replaced by their blocks.
std::vector<NamedTensor> wanted_from(const SafetensorsParts& file, const Parameters& parameters,
                                     const std::vector<Decoded>& decoded) {
  std::vector<NamedTensor> all = as_named_in(file, named(parameters));
  for (const Decoded& d : decoded) {
    std::erase_if(all, [&](const NamedTensor& n) { return n.name == d.parameter.name(); });
    for (std::size_t i = 0; i < d.blocks.parts.size(); ++i) {
      const BlockRows& part = d.blocks.parts[i];
      all.push_back({part_name(d.parameter.name(), i, *part.type), part.bytes});
    }
  }
  return all;
}

void decode(const std::vector<Decoded>& decoded) {
  for (const Decoded& d : decoded) decode_blocks(d.blocks, d.parameter.value());
}

std::vector<SafetensorsItem> items_of(const std::vector<NamedTensor>& tensors) {
  std::vector<SafetensorsItem> items;
  for (const NamedTensor& n : tensors) items.push_back(item_of(n.name, n.tensor));
  return items;
}

void write(const Folder& folder, const std::string& name, const std::vector<NamedTensor>& tensors,
           const Metadata& metadata, std::uint64_t most) {
  write_safetensors_parts(folder, name, items_of(tensors), metadata, most);
}

SafetensorsParts open(const fs::path& folder, const std::string& name) {
  SafetensorsParts parts = SafetensorsParts::open(folder, name);
  parts.check_exact();
  return parts;
}

/// The type that the tensor must have in the file. This is the tensor's own type, but f32 tensors
/// may be stored as bf16, and bf16 tensors as f32.
DType stored_type(const SafetensorsParts& parts, const NamedTensor& n) {
  const SafetensorsEntry* const entry = parts.find(n.name).entry;
  const auto is_either = [](DType type) { return type == DType::f32 || type == DType::bf16; };
  const DType own = n.tensor.dtype();
  return entry && entry->dtype && is_either(*entry->dtype) && is_either(own) ? *entry->dtype : own;
}

void require_fit(const SafetensorsParts& parts, const std::vector<NamedTensor>& tensors,
                 bool converts = false) {
  std::size_t found = 0;
  for (const NamedTensor& n : tensors) {
    parts.at(n.name, converts ? stored_type(parts, n) : n.tensor.dtype(), n.tensor.shape());
  }
  for (const SafetensorsFile& file : parts.files()) found += file.entries().size();
  if (found == tensors.size()) return;
  for (const SafetensorsFile& file : parts.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      const bool known = std::any_of(tensors.begin(), tensors.end(),
                                     [&](const NamedTensor& n) { return n.name == entry.name; });
      LONGHAND_CHECK(
          known, file.name(), ": tensor ", quote(entry.name),
          ": expected no tensor of this name, because the model has no such parameter, got ",
          entry.shape, " ", entry.type);
    }
  }
}

void read(const SafetensorsParts& parts, const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& n : tensors) {
    const SafetensorsParts::Location place = parts.find(n.name);
    const std::span<const std::byte> bytes = place.entry->bytes;
    Backend& backend = n.tensor.backend();
    const DType stored = stored_type(parts, n);
    if (stored == n.tensor.dtype()) {
      backend.upload(n.tensor.address(), bytes.data(), bytes.size());
      place.file->forget(*place.entry);
      continue;
    }
    // Copies some rows at a time, so that memory never contains a whole tensor twice.
    const std::int64_t rows = n.tensor.shape().front();
    const std::int64_t width = n.tensor.size() / std::max<std::int64_t>(1, rows);
    const std::int64_t step =
        std::max<std::int64_t>(1, (1 << 20) / std::max<std::int64_t>(1, width));
    for (std::int64_t row = 0; row < rows; row += step) {
      const Tensor to = n.tensor.slice(row, std::min(step, rows - row));
      const Tensor from(backend, to.shape(), stored);
      const auto begin = static_cast<std::size_t>(row * width) * size_of(stored);
      backend.upload(from.address(), bytes.data() + begin, from.bytes());
      backend(Copy{.x = from, .y = to});
    }
    place.file->forget(*place.entry);
  }
}

/// The number of entries that are NaN or infinite, and the index of the first of them. Integer
/// tensors have none.
struct NotFiniteNumbers {
  std::size_t first = 0, count = 0;
};

template <class Bits>
NotFiniteNumbers not_finite(std::span<const std::byte> bytes, Bits exponent) {
  const auto at = [&](std::size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    return bits;
  };
  const std::size_t size = bytes.size() / sizeof(Bits);
  NotFiniteNumbers found;
  for (std::size_t i = 0; i < size; ++i) {
    found.count += (at(i) & exponent) == exponent ? 1u : 0u;
  }
  while (found.count > 0 && (at(found.first) & exponent) != exponent) ++found.first;
  return found;
}

/// Throws an Error if a tensor contains NaN or infinity. Training never saves such a tensor.
void require_finite(const SafetensorsParts& parts) {
  for (const SafetensorsFile& file : parts.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      NotFiniteNumbers bad;
      if (entry.dtype == DType::f32) bad = not_finite<std::uint32_t>(entry.bytes, 0x7f800000u);
      if (entry.dtype == DType::bf16) bad = not_finite<std::uint16_t>(entry.bytes, 0x7f80u);
      if (entry.dtype == DType::f64) {
        bad = not_finite<std::uint64_t>(entry.bytes, 0x7ff0000000000000u);
      }
      LONGHAND_CHECK(bad.count == 0, file.name(), ": tensor ", quote(entry.name),
                     ": damaged: expected finite numbers, got ", bad.count,
                     " infinities or NaNs, the first at index ", bad.first);
      file.forget(entry);
    }
  }
}

template <class Number>
Number parse(std::string_view text, const std::string& where) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  LONGHAND_CHECK(error == std::errc() && end == text.data() + text.size(), where,
                 ": expected a number, got ", quote(text));
  return value;
}

CheckpointInfo info_of(const SafetensorsFile& file) {
  CheckpointInfo info;
  LONGHAND_CHECK(file.metadata().contains("step"), file.name(),
                 ": metadata step: expected a number, got none; this is not a checkpoint");
  for (const auto& [key, value] : file.metadata()) {
    const std::string where = text(file.name(), ": metadata ", key);
    if (key == "step") {
      info.step = parse<std::int64_t>(value, where);
    } else if (key == "score") {  // older checkpoints store the score here
      info.score = parse<double>(value, where);
    } else {
      info.more[key] = value;
    }
  }
  return info;
}

/// The metadata of the model's or the optimizer's files. If there are several parts, throws an
/// Error unless all parts have the same metadata.
CheckpointInfo info_of(const SafetensorsParts& parts) {
  const SafetensorsFile& first = parts.files().front();
  for (const SafetensorsFile& file : parts.files()) {
    LONGHAND_CHECK(file.metadata() == first.metadata(), file.name(),
                   ": metadata: expected the metadata of ", first.name(),
                   ", got different metadata; the files are parts of two checkpoints");
  }
  return info_of(first);
}

/// The metadata and the score of a checkpoint. Throws an Error if the step in the folder's name is
/// not the step of the checkpoint.
CheckpointInfo info_of(const SafetensorsParts& model, const fs::path& folder) {
  CheckpointInfo info = info_of(model);
  const std::optional<std::int64_t> named = step_of(folder.filename().string());
  LONGHAND_CHECK(!named || *named == info.step, model.name(), ": metadata step: expected ",
                 named.value_or(0), ", the step in the folder's name, got ", info.step);
  std::string score = Folder(folder).read(score_file, 1 << 10).value_or("");
  if (score.ends_with('\n')) score.pop_back();
  if (!score.empty()) info.score = parse<double>(score, (folder / score_file).string());
  LONGHAND_CHECK(!info.score || !std::isnan(*info.score), (folder / score_file).string(),
                 ": damaged: expected a number, got ", quote(score));
  return info;
}

SafetensorsParts open_optimizer(const fs::path& folder, const CheckpointInfo& info) {
  SafetensorsParts optimizer = open(folder, optimizer_file);
  const std::int64_t step = info_of(optimizer).step;
  LONGHAND_CHECK(step == info.step, optimizer.name(), ": metadata step: expected ", info.step,
                 " as in the model's file, got ", step);
  return optimizer;
}

bool has_file(const fs::path& folder, const std::string& name) {
  std::error_code missing;
  return fs::exists(folder / (name + ".safetensors"), missing) ||
         fs::exists(folder / (name + ".safetensors.index.json"), missing);
}

Metadata metadata_of(const CheckpointInfo& info) {
  Metadata metadata = info.more;
  metadata["step"] = std::to_string(info.step);
  return metadata;
}

Metadata metadata_of(std::int64_t step, const Optimizer& optimizer) {
  return {{"step", std::to_string(step)}, {"optimizer", std::string(optimizer.kind())}};
}

std::string unfinished_name(const std::string& name) {
  return text(unfinished_prefix, ::getpid(), '-', name);
}

void remove_silently(const Folder& parent, const std::string& name) {
  try {
    parent.remove(name);
  } catch (const Error&) {  // the error that occurred first is reported
  }
}

/// Renames a folder to its final name. All of its files must already be written.
void finish_folder(const Folder& parent, const Folder& folder, const std::string& unfinished,
                   const std::string& name, const CheckpointInfo& info) {
  if (info.score) save_score(folder, *info.score);
  folder.sync();
  // If a folder with this name exists, it is exchanged with the new folder atomically. If the
  // system does not support this, the existing folder is renamed first.
  if (!parent.contains(name)) {
    parent.rename(unfinished, name);
  } else if (!parent.exchange(unfinished, name)) {
    const std::string old = text(unfinished_prefix, "old-", name);
    parent.remove(old);
    parent.rename(name, old);
    parent.rename(unfinished, name);
    parent.remove(old);
  }
  parent.sync();
  parent.remove(unfinished);
}

/// Each rank writes its own tensors to parts of its own. The parts of all ranks are numbered
/// consecutively. Rank 0 writes the index.
void write_own(const Folder& folder, const std::string& name,
               const std::vector<NamedTensor>& tensors, const Metadata& metadata,
               std::uint64_t most, Communicator& ranks) {
  std::vector<std::vector<SafetensorsItem>> parts;
  ranks.together([&] {
    if (!tensors.empty()) parts = cut_into_parts(name, items_of(tensors), metadata, most);
  });
  const std::array mine{static_cast<double>(parts.size())};
  const std::vector<double> counts = ranks.gather(std::span<const double>(mine));
  std::size_t first = 0, all = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto count = static_cast<std::size_t>(counts[r]);
    if (r < static_cast<std::size_t>(ranks.rank())) first += count;
    all += count;
  }
  if (all == 0) {
    // The optimizer has no state, so its file contains only metadata: the step and the name of the
    // optimizer.
    ranks.together([&] {
      if (ranks.rank() == 0) write(folder, name, {}, metadata, most);
    });
    return;
  }
  std::string lines;  // entries of the index: name, file and bytes of each tensor
  ranks.together([&] {
    for (const IndexedTensor& t : write_parts(folder, name, parts, metadata, first, all)) {
      lines += text(t.name, '\n', t.file, '\n', t.bytes, '\n');
    }
    folder.sync();
  });
  const std::vector<std::string> of_all = ranks.gather(std::string_view(lines));
  ranks.together([&] {
    if (ranks.rank() > 0) return;
    std::vector<IndexedTensor> tensors_of_all;
    for (const std::string& of_one : of_all) {
      std::istringstream in(of_one);
      for (std::string tensor, file, bytes;
           std::getline(in, tensor) && std::getline(in, file) && std::getline(in, bytes);) {
        tensors_of_all.push_back({tensor, file, parse<std::uint64_t>(bytes, name)});
      }
    }
    write_index(folder, name, tensors_of_all);
  });
}

void require_kind(const SafetensorsParts& parts, const Optimizer& optimizer) {
  const CheckpointInfo info = info_of(parts);
  const auto found = info.more.find("optimizer");
  // Older checkpoints do not contain the optimizer's name, but all of them contain the state of
  // Adam.
  const std::string kind = found == info.more.end() ? "adam" : found->second;
  LONGHAND_CHECK(kind == optimizer.kind(), parts.name(), ": expected the state of the optimizer ",
                 optimizer.kind(), ", got the state of ", kind);
}

}  // namespace

std::string checkpoint_name(std::int64_t step) { return text(checkpoint_prefix, step); }

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(checkpoint_prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + checkpoint_prefix.size(), end, step);
  if (error != std::errc() || stop != end) return std::nullopt;
  return step;
}

void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer, std::uint64_t most) {
  LONGHAND_CHECK(!optimizer || optimizer->holds_all(), name,
                 ": expected an optimizer that stores its whole state, got one that stores the "
                 "share of one rank");
  const std::string unfinished = unfinished_name(name);
  parent.remove(unfinished);
  try {
    const Folder folder = parent.make_folder(unfinished);
    write(folder, model_file, named(parameters), metadata_of(info), most);
    if (optimizer) {
      write(folder, optimizer_file, named(*optimizer), metadata_of(info.step, *optimizer), most);
    }
    finish_folder(parent, folder, unfinished, name, info);
  } catch (...) {
    remove_silently(parent, unfinished);
    throw;
  }
}

void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer& optimizer, std::uint64_t most,
                     Communicator& ranks) {
  const bool first = ranks.rank() == 0;
  const std::string unfinished = ranks.gather(std::string_view(unfinished_name(name))).front();
  try {
    ranks.together([&] {
      if (!first) return;
      parent.remove(unfinished);
      parent.make_folder(unfinished);
    });
    std::vector<NamedTensor> values;
    const std::vector<int> owners = optimizer.owners();
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const Parameter& p = parameters.all()[i];
      if (owners[i] == ranks.rank()) values.push_back({p.name(), p.value()});
    }
    std::optional<Folder> folder;
    ranks.together([&] { folder.emplace(parent.make_folder(unfinished)); });
    write_own(*folder, model_file, values, metadata_of(info), most, ranks);
    write_own(*folder, optimizer_file, named(optimizer), metadata_of(info.step, optimizer), most,
              ranks);
    ranks.together([&] {
      if (first) finish_folder(parent, *folder, unfinished, name, info);
    });
  } catch (...) {
    if (first) remove_silently(parent, unfinished);
    throw;
  }
}

void save_checkpoint(const fs::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer, std::uint64_t most) {
  const Folder parent = Folder::make(folder.has_parent_path() ? folder.parent_path() : ".");
  save_checkpoint(parent, folder.filename().string(), info, parameters, optimizer, most);
}

void save_score(const Folder& folder, double score) {
  char digits[32];  // receives the shortest text that is parsed as exactly `score`
  const char* const end = std::to_chars(digits, digits + sizeof digits, score).ptr;
  write_atomically(folder, score_file, std::string(static_cast<const char*>(digits), end) + "\n");
}

CheckpointInfo load_checkpoint(const fs::path& folder, const Parameters& parameters,
                               const Optimizer* optimizer) {
  const auto model = open(folder, model_file);
  const CheckpointInfo info = info_of(model, folder);
  allocate_as_in(model, parameters);
  const auto decoded = decoded_from(model, parameters);
  const auto values = wanted_from(model, parameters, decoded);
  require_fit(model, values, true);
  model.check_sums();
  require_finite(model);
  if (optimizer && (info.step > 0 || has_file(folder, optimizer_file))) {
    const auto file = open_optimizer(folder, info);
    require_kind(file, *optimizer);
    const auto moments = as_named_in(file, named(*optimizer));
    require_fit(file, moments);
    file.check_sums();
    require_finite(file);
    read(file, moments);
  }
  read(model, values);
  decode(decoded);
  return info;
}

void load_values(const fs::path& folder, const Parameters& parameters,
                 std::span<const Parameter> own) {
  const auto model = open(folder, model_file);
  info_of(model, folder);  // throws an Error unless the folder is a checkpoint
  allocate_as_in(model, parameters);
  const auto decoded = decoded_from(model, parameters);
  auto values = wanted_from(model, parameters, decoded);
  std::erase_if(values, [&](const NamedTensor& n) {
    return !model.find(n.name).entry && std::ranges::count(own, n.name, &Parameter::name) > 0;
  });
  require_fit(model, values, true);
  model.check_sums();
  require_finite(model);
  read(model, values);
  decode(decoded);
}

CheckpointInfo read_checkpoint_info(const fs::path& folder) {
  return info_of(open(folder, model_file), folder);
}

bool has_bf16_matrices(const fs::path& folder) {
  const auto model = open(folder, model_file);
  for (const SafetensorsFile& file : model.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      if (entry.shape.rank() >= 2 && entry.dtype == DType::bf16) return true;
    }
  }
  return false;
}

bool has_blocks(const fs::path& folder) {
  const auto model = open(folder, model_file);
  for (const SafetensorsFile& file : model.files()) {
    for (const SafetensorsEntry& entry : file.entries()) {
      if (entry.dtype == DType::u8) return true;
    }
  }
  return false;
}

CheckedCheckpoint check_checkpoint(const fs::path& folder) {
  const auto model = open(folder, model_file);
  model.check_sums();
  require_finite(model);
  const CheckpointInfo info = info_of(model, folder);
  if (!has_file(folder, optimizer_file)) return {model.has_checksums(), false};
  const auto optimizer = open_optimizer(folder, info);
  optimizer.check_sums();
  require_finite(optimizer);
  return {model.has_checksums() && optimizer.has_checksums(), true};
}

bool is_checkpoint(const fs::path& folder) {
  return has_file(folder, model_file) || has_file(folder, optimizer_file);
}

void check_file_size(const Parameters& parameters, const Optimizer& optimizer, const Metadata& more,
                     std::uint64_t most) {
  // The longest metadata that a save can write. If all tensors fit into files with this metadata,
  // later saves cannot fail because of the size limit.
  const CheckpointInfo longest{.step = std::numeric_limits<std::int64_t>::min(), .more = more};
  cut_into_parts(model_file, items_of(named(parameters)), metadata_of(longest), most);
  cut_into_parts(optimizer_file, items_of(named(optimizer)), metadata_of(longest.step, optimizer),
                 most);
}

}  // namespace longhand::nn
