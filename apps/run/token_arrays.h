#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/npy.h"
#include "nn/batch.h"

/// Reads and writes sequences of tokens as arrays.
namespace longhand::app {

/// Reads the sequences of a file (.npy, .npz, .safetensors) as batches. The file contains the
/// tokens as integers in one of two forms:
///   tokens [n] for one sequence, or tokens [sequences, n];
///   tokens [n] and lengths [sequences], where n is the sum of the lengths.
/// Further arrays are optional: targets ([n, choices] or shaped like tokens; negative: not scored),
/// weights (shaped like targets), positions (shaped like tokens) and head [1] (the index of the
/// output layer that predicts the targets). If there are several batches, the names of their arrays
/// have prefixes "batches.0.", "batches.1.", ..., as written by `longhand data --step`. Throws a
/// one-line Error that names file and array if the arrays do not match, or if a token is not less
/// than `vocabulary`.
std::vector<nn::Batch> read_token_batches(const std::filesystem::path& file,
                                          std::int32_t vocabulary);

/// Like read_token_batches(), but returns separate sequences. Throws an Error if there is an array
/// other than tokens and lengths.
std::vector<std::vector<std::int32_t>> read_token_sequences(const std::filesystem::path& file,
                                                            std::int32_t vocabulary);

/// Stores a list of lists as two arrays: NAME [sum of lengths] contains the concatenated lists, and
/// LENGTHS [number of lists] contains their lengths.
void add_lists(std::vector<NamedTensor>& arrays, Backend& host, const std::string& name,
               const std::string& lengths, std::span<const std::vector<std::int32_t>> lists);

}  // namespace longhand::app
