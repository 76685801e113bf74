#include "core/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <tuple>

#include "core/error.h"

namespace longhand {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
// Minimum size, in bytes, of a request for which a larger unused block may be used.
constexpr std::size_t large = std::size_t{1} << 20;

class HostMemory final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= huge_page ? huge_page : 64;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, bytes) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
    if (bytes >= huge_page) madvise(block, bytes, MADV_HUGEPAGE);
#endif
    return block;
  }
  void release(void* block, std::size_t) noexcept override { std::free(block); }
};

}  // namespace

std::unique_ptr<MemorySource> host_memory() { return std::make_unique<HostMemory>(); }

CachingAllocator::CachingAllocator(std::string owner, std::unique_ptr<MemorySource> source)
    : owner_(std::move(owner)), source_(std::move(source)) {}

CachingAllocator::~CachingAllocator() { drop_cached(); }

std::size_t CachingAllocator::class_size(std::size_t bytes) {
  constexpr std::size_t smallest = 256;
  if (bytes <= smallest) return smallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

void* CachingAllocator::allocate(std::size_t bytes) {
  LONGHAND_CHECK(bytes <= std::uint64_t{1} << 60, owner_, " memory: a request of ", bytes,
                 " bytes is too large");
  std::lock_guard lock(mutex_);
  const std::size_t own = class_size(bytes);
  void* block = nullptr;
  std::size_t size = own;
  if (joining_ != nullptr) std::tie(block, size) = take_cached(free_reserved_, own);
  if (block == nullptr) std::tie(block, size) = take_cached(free_, own);
  if (block == nullptr) {
    size = own;
    block = source_->allocate(size);
    if (block == nullptr && use_.cached > 0) {
      drop_cached_locked();
      block = source_->allocate(size);
    }
    LONGHAND_CHECK(block != nullptr, owner_, " memory is used up: requested ", bytes,
                   " bytes with ", use_.live, " in use (peak ", use_.peak, ") and ", use_.cached,
                   " cached");
  }
  if (joining_ != nullptr) {
    if (joining_->insert(block).second) ++reserved_[block];
    reserved_live_.insert(block);
  }
  use_.live += own;
  if (use_.live > use_.peak) use_.peak = use_.live;
  source_->lent(block, bytes, size);
  return block;
}

std::pair<void*, std::size_t> CachingAllocator::take_cached(Idle& from, std::size_t own) {
  const std::size_t most = own >= large ? 2 * own : own;
  for (auto found = from.lower_bound(own); found != from.end() && found->first <= most; ++found) {
    auto& [size, blocks] = *found;
    if (blocks.empty()) continue;
    void* const block = blocks.back();
    if (size > own) larger_.emplace(block, size);
    blocks.pop_back();
    use_.cached -= size;
    return {block, size};
  }
  return {nullptr, 0};
}

void CachingAllocator::release(void* block, std::size_t bytes) noexcept {
  std::size_t size = class_size(bytes);
  std::lock_guard lock(mutex_);
  use_.live -= size;
  if (const auto found = larger_.find(block); found != larger_.end()) {
    size = found->second;
    larger_.erase(found);
  }
  source_->returned(block, bytes, size);
  const bool reserved = reserved_.contains(block);
  if (reserved) reserved_live_.erase(block);
  try {
    (reserved ? free_reserved_ : free_)[size].push_back(block);
    use_.cached += size;
  } catch (...) {  // the list of unused blocks cannot grow: return the block to the source
    source_->release(block, size);
  }
}

MemoryUse CachingAllocator::use() const {
  std::lock_guard lock(mutex_);
  return use_;
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  use_.peak = use_.live;
}

void CachingAllocator::drop_cached() {
  std::lock_guard lock(mutex_);
  drop_cached_locked();
}

void CachingAllocator::drop_cached_locked() {
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) source_->release(block, size);
    use_.cached -= blocks.size() * size;
  }
  free_.clear();
}

ReservedBlocks::~ReservedBlocks() {
  const std::lock_guard lock(memory_.mutex_);
  for (void* const block : blocks_) {
    const auto found = memory_.reserved_.find(block);
    if (--found->second > 0) continue;
    memory_.reserved_.erase(found);
    memory_.reserved_live_.erase(block);
  }
  for (auto& [size, blocks] : memory_.free_reserved_) {
    const auto kept = std::partition(blocks.begin(), blocks.end(), [&](void* block) {
      return memory_.reserved_.contains(block);
    });
    auto& free = memory_.free_[size];
    free.insert(free.end(), kept, blocks.end());
    blocks.erase(kept, blocks.end());
  }
}

ReservedBlocks::Use::Use(ReservedBlocks& blocks) : memory_(blocks.memory_) {
  const std::lock_guard lock(memory_.mutex_);
  memory_.joining_ = &blocks.blocks_;
}

ReservedBlocks::Use::~Use() {
  const std::lock_guard lock(memory_.mutex_);
  memory_.joining_ = nullptr;
}

void ReservedBlocks::Use::check() const {
  const std::lock_guard lock(memory_.mutex_);
  LONGHAND_CHECK(memory_.reserved_live_.empty(), memory_.owner_,
                 " memory: ", memory_.reserved_live_.size(),
                 " blocks that were allocated while work was recorded are still in use at the end "
                 "of the recording; allocate such memory before the recording");
}

}  // namespace longhand
