#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Sums a step's gradients over the ranks while backward is still running. Parameters lie in
/// buckets, in reverse order, which is about the order in which backward completes their gradients.
/// A bucket is sent when all of its gradients are complete and all earlier buckets have been sent,
/// so all ranks exchange the same buckets in the same order. Each number is summed separately, so
/// its bits do not depend on the buckets.
///
/// If owners are given, a rank receives only the sums of its own parameters, and frees other
/// gradients bucket by bucket after sending them. On a device nothing is exchanged while it
/// computes: it waits for the exchange of a bucket once too many are in memory, and exchanges the
/// rest at the end.
class GradientExchange {
 public:
  static constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
  // maximum buckets in transit if each rank keeps only its share
  static constexpr std::size_t most_under_way = 4;

  /// `owners`: the rank that owns each parameter; empty: every rank receives all sums.
  GradientExchange(Communicator& ranks, const Parameters& parameters, std::vector<int> owners = {},
                   std::size_t bytes = bucket_bytes);

  /// Adds this rank's gradient of a parameter, which may be empty. Called once per parameter and
  /// step.
  void add(std::size_t parameter, const Tensor& gradient);
  /// Called after the last add(). Waits until everything is summed and stores the sums as the
  /// parameters' gradients. A parameter that no rank used has none. Returns the sum of the losses
  /// over the ranks.
  Tensor finish(const Tensor& losses);

  /// For each parameter, true if it had a gradient on any rank in the last step.
  const std::vector<bool>& reached() const { return reached_; }
  /// Seconds that the last exchange took, and seconds of the exchange or of waiting that backward
  /// did not hide.
  double seconds() const { return seconds_; }
  double exposed() const { return exposed_; }
  /// The part of exposed() before finish().
  double waited() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    std::vector<std::size_t> members = {};  // parameters in the order in which they lie
    std::vector<std::int64_t> at = {};      // start of each member, then the end
    bool gaps = false;                      // members are padded
    std::vector<std::size_t> shares =
        {};                   // start of each rank's share; empty: every rank needs all
    std::size_t missing = 0;  // members whose gradients are not complete
    Tensor flat = {};
    std::uint64_t ticket = 0;  // number of the sum that was started
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
  std::vector<Place> places_;  // of each trained parameter
  std::size_t next_ = 0;       // first bucket that has not been sent
  std::size_t kept_ = 0;       // first bucket of which more than the own share is in memory
  std::vector<double> here_;   // per parameter: 1 if it has a gradient on this rank
  std::vector<bool> reached_;
  std::vector<Tensor> own_;  // own sums of freed buckets
  bool adding_ = false;      // the step's first gradient has been added
  double seconds_ = 0, exposed_ = 0, waited_ = 0, seconds_before_ = 0;
};

}  // namespace longhand::nn
