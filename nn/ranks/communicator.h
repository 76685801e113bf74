#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive);
  template <class T>
  void sum_as(std::span<const Tensor> tensors);
  template <class T>
  void sum_chunk(std::span<T> numbers, std::span<T> room);

  std::unique_ptr<Transport> transport_;
  std::uint64_t sent_ = 0;
  bool failed_together_ = false;
};

/// One rank.
Communicator& alone();

}  // namespace longhand::nn
