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
#include <utility>
#include <vector>

#include "core/error.h"

namespace longhand::emulator {
namespace {

constexpr std::size_t page = 4096;
// bytes of address space; the system allocates a page at its first access
constexpr std::size_t reserved = std::size_t{16} << 30;

/// The memory of the emulated device. New blocks are placed one after another, and a returned block
/// is reused for requests of the same size. When the last block is returned, the next block is
/// placed at the first address again.
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

  void touch(std::initializer_list<Bytes> all, const std::function<void()>& work) {
    // While the lock is held, no other thread can make the memory inaccessible.
    std::lock_guard lock(mutex_);
    const auto each = [&](int allowed) {
      for (const Bytes& one : all) {
        if (users_ == 0 && holds(one)) protect(one, allowed);
      }
    };
    each(PROT_READ | PROT_WRITE);
    work();
    each(PROT_NONE);
  }

  void* allocate(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (auto& blocks = free_[bytes]; !blocks.empty()) {
      void* const block = blocks.back();
      blocks.pop_back();
      ++out_;
      return block;
    }
    if (used_ + bytes > reserved) return nullptr;
    void* const block = base_ + used_;
    used_ += (bytes + page - 1) / page * page;
    if (users_ > 0) protect(PROT_READ | PROT_WRITE);
    ++out_;
    return block;
  }
  void release(void* block, std::size_t bytes) {
    std::lock_guard lock(mutex_);
    free_[bytes].push_back(block);
    if (--out_ > 0) return;
    protect(PROT_NONE);
    used_ = 0;
    free_.clear();
  }
  const void* begin() const { return base_; }
  bool has(const Bytes& bytes) {
    std::lock_guard lock(mutex_);
    return holds(bytes);
  }

 private:
  Arena() {
    void* const range =
        mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LONGHAND_CHECK(range != MAP_FAILED,
                   "emulator: cannot reserve an address range for device memory");
    base_ = static_cast<std::byte*>(range);
  }
  bool holds(const Bytes& bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.address);
    return at >= begin && at + bytes.count <= begin + used_;
  }
  void protect(int allowed) { protect({base_, used_}, allowed); }
  /// Sets the protection of all pages that contain these bytes. Other blocks are not affected,
  /// because blocks do not share pages.
  void protect(const Bytes& bytes, int allowed) {
    if (bytes.count == 0) return;
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.address);
    const std::uintptr_t first = at / page * page;
    mprotect(reinterpret_cast<void*>(first), at + bytes.count - first, allowed);
  }

  std::mutex mutex_;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  int users_ = 0;
  std::int64_t out_ = 0;  // number of blocks in use
  std::map<std::size_t, std::vector<void*>> free_;
};

class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(std::size_t limit) : limit_(limit) {
    const std::lock_guard lock(unordered_mutex_);
    unordered_.push_back(this);
  }
  ~DeviceMemory() override {
    const std::lock_guard lock(unordered_mutex_);
    std::erase(unordered_, this);
  }
  static void order(const std::shared_ptr<Queue>& queue) {
    const std::lock_guard lock(unordered_mutex_);
    for (DeviceMemory* const memory : unordered_) memory->queue_ = queue;
    unordered_.clear();
  }

  void* allocate(std::size_t bytes) override {
    if (out_ + bytes > limit_) return nullptr;
    void* const block = Arena::the_one().allocate(bytes);
    if (block != nullptr) out_ += bytes;
    return block;
  }
  void release(void* block, std::size_t bytes) noexcept override {
    finish_all();
    out_ -= bytes;
    Arena::the_one().release(block, bytes);
  }
  void lent(void* block, std::size_t, std::size_t bytes) noexcept override {
    in_order([=] { touch({{block, bytes}}, [&] { std::memset(block, poison, bytes); }); });
  }
  void returned(void* block, std::size_t asked, std::size_t bytes) noexcept override {
    in_order([=] { require_untouched(block, asked, bytes); });
  }

 private:
  void in_order(std::function<void()> work) const {
    if (const auto queue = queue_.lock()) {
      queue->append(std::move(work));
    } else {
      work();
    }
  }
  static void require_untouched(void* block, std::size_t asked, std::size_t bytes) {
    const auto slack = std::span(static_cast<unsigned char*>(block), bytes).subspan(asked);
    bool untouched = false;
    touch({{slack.data(), slack.size()}}, [&] {
      untouched = std::ranges::all_of(slack, [](unsigned char byte) { return byte == poison; });
    });
    if (untouched) return;
    // Memory is corrupt, and a destructor that returns a block cannot throw an exception, so the
    // program is aborted.
    std::fprintf(stderr, "emulator: something wrote past the end of a block of %zu bytes\n", asked);
    std::abort();
  }

  static inline std::mutex unordered_mutex_;
  static inline std::vector<DeviceMemory*> unordered_;  // the instances that have no queue yet
  std::weak_ptr<Queue> queue_;
  std::size_t limit_, out_ = 0;
};

}  // namespace

Access::Access() { Arena::the_one().open(); }
Access::~Access() { Arena::the_one().close(); }

void touch(std::initializer_list<Bytes> bytes, const std::function<void()>& work) {
  Arena::the_one().touch(bytes, work);
}

std::unique_ptr<MemorySource> device_memory(std::size_t limit) {
  return std::make_unique<DeviceMemory>(limit);
}
void order_memory(const std::shared_ptr<Queue>& queue) { DeviceMemory::order(queue); }

const void* device_begin() { return Arena::the_one().begin(); }

bool in_device_memory(const void* address, std::size_t bytes) {
  return Arena::the_one().has({address, bytes});
}

}  // namespace longhand::emulator
