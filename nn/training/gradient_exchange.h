#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Adds a step's gradients up over the ranks while backward still runs. Parameters lie in buckets,
/// in the reverse of their order, about as backward gets to them; a bucket goes on its way when
/// all of its gradients are there and the buckets before it have gone, so all ranks exchange the
/// same ones in the same order. Bits do not depend on the buckets: each number is added up by
/// itself.
///
/// Where owners are given, a rank gets the sums of the parameters that it owns and no others: what
/// it has sent is freed bucket by bucket. On a device nothing is exchanged while it computes: it
/// waits for a bucket's exchange as soon as too many are held, and for the rest at the end.
class GradientExchange {
 public:
  static constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
  static constexpr std::size_t most_under_way = 4;  // buckets, where each rank keeps a share alone

  /// owners: the rank of each parameter; empty: every rank gets all sums.
  GradientExchange(Communicator& ranks, const Parameters& parameters, std::vector<int> owners = {},
                   std::size_t bytes = bucket_bytes);

  /// Takes this rank's sum of a parameter's gradients, maybe empty: one call for each parameter
  /// and step.
  void add(std::size_t parameter, const Tensor& gradient);
  /// After the last: waits until all is added up and puts the sums where the parameters have their
  /// gradients. A parameter that no rank reached has none. Returns the losses' sum over the ranks.
  Tensor finish(const Tensor& losses);

  /// Which parameters have a gradient, on whatever rank; of the last step.
  const std::vector<bool>& reached() const { return reached_; }
  /// Seconds of the last step in which ranks exchanged gradients, and those of them, or of waiting,
  /// that backward did not hide.
  double seconds() const { return seconds_; }
  double exposed() const { return exposed_; }
  /// Of these, the ones before finish().
  double waited() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    std::vector<std::size_t> members = {};  // in the order in which they lie
    std::vector<std::int64_t> at = {};      // where each begins; then the end
    bool gaps = false;                      // between some of them
    std::vector<std::size_t> shares =
        {};                   // where each rank's part begins; empty: all is everyone's
    std::size_t missing = 0;  // members whose gradients are not there yet
    Tensor flat = {};
    std::uint64_t ticket = 0;  // of the sum that was begun
  };
  void close(Bucket bucket);
  void begin_ready();
  void keep_own(Bucket& bucket);
  Tensor in(const Bucket& bucket, std::size_t member) const;

  Communicator& ranks_;
  const Parameters& parameters_;
  std::vector<int> owners_;
  std::vector<Bucket> buckets_;
  struct Place {
    std::size_t bucket, member;
  };
  std::vector<Place> places_;  // of each parameter that learns
  std::size_t next_ = 0;       // the first bucket that has not begun
  std::size_t kept_ = 0;       // the first of which more than the own share is held
  std::vector<double> here_;   // 1 for each parameter that has a gradient on this rank
  std::vector<bool> reached_;
  std::vector<Tensor> own_;  // sums of buckets that were freed
  bool adding_ = false;      // a step's first gradient was given
  double seconds_ = 0, exposed_ = 0, waited_ = 0, seconds_before_ = 0;
};

}  // namespace longhand::nn
