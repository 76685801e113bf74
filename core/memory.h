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

/// A source of raw memory: the host, or one device.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // nullptr if there is none left
  virtual void release(void* block, std::size_t bytes) noexcept = 0;

  // Called when a block of `bytes` is returned for a request of `asked` bytes, and when it is
  // released. Sources made for tests observe memory with it.
  virtual void lent(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
  virtual void returned(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory aligned to 64 bytes. Blocks of 2 MiB and more request huge pages.
std::unique_ptr<MemorySource> host_memory();

struct MemoryUse {
  // bytes in use, rounded up to the size class; slack in reused larger blocks is not counted
  std::size_t live = 0;
  std::size_t peak = 0;    // maximum of `live`
  std::size_t cached = 0;  // bytes in blocks kept for reuse
};

/// Keeps released blocks for later requests of the same size class. There are eight classes per
/// power of two, so a block is at most 12.5% larger than requested. A training step requests the
/// same sizes in every step, so after the first one no memory is taken from the source. A large
/// request whose class has no free block uses one of up to twice its size; the gradients of a step
/// then reuse the memory of its activations.
class CachingAllocator {
 public:
  CachingAllocator(std::string owner, std::unique_ptr<MemorySource> source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws an Error with the request and the current figures if memory is used up.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;  // `bytes` as requested

  MemoryUse use() const;
  void reset_peak();
  void drop_cached();

  static std::size_t class_size(std::size_t bytes);

 private:
  friend class ReservedBlocks;
  using Idle = std::map<std::size_t, std::vector<void*>>;  // free blocks by size

  void drop_cached_locked();
  /// A free block for a request of that class, with its size; null if there is none.
  std::pair<void*, std::size_t> take_cached(Idle& from, std::size_t own);

  std::string owner_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Idle free_, free_reserved_;
  std::map<void*, std::size_t> larger_;  // sizes of blocks in use that are larger than their class
  std::map<void*, int> reserved_;        // number of users of each reserved block
  std::set<void*> reserved_live_;        // reserved blocks in use
  std::set<void*>* joining_ = nullptr;   // set that new blocks are added to
  MemoryUse use_;
};

/// The memory that a piece of work uses each time it is repeated without new allocations. A block
/// allocated while a Use exists is added to the set. From then on it serves only requests under a
/// Use of this or another set: such pieces of work run one after another and may share blocks, but
/// no other tensor may lie where one of them will write. When this object is destroyed, blocks that
/// no other set contains become free for all.
class ReservedBlocks {
 public:
  explicit ReservedBlocks(CachingAllocator& memory) : memory_(memory) {}
  ~ReservedBlocks();
  ReservedBlocks(const ReservedBlocks&) = delete;
  ReservedBlocks& operator=(const ReservedBlocks&) = delete;

  /// At most one exists at a time.
  class Use {
   public:
    explicit Use(ReservedBlocks& blocks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Throws an Error if a block allocated under a Use has not been released; it would be
    /// overwritten.
    void check() const;

   private:
    CachingAllocator& memory_;
  };

 private:
  CachingAllocator& memory_;
  std::set<void*> blocks_;
};

}  // namespace longhand
