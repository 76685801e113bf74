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

/// Prefix of the names of folders that are not a complete checkpoint.
inline constexpr std::string_view unfinished_prefix = ".unfinished-";

/// "step-N", the name of a run's checkpoint of step N. step_of() returns N, or no value if a name
/// has another form.
std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of(std::string_view name);

/// The contents of a checkpoint besides its tensors.
struct CheckpointInfo {
  std::int64_t step = 0;
  std::optional<double> score = {};  // score of this step's evaluation; never NaN
  Metadata more = {};                // further metadata of the caller
};

/// Writes a checkpoint: a folder with model.safetensors, which contains the parameters and buffers
/// by name. If `optimizer` is given, its state is written to optimizer.safetensors, so that
/// training can be resumed. Both files have checksums. If a file would exceed `most` bytes (0: no
/// limit), it is split into parts with an index (core/safetensors_parts.h). If info.score has a
/// value, the file `score` contains it. The folder gets the name `name` only when it is complete.
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer,
                     std::uint64_t most = 0);
/// Like save_checkpoint() above, for ranks that share the optimizer's state. A collective
/// operation: all ranks must call this function. Each rank writes parts of its own, with the values
/// and the state of its own parameters. Then rank 0 writes the indices and renames the folder. All
/// ranks must use the same file system.
void save_checkpoint(const Folder& parent, const std::string& name, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer& optimizer, std::uint64_t most,
                     Communicator& ranks);
void save_checkpoint(const std::filesystem::path& folder, const CheckpointInfo& info,
                     const Parameters& parameters, const Optimizer* optimizer = nullptr,
                     std::uint64_t most = 0);

/// Throws an Error if a tensor is too large for a checkpoint file of at most `most` bytes.
void check_file_size(const Parameters& parameters, const Optimizer& optimizer, const Metadata& more,
                     std::uint64_t most);

/// Writes the score into a checkpoint's folder, which must exist.
void save_score(const Folder& folder, double score);

/// Loads a checkpoint into the parameters and, if given, the optimizer. The checkpoint must contain
/// exactly the tensors of the model and the optimizer, with the same names, shapes and types. Only
/// f32 and bf16 values of parameters and buffers are converted to each other. A checkpoint of step
/// 0 may lack the optimizer's state, and the optimizer is then not changed.
///
/// If a tensor does not match, has a wrong checksum or contains NaN or infinity, throws an Error
/// that names the tensor. Also throws an Error if the folder is named step-N, but the checkpoint is
/// not that of step N. After an Error, nothing is changed.
CheckpointInfo load_checkpoint(const std::filesystem::path& folder, const Parameters& parameters,
                               const Optimizer* optimizer = nullptr);
/// Loads only the parameters, for a model that starts with the values of another model. If the
/// checkpoint lacks a parameter that is in `own`, the parameter keeps its value.
void load_values(const std::filesystem::path& folder, const Parameters& parameters,
                 std::span<const Parameter> own = {});
CheckpointInfo read_checkpoint_info(const std::filesystem::path& folder);
/// True if the checkpoint stores its matrices in bf16.
bool has_bf16_matrices(const std::filesystem::path& folder);

/// True if the checkpoint stores matrices in blocks (core/block_matrix.h). A model with
/// Storage::deferred then has its matrices in blocks after load_checkpoint(). The matrices of other
/// models are decoded.
bool has_blocks(const std::filesystem::path& folder);

/// The result of check_checkpoint(), which reads a whole checkpoint and verifies its checksums. If
/// the checkpoint is damaged, check_checkpoint() throws a one-line Error instead.
struct CheckedCheckpoint {
  /// false: the checkpoint has no checksums, so only sizes and step numbers were checked
  bool checksums = false;
  bool optimizer = false;  // false: the optimizer's state is missing; training cannot be resumed
};
CheckedCheckpoint check_checkpoint(const std::filesystem::path& folder);
/// True if the folder contains files of a checkpoint, even if they are damaged.
bool is_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
