#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/npy.h"
#include "nn/batch.h"

/// Tokens in and out of the program as arrays.
namespace longhand::app {

/// The sequences of a file (.npy, .npz, .safetensors), in batches:
///   tokens    integers [n], one sequence, or [sequences, n]; or [n] with
///   lengths   [sequences], which add up to n
///   and, where there are any, targets [n, choices] or as tokens (negative: not counted), weights
///   (as targets), positions (as tokens) and head [1];
/// or such arrays behind "batches.0.", "batches.1.", ..., as `longhand data --step` writes them.
/// Refused in one line naming file and array where they do not fit together, or a token is not
/// below `vocabulary`.
std::vector<nn::Batch> read_token_batches(const std::filesystem::path& file,
                                          std::int32_t vocabulary);

/// The same, refused where they are more than tokens: each sequence by itself.
std::vector<std::vector<std::int32_t>> read_token_sequences(const std::filesystem::path& file,
                                                            std::int32_t vocabulary);

/// Lists of numbers one after another: NAME [sum of lengths], and LENGTHS [lists].
void add_lists(std::vector<NamedTensor>& arrays, Backend& host, const std::string& name,
               const std::string& lengths, std::span<const std::vector<std::int32_t>> lists);

}  // namespace longhand::app
