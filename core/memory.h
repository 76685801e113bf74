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

  // lent() is called when a block of `bytes` bytes is returned for a request of `asked` bytes, and
  // returned() when the block is released. Tests use these calls to observe memory.
  virtual void lent(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
  virtual void returned(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory aligned to 64 bytes. Blocks of at least 2 MiB use huge pages if possible.
std::unique_ptr<MemorySource> host_memory();

struct MemoryUse {
  // Bytes in use. A request counts with its size class, even if its block is larger.
  std::size_t live = 0;
  std::size_t peak = 0;    // maximum of `live`
  std::size_t cached = 0;  // bytes of unused blocks that are kept for reuse
};

/// Keeps released blocks for later requests of the same size class. There are eight classes per
/// power of two, so a class is at most 12.5% larger than the request. All training steps request
/// the same sizes, so only the first step allocates memory from the source. If a large request
/// finds no unused block of its class, it receives an unused block of up to twice its size. The
/// gradients of a step can then reuse the memory of its activations.
class CachingAllocator {
 public:
  CachingAllocator(std::string owner, std::unique_ptr<MemorySource> source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Returns a block. If no memory is left, throws an Error that states the request and the memory
  /// in use.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;  // `bytes` is the requested size

  MemoryUse use() const;
  void reset_peak();
  void drop_cached();

  static std::size_t class_size(std::size_t bytes);

 private:
  friend class ReservedBlocks;
  using Idle = std::map<std::size_t, std::vector<void*>>;  // unused blocks by size

  void drop_cached_locked();
  /// An unused block for a request of the class `own`, and its size; null if there is none.
  std::pair<void*, std::size_t> take_cached(Idle& from, std::size_t own);

  std::string owner_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Idle free_, free_reserved_;
  /// Sizes of the blocks in use that are larger than the size class of their request.
  std::map<void*, std::size_t> larger_;
  /// For each reserved block, the number of ReservedBlocks that contain it.
  std::map<void*, int> reserved_;
  std::set<void*> reserved_live_;       // reserved blocks that are in use
  std::set<void*>* joining_ = nullptr;  // the set that new blocks join while a Use exists
  MemoryUse use_;
};

/// A set of memory blocks with which a computation can be repeated without new allocations. A block
/// that is allocated while a Use exists is added to the set. From then on, only a request made
/// during a Use, of this set or of another one, may receive the block. Computations with a Use run
/// one after another, so they may share blocks. Other tensors must not use such a block, because
/// the next repetition would overwrite them. When the set is destroyed, those of its blocks that no
/// other set contains become available to all requests.
class ReservedBlocks {
 public:
  explicit ReservedBlocks(CachingAllocator& memory) : memory_(memory) {}
  ~ReservedBlocks();
  ReservedBlocks(const ReservedBlocks&) = delete;
  ReservedBlocks& operator=(const ReservedBlocks&) = delete;

  /// While a Use exists, allocated blocks are added to the ReservedBlocks. At most one Use exists
  /// at a time.
  class Use {
   public:
    explicit Use(ReservedBlocks& blocks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Throws an Error if a block that was allocated during a Use has not been released. The next
    /// repetition would overwrite it.
    void check() const;

   private:
    CachingAllocator& memory_;
  };

 private:
  CachingAllocator& memory_;
  std::set<void*> blocks_;
};

}  // namespace longhand
