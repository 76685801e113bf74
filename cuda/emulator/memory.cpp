#include "cuda/emulator/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "core/error.h"

namespace longhand::emulator {
namespace {

constexpr std::size_t reserved = std::size_t{16} << 30;  // of addresses; memory comes when touched

/// The one device: blocks are cut from the front, returned ones are used again by size.
class Arena {
 public:
  static Arena& the_one() {
    static Arena arena;
    return arena;
  }

  void open() {
    std::lock_guard lock(mutex_);
    if (users_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    std::lock_guard lock(mutex_);
    if (--users_ == 0) protect(PROT_NONE);
  }

  void* allocate(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (auto& blocks = free_[bytes]; !blocks.empty()) {
      void* const block = blocks.back();
      blocks.pop_back();
      return block;
    }
    if (used_ + bytes > reserved) return nullptr;
    void* const block = base_ + used_;
    used_ += (bytes + 4095) / 4096 * 4096;
    if (users_ > 0) protect(PROT_READ | PROT_WRITE);
    return block;
  }
  void release(void* block, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    free_[bytes].push_back(block);
  }
  bool has(const void* address, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at + bytes <= begin + used_;
  }

 private:
  Arena() {
    void* const range =
        mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LONGHAND_CHECK(range != MAP_FAILED, "emulator: no address range for device memory");
    base_ = static_cast<std::byte*>(range);
  }
  void protect(int allowed) {
    if (used_ > 0) mprotect(base_, used_, allowed);
  }

  std::mutex mutex_;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  int users_ = 0;
  std::map<std::size_t, std::vector<void*>> free_;
};

class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(std::size_t limit) : limit_(limit) {}

  void* allocate(std::size_t bytes) override {
    if (out_ + bytes > limit_) return nullptr;
    void* const block = Arena::the_one().allocate(bytes);
    if (block != nullptr) out_ += bytes;
    return block;
  }
  void release(void* block, std::size_t bytes) noexcept override {
    out_ -= bytes;
    Arena::the_one().release(block, bytes);
  }
  void lent(void* block, std::size_t, std::size_t bytes) noexcept override {
    const Access access;
    std::memset(block, poison, bytes);
  }
  void returned(void* block, std::size_t asked, std::size_t bytes) noexcept override {
    const Access access;
    const auto slack = std::span(static_cast<unsigned char*>(block), bytes).subspan(asked);
    if (std::ranges::all_of(slack, [](unsigned char byte) { return byte == poison; })) return;
    // Nobody can be told otherwise from a destructor, and what follows could not be trusted.
    std::fprintf(stderr, "emulator: something wrote past the end of a block of %zu bytes\n", asked);
    std::abort();
  }

 private:
  std::size_t limit_, out_ = 0;
};

}  // namespace

Access::Access() { Arena::the_one().open(); }
Access::~Access() { Arena::the_one().close(); }

std::unique_ptr<MemorySource> device_memory(std::size_t limit) {
  return std::make_unique<DeviceMemory>(limit);
}

bool in_device_memory(const void* address, std::size_t bytes) {
  return Arena::the_one().has(address, bytes);
}

}  // namespace longhand::emulator
