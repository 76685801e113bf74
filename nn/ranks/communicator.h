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

/// Collective operations of ranks. All ranks call the same functions in the same order. The number
/// of ranks is a power of two.
///
/// Sums do not depend on the number of ranks if the summands are leaves of one binary tree and each
/// rank owns equally many neighbouring leaves: a rank sums its own leaves (nn/ranks/tree.h), and
/// sum() does the rest.
class Communicator {
 public:
  Communicator() = default;  // a single rank
  explicit Communicator(std::unique_ptr<Transport> transport);
  ~Communicator();  // finishes sums that were begun

  /// From now on tensors on devices are summed there, in the same order and with the same bits.
  void reach_devices(std::unique_ptr<DeviceTransport> devices) { devices_ = std::move(devices); }

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }

  /// The bytes, numbers or texts of all ranks, in order of ranks. All ranks pass equally many
  /// numbers.
  std::vector<std::byte> gather(std::span<const std::byte> mine);
  std::vector<double> gather(std::span<const double> mine);
  std::vector<std::string> gather(std::string_view mine);
  /// True if `mine` is true on some rank.
  bool any(bool mine);
  /// Replaces every tensor by its sum over the ranks, with the same bits on all of them: ranks 2i
  /// and 2i+1 are added, then pairs of these, and so on. Shapes and types are equal on all ranks.
  void sum(std::span<const Tensor> tensors);
  /// Starts sum({x}) and returns. A thread of this rank computes the sums in the order of calls
  /// while the caller continues, until finish(). Nobody may touch x meanwhile. If x is on a device,
  /// or the transport serves one thread only, finish() computes the sum.
  ///
  /// `shares`: if not empty, each rank needs only a part of the sum. x [n] is cut at these size() +
  /// 1 places, and afterwards rank r has the sums of piece share_of(r). The rest of x is then
  /// undefined, and each rank sends half as much.
  ///
  /// Returns the number of sums started so far, including this one.
  std::uint64_t begin_sum(const Tensor& x, std::vector<std::size_t> shares = {});
  /// The piece of a rank: its number with the bits reversed.
  int share_of(int rank) const;
  /// Number of started sums that are finished.
  std::uint64_t sums_done() const;
  /// Waits until `count` sums, or all, are finished. All other functions first wait for all.
  void finish(std::uint64_t count = std::numeric_limits<std::uint64_t>::max());
  /// Seconds spent in started sums, including waiting for other ranks.
  double seconds_in_sums() const;
  /// Broadcasts each tensor from the rank that owns it. All ranks pass the same owners.
  void share(std::span<const Tensor> tensors, std::span<const int> owners);
  /// Waits until all ranks have called it.
  void meet();
  /// Does work that may fail on some ranks only. If it fails, the first such rank throws its error
  /// and all others throw FailedElsewhere.
  void together(const std::function<void()>& work);

  /// From now on all ranks throw the same errors, so those that still can shut down together.
  void fail_together() { failed_together_ = true; }
  bool failed_together() const { return failed_together_; }

  /// Bytes sent by this rank.
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
  /// Calls f(peer, kept, given) in the order of the tree, for ranges of at most `most` entries.
  template <class F>
  void walk_shares(std::span<const std::size_t> shares, std::size_t most, F&& f) const;
  void share_some(std::span<const Tensor> tensors, std::span<const int> owners);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DeviceTransport> devices_;
  std::unique_ptr<Background> background_;
  std::unique_ptr<std::byte[]> room_;  // receive buffer, kept from sum to sum
  std::size_t room_bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool failed_together_ = false;
};

/// The communicator of a single rank.
Communicator& alone();

}  // namespace longhand::nn
