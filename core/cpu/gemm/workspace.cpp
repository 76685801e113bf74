#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/cpu/gemm/gemm.h"

namespace longhand::cpu {

GemmWorkspace::Buffer::Buffer(Buffer&& other) noexcept
    : data(std::exchange(other.data, nullptr)), bytes(std::exchange(other.bytes, 0)) {}

GemmWorkspace::Buffer::~Buffer() { std::free(data); }

void GemmWorkspace::Buffer::grow(std::size_t wanted) {
  if (wanted <= bytes) return;
  // Allocates whole large pages of 2 MiB. With pages of 4 KiB, a kernel would access a new page
  // every few steps along k.
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t size = (wanted + page - 1) / page * page;
  std::free(std::exchange(data, nullptr));
  bytes = 0;
  data = static_cast<std::byte*>(std::aligned_alloc(page, size));
  if (data == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  madvise(data, size, MADV_HUGEPAGE);  // a hint; if it is ignored, the memory has small pages
#endif
  bytes = size;
}

void GemmWorkspace::reserve(int workers, std::size_t bytes_each, std::size_t packed_bytes,
                            std::size_t partial_bytes) {
  const auto count = static_cast<std::size_t>(workers);
  if (workers_.size() < count) workers_.resize(count);
  for (std::size_t i = 0; i < count; ++i) workers_[i].grow(bytes_each);
  packed_.grow(packed_bytes);
  partial_.grow(partial_bytes);
}

void GemmWorkspace::run(ThreadPool& pool, std::int64_t tasks,
                        FunctionRef<void(std::int64_t, int)> body) {
  const int threads = static_cast<int>(std::min<std::int64_t>(pool.threads(), tasks));
  if (threads <= 1) {
    for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  if (stretch_count_ < threads) {
    stretches_ = std::make_unique<Stretch[]>(static_cast<std::size_t>(threads));
    stretch_count_ = threads;
  }
  for (int i = 0; i < threads; ++i) {
    stretches_[static_cast<std::size_t>(i)].next.store(tasks * i / threads,
                                                       std::memory_order_relaxed);
    stretches_[static_cast<std::size_t>(i)].end = tasks * (i + 1) / threads;
  }
  pool.run(pool.threads(), [&](std::int64_t, int worker) {
    for (int i = 0; i < threads; ++i) {
      Stretch& stretch = stretches_[static_cast<std::size_t>((worker + i) % threads)];
      for (;;) {
        const std::int64_t task = stretch.next.fetch_add(1, std::memory_order_relaxed);
        if (task >= stretch.end) break;
        body(task, worker);
      }
    }
  });
}

}  // namespace longhand::cpu
