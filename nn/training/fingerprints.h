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

/// The hash of a list of batches: of the lines "HASH\n", one for each batch. `ranks` combine their
/// lists in the order of the ranks. A batch is hashed with all of its members.
std::string hash_of(std::span<const Batch> batches, Communicator& ranks);

/// The hash of each tensor by name. A tensor is hashed as its type and shape, "f32 [2, 3]\n",
/// followed by its bytes.
using TensorHashes = std::map<std::string, std::string, std::less<>>;
/// The hash of the lines "NAME HASH\n", in the order of the names.
std::string root_of(const TensorHashes& tensors);

/// The hashes of all parameters, and of all tensors of the optimizer's state.
struct StateHashes {
  TensorHashes parameters = {}, optimizer = {};
};
/// If `sharing` is given, its ranks share the optimizer's state, and each of them must call this
/// function. Every rank receives all hashes.
StateHashes hash_state(const Parameters& parameters, const Optimizer& optimizer,
                       Communicator* sharing = nullptr);
/// The hashes of the tensors in a checkpoint's files. They equal those of the saved state.
StateHashes hash_checkpoint(const std::filesystem::path& folder);

}  // namespace longhand::nn
