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

/// Panels of operands B whose values do not change for a while (core/backend.h: SteadyValues),
/// packed once for all products in that time. They use memory of the backend, which is returned at
/// the end.
class KeptPanels {
 public:
  /// Beyond this size, operands are packed for each product.
  static constexpr std::size_t most_bytes = SteadyValues::most_kept_bytes;
  /// With more rows, packing is only a few percent of a product.
  static constexpr std::int64_t most_rows = 2048;

  explicit KeptPanels(CachingAllocator& memory) : memory_(memory) {}
  ~KeptPanels() { end(); }
  KeptPanels(const KeptPanels&) = delete;
  KeptPanels& operator=(const KeptPanels&) = delete;

  /// From now until end() or forget(), the contents of these bytes do not change.
  using Bytes = std::pair<const std::byte*, std::size_t>;
  void begin(std::vector<Bytes> steady);
  void end();
  /// These bytes are about to change: their panels, and those of operands that overlap them, are
  /// not used again, and nothing in them is kept from now on.
  void forget(const void* data, std::size_t bytes);

  /// The properties of an operand, one matrix, that determine its panels.
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
    bool packed = false;  // set by the packing code
  };
  /// Memory of this size for its panels, the same in every call. Null if its values may change or
  /// if the memory is used up.
  Panels* find(const Operand& operand, std::size_t bytes);

 private:
  std::byte* room(std::size_t bytes);

  CachingAllocator& memory_;
  std::vector<Bytes> steady_;  // sorted by address
  std::map<Operand, Panels> panels_;
  std::vector<std::pair<void*, std::size_t>> blocks_;
  std::size_t total_ = 0, left_ = 0;  // bytes of all blocks; free bytes of the last one
};

}  // namespace longhand::cpu
