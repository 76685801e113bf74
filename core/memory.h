#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace longhand {

/// A source of raw memory: the host or a device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // returns nullptr if no memory is left
  virtual void release(void* block, std::size_t bytes) noexcept = 0;

  // Called when a block of `bytes` bytes is returned for a request of `asked` bytes, and when the
  // block is released. Memory sources in tests use these calls to observe memory.
  virtual void lent(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
  virtual void returned(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory aligned to 64 bytes. Blocks of at least 2 MiB use huge pages if possible.
std::unique_ptr<MemorySource> host_memory();

struct MemoryUse {
  // Bytes in use, rounded up to the size class; slack in reused larger blocks is not counted.
  std::size_t live = 0;
  std::size_t peak = 0;    // maximum of `live`
  std::size_t cached = 0;  // bytes in idle blocks, kept for reuse
};

/// Keeps released blocks for later requests of the same size class. There are eight classes per
/// power of two, so a block is at most 12.5% larger than requested. All training steps request the
/// same sizes, so only the first step takes memory from the source. A large request without an idle
/// block of its class receives an idle block of up to twice its size. The gradients of a step can
/// then reuse the memory of its activations.
class CachingAllocator {
 public:
  CachingAllocator(std::string owner, std::unique_ptr<MemorySource> source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws an Error that states the request and the current memory use if no memory is left.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;  // `bytes` is the requested size

  MemoryUse use() const;
  void reset_peak();
  void drop_cached();

  static std::size_t class_size(std::size_t bytes);

 private:
  friend class ReservedBlocks;
  using Idle = std::map<std::size_t, std::vector<void*>>;  // idle blocks by size

  void drop_cached_locked();
  /// An idle block for a request of the class `own`, and the block's size; null if there is none.
  std::pair<void*, std::size_t> take_cached(Idle& from, std::size_t own);

  std::string owner_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Idle free_, free_reserved_;
  /// Sizes of the blocks in use that are larger than their request's class.
  std::map<void*, std::size_t> larger_;
  /// For each reserved block, the number of ReservedBlocks that contain it.
  std::map<void*, int> reserved_;
  std::set<void*> reserved_live_;       // reserved blocks that are in use
  std::set<void*>* joining_ = nullptr;  // the set to which new blocks are added
  MemoryUse use_;
};

/// A set of memory blocks that a repeated piece of work reuses without new allocations. A block
/// allocated while a Use exists is added to the set. From then on only requests made under a Use,
/// of this set or of another one, may receive the block. Pieces of work with a Use run one after
/// another, so they may share blocks. Any other tensor in such a block would be overwritten by the
/// next repetition. When the set is destroyed, its blocks that no other set contains become free
/// for all requests.
class ReservedBlocks {
 public:
  explicit ReservedBlocks(CachingAllocator& memory) : memory_(memory) {}
  ~ReservedBlocks();
  ReservedBlocks(const ReservedBlocks&) = delete;
  ReservedBlocks& operator=(const ReservedBlocks&) = delete;

  /// While a Use exists, allocations are added to the set. At most one Use exists at a time.
  class Use {
   public:
    explicit Use(ReservedBlocks& blocks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Throws an Error if a block that was allocated under a Use has not been released, because it
    /// would be overwritten.
    void check() const;

   private:
    CachingAllocator& memory_;
  };

 private:
  CachingAllocator& memory_;
  std::set<void*> blocks_;
};

}  // namespace longhand
