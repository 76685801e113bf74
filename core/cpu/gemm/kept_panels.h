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

/// Caches the packed panels of operands B that are declared constant for a period (core/backend.h:
/// SteadyValues). Such an operand is packed once and not once per product. The panels use memory of
/// the backend, and end() returns it.
class KeptPanels {
 public:
  /// Maximum size of the cache in bytes. Operands that no longer fit are packed for each product.
  static constexpr std::size_t most_bytes = SteadyValues::most_kept_bytes;
  /// Maximum number of rows of a product that uses the cache. With more rows, packing B takes only
  /// a few percent of the product's time.
  static constexpr std::int64_t most_rows = 2048;

  explicit KeptPanels(CachingAllocator& memory) : memory_(memory) {}
  ~KeptPanels() { end(); }
  KeptPanels(const KeptPanels&) = delete;
  KeptPanels& operator=(const KeptPanels&) = delete;

  /// Declares that the contents of these bytes do not change until end() or forget().
  using Bytes = std::pair<const std::byte*, std::size_t>;
  void begin(std::vector<Bytes> steady);
  void end();
  /// Declares that these bytes are about to change. Panels of operands that overlap them are
  /// discarded, and no further panels of such operands are cached.
  void forget(const void* data, std::size_t bytes);

  /// The key of the cache. It contains all properties of an operand that determine its panels. The
  /// operand is a single matrix, not a batch.
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
    bool packed = false;  // set to true by the code that packs the panels
  };
  /// Returns the memory for the panels of an operand. All calls for an operand return the same
  /// memory. Returns null if the operand's values may change or if the cache is full.
  Panels* find(const Operand& operand, std::size_t bytes);

 private:
  std::byte* room(std::size_t bytes);

  CachingAllocator& memory_;
  std::vector<Bytes> steady_;  // byte ranges that do not change, sorted by address
  std::map<Operand, Panels> panels_;
  std::vector<std::pair<void*, std::size_t>> blocks_;
  std::size_t total_ = 0, left_ = 0;  // bytes of all blocks, and free bytes of the last block
};

}  // namespace longhand::cpu
