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

/// Where raw memory comes from: the host's, or one device's.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // nullptr when there is none left
  virtual void release(void* block, std::size_t bytes) noexcept = 0;

  // Told when a block of `bytes` is handed out for a request of `asked`, and when it comes back: a
  // source made for tests can watch what is done to it.
  virtual void lent(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
  virtual void returned(void* /*block*/, std::size_t /*asked*/, std::size_t /*bytes*/) noexcept {}
};

/// Host memory on 64-byte boundaries; blocks of 2 MiB and more ask for huge pages.
std::unique_ptr<MemorySource> host_memory();

struct MemoryUse {
  std::size_t live = 0;    // bytes handed out, whole classes: not what of a larger block is idle
  std::size_t peak = 0;    // the most `live` has been
  std::size_t cached = 0;  // bytes in blocks kept for reuse
};

/// Keeps freed blocks for the next request of their size class. A class is one of eight sizes per
/// power of two, so a block is at most 12.5% larger than asked for. A training step asks for the
/// same sizes again and again: after the first one no memory is taken from the source. A large
/// request whose class has no block takes an idle one of up to twice its size: the gradients of a
/// step then lie where its activations were.
class CachingAllocator {
 public:
  CachingAllocator(std::string owner, std::unique_ptr<MemorySource> source);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Throws Error with the request and the figures when memory is used up.
  void* allocate(std::size_t bytes);
  void release(void* block, std::size_t bytes) noexcept;  // bytes as asked for

  MemoryUse use() const;
  void reset_peak();
  void drop_cached();

  static std::size_t class_size(std::size_t bytes);

 private:
  friend class ReservedBlocks;
  using Idle = std::map<std::size_t, std::vector<void*>>;  // by size

  void drop_cached_locked();
  /// An idle block for a request of that class, with its size; null when there is none.
  std::pair<void*, std::size_t> take_cached(Idle& from, std::size_t own);

  std::string owner_;
  std::unique_ptr<MemorySource> source_;
  mutable std::mutex mutex_;
  Idle free_, free_reserved_;
  std::map<void*, std::size_t> larger_;  // sizes of live blocks that are larger than their class
  std::map<void*, int> reserved_;        // for how many
  std::set<void*> reserved_live_;        // of them
  std::set<void*>* joining_ = nullptr;   // what handed out blocks join
  MemoryUse use_;
};

/// The blocks that a piece of work takes its memory from each time it is done again without being
/// given anew. What is handed out while a Use stands becomes one of them, and serves from then on
/// only requests under a Use, of these or of others: such pieces of work come one after the other
/// and may share blocks, while nobody else's tensor lies where one of them will write. When this
/// ends, blocks that no other piece reserves are everybody's again.
class ReservedBlocks {
 public:
  explicit ReservedBlocks(CachingAllocator& memory) : memory_(memory) {}
  ~ReservedBlocks();
  ReservedBlocks(const ReservedBlocks&) = delete;
  ReservedBlocks& operator=(const ReservedBlocks&) = delete;

  /// One at a time.
  class Use {
   public:
    explicit Use(ReservedBlocks& blocks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    /// Error if something handed out meanwhile has not come back: it would be written over.
    void check() const;

   private:
    CachingAllocator& memory_;
  };

 private:
  CachingAllocator& memory_;
  std::set<void*> blocks_;
};

}  // namespace longhand
