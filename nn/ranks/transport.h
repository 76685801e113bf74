#pragma once

#include <cstddef>
#include <span>

#include "core/error.h"

namespace longhand::nn {

/// Exchanges bytes with another rank. All collective operations (nn/ranks/communicator.h) consist
/// of such exchanges. For a new kind of connection between ranks, derive a class from this one.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends bytes to rank `peer` and receives receive.size() bytes from it. The peer must make the
  /// matching call. Returns when both transfers are complete. Throws RankLost if the peer has
  /// ended.
  virtual void exchange(int peer, std::span<const std::byte> send,
                        std::span<std::byte> receive) = 0;
  /// True if any thread may call exchange(), provided that only one thread calls it at a time.
  virtual bool serves_any_thread() const { return true; }
};

/// Exchanges memory between the devices of two ranks. No other operation may use this memory during
/// the exchange.
class DeviceTransport {
 public:
  virtual ~DeviceTransport() = default;
  virtual void exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
                        std::size_t receive_bytes) = 0;
};

/// Thrown if a collective operation cannot be completed because another rank has ended.
struct RankLost : Error {
  using Error::Error;
};

/// Thrown on a rank that must end because another rank has failed. The other rank reports the
/// error, so this rank should end without a message.
struct FailedElsewhere : Error {
  using Error::Error;
};

}  // namespace longhand::nn
