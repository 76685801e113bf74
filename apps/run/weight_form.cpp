#include "apps/run/weight_form.h"

#include "apps/command.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app {

WeightForm weight_form(std::string_view name) {
  if (name == "f32") return {.matrices = DType::f32};
  if (name == "bf16") return {.matrices = DType::bf16};
  if (name == "file") return {.as_stored = true};
  const GgufType* const type = written_gguf_type(name);
  if (!type || type->block == 1) {
    wrong_usage("--weights: expected f32, bf16, ", written_block_types(), " or file, got ",
                quote(name));
  }
  return {.blocks = type};
}

std::string written_block_types() {
  std::string names;
  for (const GgufType* const type : block_types()) {
    if (type->encode) names += text(names.empty() ? "" : ", ", small_name(*type));
  }
  return names;
}

void put_in_blocks(const nn::Decoder& model, const WeightForm& form, const std::string& source) {
  if (!form.blocks) return;
  LONGHAND_CHECK(model.parameters().put_in_blocks(*form.blocks) > 0, source,
                 ": cannot be rounded to ", small_name(*form.blocks),
                 ": expected a matrix whose rows have a multiple of ", form.blocks->block,
                 " numbers, got none");
}

}  // namespace longhand::app
