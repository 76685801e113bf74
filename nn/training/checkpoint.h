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

/// Names of folders that are not a whole checkpoint begin with this, whatever the folder holds.
inline constexpr std::string_view unfinished_prefix = ".unfinished-";

/// "step-N", the name of a run's checkpoint of step N; none for other names.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view name);

/// The contents of a checkpoint besides its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::optional<double> score = {};  // of the evaluation at this step; never NaN
  Metadata more = {};                // anything else that the caller wants to store
};

/// Writes a checkpoint: a folder with model.safetensors, which holds the parameters by name, and,
/// if training is to go on from it, optimizer.safetensors, which holds the optimizer's state. Both
/// carry checksums. The file `score` is added once the checkpoint has been evaluated. The folder
/// appears under its name only when it is complete. Where one of the two files would exceed `most`
/// bytes (0: no limit), it is split into parts with an index (core/safetensors_parts.h).
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer,
                     std::uint64_t most = 0);
/// The same, for ranks that share the optimizer's state; all of them call it at once. Each rank
/// writes the values and the state of the parameters that it owns into its own parts. When all
/// parts are written, rank 0 writes the indices and names the folder. All ranks must see the same
/// file system.
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer& optimizer, std::uint64_t most,
                     Communicator& ranks);
void save_checkpoint(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer = nullptr,
                     std::uint64_t most = 0);

/// Throws if a tensor is larger than a file of a checkpoint may be.
void check_file_size(const Parameters& parameters, const Optimizer& optimizer, const Metadata& more,
                     std::uint64_t most);

/// Writes the score into the existing checkpoint `folder`.
void save_score(const Folder& folder, double score);

/// Reads it into parameters (and moments, if wanted) of the same names, types and shapes; values of
/// f32 are rounded to parameters of bf16, and those of bf16 read as f32. At step 0 there may be no
/// moments, which stay as they are. What does not fit, does not match its checksum or is not
/// finite is an Error that names the tensor, before anything is changed. So is a folder named
/// step-N that holds another step.
CheckpointInfo load_checkpoint(const std::filesystem::path& folder, const Parameters& parameters,
                               const Optimizer* optimizer = nullptr);
/// Reads the parameters alone, for a model that starts from another one. Parameters of `own` that
/// the checkpoint lacks stay as they are.
void load_values(const std::filesystem::path& folder, const Parameters& parameters,
                 std::span<const Parameter> own = {});
CheckpointInfo read_checkpoint_info(const std::filesystem::path& folder);
/// True if the checkpoint stores matrices in bf16.
bool has_bf16_matrices(const std::filesystem::path& folder);

/// The result of reading a whole checkpoint and comparing it with its checksums. Damage is an error
/// of one line.
struct CheckedCheckpoint {
  bool checksums = false;  // false: it was written without any; only sizes and steps were compared
  bool optimizer = false;  // false: it holds no moments, so training cannot go on from it
};
CheckedCheckpoint check_checkpoint(const std::filesystem::path& folder);
/// True if the folder holds files of a checkpoint, sound or damaged.
bool is_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
