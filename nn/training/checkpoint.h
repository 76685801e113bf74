#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/folder.h"
#include "nn/module.h"
#include "nn/training/optimizer.h"

namespace longhand::nn {

using Metadata = std::map<std::string, std::string, std::less<>>;

/// The names of folders that are not (yet) a complete checkpoint begin with this prefix.
inline constexpr std::string_view unfinished_prefix = ".unfinished-";

/// "step-N", the name of a run's checkpoint of step N. step_of() is the inverse; no value for other
/// names.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view name);

/// The contents of a checkpoint besides its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::optional<double> score = {};  // score of the evaluation at this step; never NaN
  Metadata more = {};                // further metadata of the caller
};

/// Writes a checkpoint. It is a folder with model.safetensors, which contains the parameters by
/// name, and, if training is to be resumed from it, optimizer.safetensors, which contains the
/// optimizer's state. Both contain checksums. The file `score` is added once the checkpoint has
/// been evaluated. The folder gets its name only when it is complete. If one of the two files would
/// exceed `most` bytes (0: no limit), it is split into parts with an index
/// (core/safetensors_parts.h).
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer,
                     std::uint64_t most = 0);
/// As above, for ranks that share the optimizer's state. All of them must call it at the same time.
/// Each rank writes the values and the state of the parameters that it owns to separate parts. When
/// all parts are written, rank 0 writes the indices and renames the folder. All ranks must share a
/// file system.
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer& optimizer, std::uint64_t most,
                     Communicator& ranks);
void save_checkpoint(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer = nullptr,
                     std::uint64_t most = 0);

/// Throws an Error if a tensor is too large for a checkpoint file of at most `most` bytes.
void check_file_size(const Parameters& parameters, const Optimizer& optimizer, const Metadata& more,
                     std::uint64_t most);

/// Writes the score into the existing checkpoint `folder`.
void save_score(const Folder& folder, double score);

/// Loads a checkpoint into parameters (and the optimizer's state, if given), which must have the
/// same names, types and shapes. f32 values are rounded to bf16 parameters, and bf16 values are
/// converted to f32 parameters. A checkpoint of step 0 may lack the optimizer's state; the current
/// state is then kept. If a tensor does not match, has a wrong checksum or contains NaN or
/// infinity, an Error names the tensor, and nothing is changed. A folder named step-N with another
/// step is also an Error.
CheckpointInfo load_checkpoint(const std::filesystem::path& folder, const Parameters& parameters,
                               const Optimizer* optimizer = nullptr);
/// Loads the parameters only, for a model that starts from another model. Parameters in `own` that
/// the checkpoint lacks keep their values.
void load_values(const std::filesystem::path& folder, const Parameters& parameters,
                 std::span<const Parameter> own = {});
CheckpointInfo read_checkpoint_info(const std::filesystem::path& folder);
/// True if the checkpoint stores its matrices in bf16.
bool has_bf16_matrices(const std::filesystem::path& folder);

/// The result of reading a whole checkpoint and verifying its checksums. Damage throws a one-line
/// Error.
struct CheckedCheckpoint {
  /// false: the checkpoint has no checksums, so only sizes and steps were compared
  bool checksums = false;
  bool optimizer = false;  // false: the optimizer's state is missing, so training cannot be resumed
};
CheckedCheckpoint check_checkpoint(const std::filesystem::path& folder);
/// True if the folder contains files of a checkpoint, even if they are damaged.
bool is_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
