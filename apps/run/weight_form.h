#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/gguf_blocks.h"
#include "nn/models/decoder.h"

namespace longhand::app {

/// The form in which the matrices of a loaded model are in memory. By default, the matrices of a
/// run keep the form of its checkpoint. Matrices of a published model become bf16 if the file
/// stores all of its matrices in bf16, otherwise f32.
struct WeightForm {
  std::optional<DType> matrices = {};  // f32 or bf16
  const GgufType* blocks = nullptr;    // rounded to blocks of this type
  bool as_stored = false;              // in the blocks of the file, where it has blocks
};

/// The form with this name: f32, bf16, a type of blocks that can be written, or file. For another
/// name, throws the usage error of the flag --weights.
WeightForm weight_form(std::string_view name);
/// The names of the types of blocks that can be written: "q4_0, q8_0, ...".
std::string written_block_types();

/// Rounds the matrices of the model to form.blocks, if given. Throws an Error that begins with
/// `source` if no matrix has rows of whole blocks.
void put_in_blocks(const nn::Decoder& model, const WeightForm& form, const std::string& source);

}  // namespace longhand::app
