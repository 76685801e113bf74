#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/npy.h"
#include "nn/batch.h"

/// Reads and writes tokens as arrays.
namespace longhand::app {

/// Reads the sequences of a file (.npy, .npz, .safetensors) as batches:
///   tokens    integers [n], one sequence, or [sequences, n]; or [n] with
///   lengths   [sequences], which add up to n
///   and optionally targets [n, choices] or shaped like tokens (negative: not scored), weights
///   (shaped like targets), positions (like tokens) and head [1];
/// or such arrays with prefixes "batches.0.", "batches.1.", ..., as `longhand data --step` writes
/// them. Throws a one-line Error that names file and array if they do not fit together, or if a
/// token is not below `vocabulary`.
std::vector<nn::Batch> read_token_batches(const std::filesystem::path& file,
                                          std::int32_t vocabulary);

/// The same as separate sequences. Refuses arrays other than tokens and lengths.
std::vector<std::vector<std::int32_t>> read_token_sequences(const std::filesystem::path& file,
                                                            std::int32_t vocabulary);

/// Adds concatenated lists: NAME [sum of lengths], and LENGTHS [lists].
void add_lists(std::vector<NamedTensor>& arrays, Backend& host, const std::string& name,
               const std::string& lengths, std::span<const std::vector<std::int32_t>> lists);

}  // namespace longhand::app
