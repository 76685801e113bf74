#include "nn/layers/embedding.h"

#include "autograd/blocks.h"
#include "autograd/elementwise.h"
#include "autograd/gather.h"
#include "core/error.h"

namespace longhand::nn {

Embedding::Embedding(const Scope& scope, std::int64_t vocabulary, std::int64_t width,
                     Initial initial, double times)
    : weight(scope.add("weight", {vocabulary, width}, initial, true)), scale(times) {
  weight.accept_blocks();
}

Var Embedding::operator()(const Tensor& ids, DType type) const {
  try {
    const Var rows = weight.blocks() ? block_embedding(weight.blocks(), ids, type)
                                     : embedding(weight, ids, type);
    return scale == 1 ? rows : longhand::scale(rows, scale);
  } catch (const Error& error) {
    fail("layer ", weight.layer(), ": ", error.what());
  }
}

}  // namespace longhand::nn
