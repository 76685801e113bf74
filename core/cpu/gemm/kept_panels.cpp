#include "core/cpu/gemm/kept_panels.h"

#include <algorithm>
#include <utility>

namespace longhand::cpu {
namespace {

std::size_t operand_bytes(const KeptPanels::Operand& operand) {
  const std::int64_t rows = operand.transposed ? operand.n : operand.k;
  const std::int64_t columns = operand.transposed ? operand.k : operand.n;
  return static_cast<std::size_t>((rows - 1) * operand.ld + columns) * size_of(operand.type);
}

bool meet(KeptPanels::Bytes a, KeptPanels::Bytes b) {
  return a.first < b.first + b.second && b.first < a.first + a.second;
}

}  // namespace

void KeptPanels::begin(std::vector<Bytes> steady) {
  end();
  steady_ = std::move(steady);
  std::ranges::sort(steady_);
}

void KeptPanels::end() {
  steady_.clear();
  panels_.clear();
  for (const auto& [block, bytes] : blocks_) memory_.release(block, bytes);
  blocks_.clear();
  total_ = left_ = 0;
}

void KeptPanels::forget(const void* data, std::size_t bytes) {
  if (steady_.empty()) return;
  const Bytes changed{static_cast<const std::byte*>(data), bytes};
  std::erase_if(panels_, [&](const auto& entry) {
    const Operand& operand = entry.first;
    return meet(changed, {static_cast<const std::byte*>(operand.data), operand_bytes(operand)});
  });
  std::erase_if(steady_, [&](Bytes some) { return meet(changed, some); });
}

KeptPanels::Panels* KeptPanels::find(const Operand& operand, std::size_t bytes) {
  if (steady_.empty() || operand.n == 0 || operand.k == 0) return nullptr;
  const Bytes wanted{static_cast<const std::byte*>(operand.data), operand_bytes(operand)};
  auto within = std::ranges::upper_bound(steady_, wanted.first, {}, &Bytes::first);
  if (within == steady_.begin()) return nullptr;
  --within;
  if (wanted.first + wanted.second > within->first + within->second) return nullptr;
  const auto found = panels_.find(operand);
  if (found != panels_.end()) return &found->second;
  std::byte* const data = room(bytes);
  return data ? &panels_.emplace(operand, Panels{.data = data}).first->second : nullptr;
}

/// Allocates memory for packed panels from blocks of at least 2 MiB, for which the system uses
/// large pages. With small pages, a kernel would access a new page every few steps along k.
std::byte* KeptPanels::room(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{2} << 20, most = std::size_t{32} << 20, line = 64;
  bytes = (bytes + line - 1) / line * line;
  if (bytes > left_) {
    const std::size_t block = std::max(bytes, std::clamp(total_ / 4, least, most));
    if (total_ + block > most_bytes) return nullptr;
    blocks_.emplace_back(memory_.allocate(block), block);
    total_ += block;
    left_ = block;
  }
  const auto& [data, size] = blocks_.back();
  std::byte* const from = static_cast<std::byte*>(data) + (size - left_);
  left_ -= bytes;
  return from;
}

}  // namespace longhand::cpu
