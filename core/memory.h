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

  // lent() is called when a request of `asked` bytes receives a block of `bytes` bytes. returned()
  // is called when the block is released. Tests use these calls to observe memory.
  virtual void lent(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
  virtual void returned(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory aligned to 64 bytes. Blocks of at least 2 MiB use huge pages if possible.
std::unique_ptr<MemorySource> host_memory();

struct MemoryUse {
  // Bytes in use: the sum of all requests, each rounded up to its size class, even if the request
  // received a larger block.
  std::size_t live = 0;
  std::size_t peak = 0;    // maximum of `live`
  std::size_t cached = 0;  // bytes of unused blocks that are kept for reuse
};

/// Keeps released blocks for later requests of the same size class. There are eight classes per
/// power of two, so a class is at most 12.5% larger than the request. All training steps request
/// the same sizes, so only the first step allocates memory from the source. If a request of at
/// least 1 MiB finds no unused block of its class, it receives an unused block of up to twice the
/// size of its class. The gradients of a step can then reuse the memory of its activations.
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
  /// Finds an unused block for a request whose size class has `own` bytes. Returns the block and
  /// the block's size, or null and 0.
  std::pair<void*, std::size_t> take_cached(Idle& from, std::size_t own);

  std::string owner_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Idle free_, free_reserved_;
  /// Sizes of the blocks in use that are larger than the size class of their request.
  std::map<void*, std::size_t> larger_;
  /// Reference counts: the number of ReservedBlocks objects that contain a block. Blocks that
  /// belong to no such object have no entry.
  std::map<void*, int> reserved_;
  std::set<void*> reserved_live_;  // blocks in use that belong to a ReservedBlocks object
  // While a ReservedBlocks::Use exists, every allocated block is added to this set. Null if no Use
  // exists.
  std::set<void*>* joining_ = nullptr;
  MemoryUse use_;
};

/// A set of memory blocks with which a computation can be repeated without new allocations. While
/// an object of the class Use exists, every allocated block is added to the set. A released block
/// of the set is only reused while a Use exists, for this set or another set. The computations of
/// different sets run one after another, so they may share blocks. At other times, no tensor may
/// receive such a block, because the next repetition of the computation would overwrite the tensor.
/// When the set is destroyed, all requests may receive its blocks, except the blocks that are also
/// in another set.
class ReservedBlocks {
 public:
  explicit ReservedBlocks(CachingAllocator& memory) : memory_(memory) {}
  ~ReservedBlocks();
  ReservedBlocks(const ReservedBlocks&) = delete;
  ReservedBlocks& operator=(const ReservedBlocks&) = delete;

  /// While a Use exists, allocated blocks are added to its ReservedBlocks. At most one Use exists
  /// at a time.
  class Use {
   public:
    explicit Use(ReservedBlocks& blocks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Must be called at the end of the computation that is to be repeated. Throws an Error if a
    /// block that was allocated during the computation is still in use, because the next repetition
    /// would overwrite the block.
    void check() const;

   private:
    CachingAllocator& memory_;
  };

 private:
  CachingAllocator& memory_;
  std::set<void*> blocks_;
};

}  // namespace longhand
