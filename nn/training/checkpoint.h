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

/// How names of folders begin that are not a whole checkpoint, whatever they hold.
inline constexpr std::string_view unfinished_prefix = ".unfinished-";

/// "step-N", the name of a run's checkpoint of step N; none for other names.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view name);

/// What a checkpoint says beside its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::optional<double> score = {};  // of the evaluation at this step; never NaN
  Metadata more = {};                // whatever the caller wants back
};

/// A checkpoint is a folder: model.safetensors, with the parameters by name, and, when it is for
/// going on, optimizer.safetensors with what the optimizer remembers, both with checksums; and the
/// file `score` once there is one. Either all of model and optimizer is there or none. Where one of
/// the two would be larger than `most` bytes (0: no limit) it lies in parts with an index
/// (core/safetensors_parts.h).
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer,
                     std::uint64_t most = 0);
/// The same, written by ranks that share the optimizer's state, all at once: each writes the values
/// and the state of the parameters that it owns, in parts of its own, and rank 0, when all parts
/// are there, the indices and the folder's name. All ranks see the same folder.
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer& optimizer, std::uint64_t most,
                     Communicator& ranks);
void save_checkpoint(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer = nullptr,
                     std::uint64_t most = 0);

/// Refused where a tensor is larger than a file of a checkpoint may be.
void check_file_size(const Parameters& parameters, const Optimizer& optimizer, const Metadata& more,
                     std::uint64_t most);

/// Writes the score of a checkpoint that is there, `folder`.
void save_score(const Folder& folder, double score);

/// Reads it into parameters (and moments, if wanted) of the same names, types and shapes; values of
/// f32 are rounded to parameters of bf16, and those of bf16 read as f32. At step 0 there may be no
/// moments, which stay as they are. What does not fit, does not match its checksum or is not
/// finite is an Error that names the tensor, before anything is changed. So is a folder named
/// step-N that holds another step.
CheckpointInfo load_checkpoint(const std::filesystem::path& folder, const Parameters& parameters,
                               const Optimizer* optimizer = nullptr);
/// The parameters alone, for a model that begins with another's. Those of `own` that the checkpoint
/// lacks stay as they are.
void load_values(const std::filesystem::path& folder, const Parameters& parameters,
                 std::span<const Parameter> own = {});
CheckpointInfo read_checkpoint_info(const std::filesystem::path& folder);
/// Whether matrices are stored in bf16.
bool has_bf16_matrices(const std::filesystem::path& folder);

/// Reads all of it and compares it with its checksums; refused in one line where it is damaged.
struct CheckedCheckpoint {
  bool checksums = false;  // false: it was written without; only sizes and steps were compared
  bool optimizer = false;  // false: there are no moments, so training cannot go on from it
};
CheckedCheckpoint check_checkpoint(const std::filesystem::path& folder);
/// Whether a folder holds files of a checkpoint, sound or not.
bool is_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
