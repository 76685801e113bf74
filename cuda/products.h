#pragma once

#include <memory>

#include "core/memory.h"
#include "cuda/product_plan.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Computes matrix products with cuBLASLt. Owns the workspace of the products and remembers the
/// algorithm that was chosen for each product. The emulator implements this class with plain loops.
class Products {
 public:
  Products(Stream& stream, MemorySource& memory);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Enqueues the product on the stream. If cuBLASLt does not support the product, returns false
  /// and enqueues nothing.
  bool run(const Product& product, const ProductOperands& operands);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace longhand::cuda
