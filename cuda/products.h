#pragma once

#include <memory>

#include "core/memory.h"
#include "cuda/product_plan.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Matrix products by cuBLASLt, with the workspace they need and what its heuristics chose for each
/// shape. In the emulator: loops that compute the same.
class Products {
 public:
  Products(Stream& stream, MemorySource& memory);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Gives the product to the stream. False when cuBLASLt has no way to do it: nothing was done.
  bool run(const Product& product, const ProductOperands& operands);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::cuda
