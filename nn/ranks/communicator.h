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

/// What ranks do together, each calling the same functions in the same order. Results depend on the
/// number of ranks in no bit where what is added up belongs to the leaves of one binary tree, so
/// many neighbouring leaves to each rank: a rank adds up its own (nn/ranks/tree.h), sum() does the
/// rest. The number of ranks is a power of two.
class Communicator {
 public:
  Communicator() = default;  // one rank, alone
  explicit Communicator(std::unique_ptr<Transport> transport);
  ~Communicator();  // ends what was begun

  /// From here on tensors on devices are summed there, in the same order and with the same bits.
  void reach_devices(std::unique_ptr<DeviceTransport> devices) { devices_ = std::move(devices); }

  int rank() const { return transport_ ? transport_->rank() : 0; }
  int size() const { return transport_ ? transport_->size() : 1; }

  /// Every rank's bytes, numbers, text, in the ranks' order. Numbers are as many on all ranks.
  std::vector<std::byte> gather(std::span<const std::byte> mine);
  std::vector<double> gather(std::span<const double> mine);
  std::vector<std::string> gather(std::string_view mine);
  /// Whether it holds on some rank.
  bool any(bool mine);
  /// Every tensor becomes its sum over the ranks, on all of them with the same bits: ranks 2i and
  /// 2i+1 are added, then these pairs by pairs, and so on. Shapes and types are those of all ranks.
  void sum(std::span<const Tensor> tensors);
  /// Begins sum({x}) and returns: it is done by a thread of this rank's while the caller computes,
  /// one after the other in the order of calls, until finish(). Nobody touches x meanwhile. Where
  /// the tensor lies on a device, or the transport serves one thread only, finish() does it.
  ///
  /// shares: where it is not empty, only a part of the sum is wanted on each rank: x [n] is cut at
  /// these size() + 1 places, and rank r has the sums of piece share_of(r) afterwards. The rest of
  /// x is undefined then, and each rank sends half as much.
  ///
  /// Returns how many were begun so far, this one included.
  std::uint64_t begin_sum(const Tensor& x, std::vector<std::size_t> shares = {});
  /// Which piece is a rank's: the number with its bits in reverse.
  int share_of(int rank) const;
  /// How many that were begun are done.
  std::uint64_t sums_done() const;
  /// Returns when so many are done, or all. All other functions wait for all first.
  void finish(std::uint64_t count = std::numeric_limits<std::uint64_t>::max());
  /// Seconds that went by in what was begun, its waiting for other ranks included.
  double seconds_in_sums() const;
  /// Every tensor gets the values that the rank has which owns it. Each names the same owners.
  void share(std::span<const Tensor> tensors, std::span<const int> owners);
  /// Returns when all ranks have called it.
  void meet();
  /// Does something that may fail on one rank and not on another. If it does, the first such rank
  /// throws its error, and all others FailedElsewhere.
  void together(const std::function<void()>& work);

  /// All ranks throw alike from here on, so that those that still can may take leave of each other.
  void fail_together() { failed_together_ = true; }
  bool failed_together() const { return failed_together_; }

  /// Bytes that this rank has sent.
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
  /// f(peer, what is kept, what is given) in the order of the tree, at most so many entries each.
  template <class F>
  void walk_shares(std::span<const std::size_t> shares, std::size_t most, F&& f) const;
  void share_some(std::span<const Tensor> tensors, std::span<const int> owners);

  std::unique_ptr<Transport> transport_;
  std::unique_ptr<DeviceTransport> devices_;
  std::unique_ptr<Background> background_;
  std::unique_ptr<std::byte[]> room_;  // for what comes from another rank, from sum to sum
  std::size_t room_bytes_ = 0;
  std::uint64_t sent_ = 0;
  bool failed_together_ = false;
};

/// One rank.
Communicator& alone();

}  // namespace longhand::nn
