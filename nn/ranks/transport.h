#pragma once

#include <cstddef>
#include <span>

#include "core/error.h"

namespace longhand::nn {

/// How a rank reaches another one. All that ranks do together (nn/ranks/communicator.h) is made of
/// exchanges between two, so a new way to reach them is this one class.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends these bytes to a rank that calls the same for this one, and receives what it sends,
  /// which is as long as `receive`. Waits for both. RankLost where the other one is gone.
  virtual void exchange(int peer, std::span<const std::byte> send,
                        std::span<std::byte> receive) = 0;
  /// Whether any thread may call exchange(), one at a time.
  virtual bool serves_any_thread() const { return true; }
};

/// How a rank's device reaches another's: the same exchange between two, of memory of their
/// backends, in which no work is under way.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual void exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
                        std::size_t receive_bytes) = 0;
};

/// Another rank ended, so that what all do together cannot be done.
struct RankLost : Error {
  using Error::Error;
};

/// Another rank has an error that it tells itself; this one ends without a word.
struct FailedElsewhere : Error {
  using Error::Error;
};

}  // namespace longhand::nn
