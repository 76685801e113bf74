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

/// Communication between ranks (processes or threads that train one model together). All operations
/// are collective: all ranks must call the same functions in the same order. The number of ranks is
/// a power of two.
///
/// A sum can be computed so that its bits do not depend on the number of ranks. Its terms must be
/// the leaves of a binary tree, and each rank must have an equal number of consecutive leaves. Each
/// rank first sums its own leaves (nn/ranks/tree.h). sum() then adds the results of the ranks in
/// the order of the tree.
class Communicator {
 public:
  Communicator() = default;  // the communicator of a single rank
  explicit Communicator(std::unique_ptr<Transport> transport);
  ~Communicator();  // waits for sums that a separate thread computes

  /// After this call, tensors on devices are summed on the devices. The sums have the same bits as
  /// sums on the host.
  void reach_devices(std::unique_ptr<DeviceTransport> devices) { devices_ = std::move(devices); }

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }

  /// Returns the arguments `mine` of all ranks, in the order of ranks. The three overloads gather
  /// bytes, doubles or texts. All ranks must pass the same number of bytes, or the same number of
  /// doubles. Only texts may have different lengths.
  std::vector<std::byte> gather(std::span<const std::byte> mine);
  std::vector<double> gather(std::span<const double> mine);
  std::vector<std::string> gather(std::string_view mine);
  /// True if `mine` is true on any rank.
  bool any(bool mine);
  /// Replaces every tensor by its sum over the ranks, with the same bits on all ranks. The values
  /// of ranks 2i and 2i + 1 are added first, then pairs of these sums, and so on. Shapes and types
  /// must be equal on all ranks.
  void sum(std::span<const Tensor> tensors);
  /// Starts sum({x}) and returns. A separate thread computes the started sums one after another
  /// while the caller continues. If x is on a device, or if only one thread may use the transport,
  /// finish() computes the sum instead. x must not be used until finish() returns.
  ///
  /// If `shares` is not empty, each rank receives the sums of only one piece of x [n]. It then
  /// sends about half as many bytes as for all sums. `shares` contains the size() + 1 bounds of the
  /// pieces: piece i begins at index shares[i] and ends before shares[i + 1]. Rank r receives piece
  /// share_of(r). After finish(), the entries of x outside this piece are undefined.
  ///
  /// Returns the number of sums started so far, including this one. If there is only one rank,
  /// starts nothing and returns 0.
  std::uint64_t begin_sum(const Tensor& x, std::vector<std::size_t> shares = {});
  /// If begin_sum() divides a sum among the ranks (its argument `shares`), each rank receives one
  /// piece. Returns the index of the piece that rank number `rank` receives: the number `rank` with
  /// its bits in reverse order.
  int share_of(int rank) const;
  /// Number of started sums that are already finished.
  std::uint64_t sums_done() const;
  /// Waits until the first `count` started sums are finished; default: all. Every other collective
  /// operation first calls finish().
  void finish(std::uint64_t count = std::numeric_limits<std::uint64_t>::max());
  /// Seconds spent in started sums, including waiting for other ranks.
  double seconds_in_sums() const;
  /// Broadcasts each tensor from the rank that owns it. All ranks must pass the same owners.
  void share(std::span<const Tensor> tensors, std::span<const int> owners);
  /// Waits until all ranks have called this function.
  void meet();
  /// Runs work that may fail on some ranks only. If it fails, the lowest failing rank throws its
  /// own error, and all other ranks throw FailedElsewhere.
  void together(const std::function<void()>& work);

  /// Records that every rank knows of a failure and ends. If a rank has failed and this was not
  /// recorded, its communicator must not be destroyed: the destructor may wait for ranks that
  /// still run.
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
  /// Calls f(peer, kept, given) for each exchange of begin_sum() with `shares`. In this exchange,
  /// the rank sends its values of the range `given` to the rank `peer`, and receives the peer's
  /// values of the range `kept`. Both ranges have at most `most` entries.
  template <class F>
  void walk_shares(std::span<const std::size_t> shares, std::size_t most, F&& f) const;
  void share_some(std::span<const Tensor> tensors, std::span<const int> owners);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DeviceTransport> devices_;
  std::unique_ptr<std::byte[]> room_;  // receive buffer, reused by later sums
  std::size_t room_bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool failed_together_ = false;
  /// Computes the started sums, which use the other members. It is declared last, so that it is
  /// destroyed first.
  std::unique_ptr<Background> background_;
};

/// The communicator of a single rank.
Communicator& single_rank();

}  // namespace longhand::nn
