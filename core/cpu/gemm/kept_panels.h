#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/backend.h"

namespace longhand::cpu {

struct PanelFormat;

/// A cache of packed panels for matrix products. It serves right operands B whose values are
/// constant for some time (SteadyValues in core/backend.h). Such an operand is packed only once,
/// not for each product. The panels are in memory of the backend, and end() releases this memory.
class KeptPanels {
 public:
  /// Maximum size of the cache in bytes. Operands for which no memory is left are packed for each
  /// product.
  static constexpr std::size_t most_bytes = SteadyValues::most_kept_bytes;
  /// Maximum number of rows of the left operand in products that use the cache. For more rows,
  /// packing B takes only a few percent of the product's time.
  static constexpr std::int64_t most_rows = 2048;

  explicit KeptPanels(CachingAllocator& memory) : memory_(memory) {}
  ~KeptPanels() { end(); }
  KeptPanels(const KeptPanels&) = delete;
  KeptPanels& operator=(const KeptPanels&) = delete;

  using Bytes = std::pair<const std::byte*, std::size_t>;
  /// Declares that the contents of the byte ranges `steady` do not change until end() or forget()
  /// is called.
  void begin(std::vector<Bytes> steady);
  void end();
  /// Declares that these bytes are about to change. Discards the panels of all operands that
  /// overlap these bytes. No further panels of such operands are cached.
  void forget(const void* data, std::size_t bytes);

  /// The key of the cache. It contains all properties of an operand on which its panels depend. The
  /// operand is a single matrix, not a batch of matrices.
  struct Operand {
    const void* data;
    DType type;
    bool transposed;
    std::int64_t ld, n, k;
    const PanelFormat* format;
    auto operator<=>(const Operand&) const = default;
  };
  struct Panels {
    std::byte* data = nullptr;
    bool packed = false;  // whether `data` is filled; set by the code that packs the operand
  };
  /// Returns the memory for the panels of an operand. All calls for the same operand return the
  /// same memory. Returns null if the operand's values may change or if the cache is full.
  Panels* find(const Operand& operand, std::size_t bytes);

 private:
  std::byte* room(std::size_t bytes);

  CachingAllocator& memory_;
  std::vector<Bytes> steady_;  // byte ranges that do not change, sorted by address
  std::map<Operand, Panels> panels_;
  std::vector<std::pair<void*, std::size_t>> blocks_;
  // total_ is the number of bytes in all blocks, and left_ that of free bytes in the last block.
  std::size_t total_ = 0, left_ = 0;
};

}  // namespace longhand::cpu
