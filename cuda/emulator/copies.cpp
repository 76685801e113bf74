#include "cuda/emulator/copies.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/error.h"
#include "cuda/emulator/memory.h"
#include "cuda/emulator/scheduler.h"
#include "cuda/emulator/watch.h"

namespace longhand::emulator {
namespace {

constexpr std::size_t size = 16;

}  // namespace

void Copies::issue(void* to, const void* from) {
  if (!in_shared_memory(to, size)) {
    fail_in_kernel("a copy to where there is no shared memory of this launch");
  }
  if (from != nullptr && !in_device_memory(from, size)) {
    fail_in_kernel("a copy from where there is no device memory");
  }
  watch::copy_issued(to, size);
  std::memset(to, poison, size);
  pending_.push_back({to, from, groups_});
}

void Copies::commit() { ++groups_; }

void Copies::wait(int but) {
  auto copy = pending_.begin();
  for (; copy != pending_.end() && copy->group < groups_ - but; ++copy) {
    const auto place = std::span(static_cast<const unsigned char*>(copy->to), size);
    if (!std::ranges::all_of(place, [](unsigned char byte) { return byte == poison; })) {
      fail_in_kernel("shared memory was written while a copy was on its way there");
    }
    watch::copy_arrived(copy->to, size);
    if (copy->from != nullptr) {
      std::memcpy(copy->to, copy->from, size);
    } else {
      std::memset(copy->to, 0, size);
    }
  }
  pending_.erase(pending_.begin(), copy);
}

void Copies::begin() {
  pending_.clear();
  groups_ = 0;
}

void Copies::end() const {
  if (!pending_.empty())
    fail_in_kernel("the thread returns while copies of its own are on their way");
}

}  // namespace longhand::emulator
