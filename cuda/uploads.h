#pragma once

#include <array>
#include <cstddef>

#include "core/memory.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Uploads host memory to the device in the compute stream's order, without waiting for that
/// stream's pending work. Bytes go into a ring of pinned memory. Small uploads are copied from
/// there by the compute stream itself. Large uploads travel on a separate stream, into the same
/// place of a ring on the device, while kernels run. The compute stream then only moves them to
/// their destination, because earlier kernels may still use that memory for something else.
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

  /// Position in the rings of the next `bytes`; the host waits if the ring is full.
  std::size_t take(std::size_t bytes);

  Stream& compute_;
  MemorySource& memory_;
  Stream copier_;
  PinnedMemory pinned_;
  std::byte* staged_;                   // the ring on the device
  std::array<Event, sections> passed_;  // signalled when the compute stream is done with a section
  Event arrived_;
  std::size_t section_ = 0, used_ = 0;
};

}  // namespace longhand::cuda
