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

/// Panels of operands B whose values stay for a while (core/backend.h: SteadyValues), packed once
/// and used by every product until then. Their memory is the backend's, and given back at the end.
class KeptPanels {
 public:
  /// Beyond that, operands are packed for each product anew.
  static constexpr std::size_t most_bytes = SteadyValues::most_kept_bytes;
  /// Up to here packing is more than a few percent of a product.
  static constexpr std::int64_t most_rows = 2048;

  explicit KeptPanels(CachingAllocator& memory) : memory_(memory) {}
  ~KeptPanels() { end(); }
  KeptPanels(const KeptPanels&) = delete;
  KeptPanels& operator=(const KeptPanels&) = delete;

  /// From here to end(), or until forget(), what lies in these bytes stays as it is.
  using Bytes = std::pair<const std::byte*, std::size_t>;
  void begin(std::vector<Bytes> steady);
  void end();
  /// These bytes are about to change: their panels, and any that share memory with them, are not
  /// used again, and nothing there is kept from now on.
  void forget(const void* data, std::size_t bytes);

  /// What panels follow from, for an operand of one matrix.
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
    bool packed = false;  // set by who packs them
  };
  /// Room of so many bytes for its panels, the same each time; null where its values may change, or
  /// where all room is taken.
  Panels* find(const Operand& operand, std::size_t bytes);

 private:
  std::byte* room(std::size_t bytes);

  CachingAllocator& memory_;
  std::vector<Bytes> steady_;  // by address
  std::map<Operand, Panels> panels_;
  std::vector<std::pair<void*, std::size_t>> blocks_;
  std::size_t total_ = 0, left_ = 0;  // of all blocks; of the last one
};

}  // namespace longhand::cpu
