#pragma once

#include <cstddef>
#include <span>

#include "core/error.h"

namespace longhand::nn {

/// Exchanges bytes with another rank. All collective operations (nn/ranks/communicator.h) consist
/// of such exchanges, so a new connection between ranks is one such class.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends these bytes to rank `peer`, which makes the same call for this rank, and receives
  /// `receive.size()` bytes from it. Waits for both. Throws RankLost if the other rank is gone.
  virtual void exchange(int peer, std::span<const std::byte> send,
                        std::span<std::byte> receive) = 0;
  /// True if any thread may call exchange(), one at a time.
  virtual bool serves_any_thread() const { return true; }
};

/// Exchanges memory of two ranks' devices. No work on this memory may be in progress.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual void exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
                        std::size_t receive_bytes) = 0;
};

/// Another rank ended, so a collective operation cannot be completed.
struct RankLost : Error {
  using Error::Error;
};

/// Another rank reports an error; this rank ends silently.
struct FailedElsewhere : Error {
  using Error::Error;
};

}  // namespace longhand::nn
