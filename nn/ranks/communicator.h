#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "nn/ranks/transport.h"

namespace longhand::nn {

/// Collective operations of ranks. All ranks must call the same functions in the same order. The
/// number of ranks is a power of two.
///
/// Sums can have the same bits for any number of ranks. For this, the summands must be the leaves
/// of a binary tree, and each rank must have equally many neighbouring leaves. Each rank first sums
/// its own leaves (nn/ranks/tree.h). sum() then adds the results of the ranks in the order of the
/// tree.
class Communicator {
 public:
  Communicator() = default;  // the communicator of a single rank
  explicit Communicator(std::unique_ptr<Transport> transport);
  ~Communicator();  // waits for sums that were started

  /// After this call, tensors on devices are summed on the devices, in the same order and with the
  /// same bits.
  void reach_devices(std::unique_ptr<DeviceTransport> devices) { devices_ = std::move(devices); }

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }

  /// The data of all ranks, in the order of ranks. All ranks must pass equally many numbers.
  std::vector<std::byte> gather(std::span<const std::byte> mine);
  std::vector<double> gather(std::span<const double> mine);
  std::vector<std::string> gather(std::string_view mine);
  /// True if `mine` is true on any rank.
  bool any(bool mine);
  /// Replaces every tensor by its sum over the ranks, with the same bits on all of them. Ranks 2i
  /// and 2i + 1 are added first, then pairs of these sums, and so on. Shapes and types must be
  /// equal on all ranks.
  void sum(std::span<const Tensor> tensors);
  /// Starts sum({x}) and returns. A thread of this rank computes the sums in the order of the calls
  /// while the caller continues, until finish(). x must not be used before finish() returns. If x
  /// is on a device, or if only one thread may use the transport, finish() computes the sum.
  ///
  /// If `shares` is not empty, each rank receives only a part of the sum, and sends half as much as
  /// for the complete sum. `shares` contains size() + 1 indices, which cut x [n] into one piece per
  /// rank. Afterwards rank r has the sums of piece share_of(r). All other entries of x are
  /// undefined.
  ///
  /// Returns the number of sums started so far, including this one.
  std::uint64_t begin_sum(const Tensor& x, std::vector<std::size_t> shares = {});
  /// The piece of a rank: the rank's number with its bits reversed.
  int share_of(int rank) const;
  /// Number of started sums that are already finished.
  std::uint64_t sums_done() const;
  /// Waits until the first `count` sums, by default all sums, are finished. All other functions
  /// first wait for all sums.
  void finish(std::uint64_t count = std::numeric_limits<std::uint64_t>::max());
  /// Seconds spent in started sums, including waiting for other ranks.
  double seconds_in_sums() const;
  /// Broadcasts each tensor from the rank that owns it. All ranks must pass the same owners.
  void share(std::span<const Tensor> tensors, std::span<const int> owners);
  /// Waits until all ranks have called this function.
  void meet();
  /// Does work that may fail on some ranks only. If it fails, the first failing rank throws its
  /// error and all other ranks throw FailedElsewhere.
  void together(const std::function<void()>& work);

  /// Declares that all ranks will throw the same errors from now on, so that they can shut down
  /// together.
  void fail_together() { failed_together_ = true; }
  bool failed_together() const { return failed_together_; }

  /// Number of bytes sent by this rank.
  std::uint64_t sent() const { return sent_; }

 private:
  class Background;

  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive);
  template <class T>
  void sum_as(std::span<const Tensor> tensors);
  template <class T>
  void sum_chunk(std::span<T> numbers);
  template <class T>
  std::span<T> room(std::size_t count);
  template <class T>
  void sum_in_place(const Tensor& x, std::span<const std::size_t> shares);
  template <class T>
  void sum_shares(std::span<T> numbers, std::span<const std::size_t> shares);
  template <class T>
  void sum_shares_over_host(const Tensor& x, std::span<const std::size_t> shares);
  void sum_on_device(const Tensor& x);
  void sum_shares_on_device(const Tensor& x, std::span<const std::size_t> shares);
  void exchange_on_device(int peer, const Tensor& give, const Tensor& take);
  /// Calls f(peer, kept, given) for every exchange with another rank, in the order of the tree.
  /// This rank sends the range `given` to the peer and receives the peer's values of the range
  /// `kept`. Both ranges have at most `most` entries.
  template <class F>
  void walk_shares(std::span<const std::size_t> shares, std::size_t most, F&& f) const;
  void share_some(std::span<const Tensor> tensors, std::span<const int> owners);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DeviceTransport> devices_;
  std::unique_ptr<std::byte[]> room_;  // receive buffer, reused by later sums
  std::size_t room_bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool failed_together_ = false;
  std::unique_ptr<Background> background_;  // last member: running sums use the members above
};

/// The communicator of a single rank.
Communicator& alone();

}  // namespace longhand::nn
