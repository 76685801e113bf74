#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "nn/batch.h"
#include "nn/module.h"
#include "nn/training/optimizer.h"

/// SHA-256 hashes of the data and the state of a training, as 64 hexadecimal digits
/// (docs/guide/verify.md).
namespace longhand::nn {

/// The hash of a list of batches: the SHA-256 of lines "HASH\n", one for each batch. The lines of
/// all ranks are joined in the order of the ranks. The hash of a batch covers its inputs, targets
/// and weights.
std::string hash_of(std::span<const Batch> batches, Communicator& ranks);

/// The hash of each tensor; the key is its name. The hash covers a line with the tensor's type and
/// shape, such as "f32 [2, 3]\n", and the tensor's bytes.
using TensorHashes = std::map<std::string, std::string, std::less<>>;
/// One hash for a list of tensors: the SHA-256 of lines "NAME HASH\n", one for each tensor, in the
/// order of the names.
std::string root_of(const TensorHashes& tensors);

/// The hashes of all parameters, and of all tensors of the optimizer's state.
struct StateHashes {
  TensorHashes parameters = {}, optimizer = {};
};
/// Hashes the state of a training. If `sharing` is given, its ranks have different parts of the
/// optimizer's state, and each of these ranks must call this function. Every rank receives all
/// hashes.
StateHashes hash_state(const Parameters& parameters, const Optimizer& optimizer,
                       Communicator* sharing = nullptr);
/// The hashes of the tensors in a checkpoint's files. They equal the hashes that hash_state()
/// returns for the state that was saved.
StateHashes hash_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
