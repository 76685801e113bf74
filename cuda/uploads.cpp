#include "cuda/uploads.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace longhand::cuda {

Uploads::Uploads(Stream& compute, MemorySource& memory)
    : compute_(compute),
      memory_(memory),
      pinned_(sections * section_size),
      staged_(static_cast<std::byte*>(memory.allocate(sections * section_size))) {
  LONGHAND_CHECK(staged_ != nullptr, "cuda memory is used up: cannot allocate ",
                 sections * section_size, " bytes for uploads");
}

Uploads::~Uploads() { memory_.release(staged_, sections * section_size); }

std::size_t Uploads::take(std::size_t bytes) {
  if (used_ + bytes > section_size) {
    passed_[section_].record(compute_);
    section_ = (section_ + 1) % sections;
    used_ = 0;
    passed_[section_].synchronize();
  }
  const std::size_t at = section_ * section_size + used_;
  used_ += (bytes + 15) / 16 * 16;
  return at;
}

void Uploads::upload(void* to, const void* from, std::size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  const bool direct = bytes <= small;
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, section_size);
    const std::size_t at = take(piece);
    std::memcpy(pinned_.data() + at, source, piece);
    if (direct) {
      compute_.upload(target, pinned_.data() + at, piece);
    } else {
      copier_.upload(staged_ + at, pinned_.data() + at, piece);
      arrived_.record(copier_);
      compute_.wait(arrived_);
      compute_.copy(target, staged_ + at, piece);
    }
    target += piece;
    source += piece;
    bytes -= piece;
  }
}

}  // namespace longhand::cuda
