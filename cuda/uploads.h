#pragma once

#include <array>
#include <cstddef>

#include "core/memory.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Uploads host memory to the device. Uploads are ordered like other work of the compute stream,
/// but the host does not wait for the stream. The bytes are first copied to a ring buffer in pinned
/// host memory. The compute stream itself copies small uploads from this ring buffer to their
/// destination. Large uploads are copied by a separate stream, while kernels run, to the same
/// position of a ring buffer on the device. From there, the compute stream copies them to their
/// destination. The separate stream cannot write to the destination itself, because earlier kernels
/// may still use this memory.
class Uploads {
 public:
  Uploads(Stream& compute, MemorySource& memory);
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  void upload(void* to, const void* from, std::size_t bytes);

 private:
  static constexpr std::size_t section_size = std::size_t{512} << 10;
  static constexpr std::size_t sections = 16;
  static constexpr std::size_t small = std::size_t{64} << 10;

  /// Reserves the next `bytes` bytes in the ring buffers on the host and on the device, and returns
  /// their position, which is the same in both. The host waits if the ring buffers are full.
  std::size_t take(std::size_t bytes);

  Stream& compute_;
  MemorySource& memory_;
  Stream copier_;
  PinnedMemory pinned_;
  std::byte* staged_;  // the ring buffer on the device
  // For each section of the ring buffers: an event that occurs when the compute stream no longer
  // uses the section.
  std::array<Event, sections> passed_;
  Event arrived_;
  std::size_t section_ = 0, used_ = 0;
};

}  // namespace longhand::cuda
