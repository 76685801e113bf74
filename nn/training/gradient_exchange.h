#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Sums a step's gradients over the ranks while backward is running. Parameters are grouped into
/// buckets in reverse order, which is roughly the order in which backward completes their
/// gradients. A bucket is sent once all of its gradients are complete and all earlier buckets were
/// sent, so all ranks exchange the same buckets in the same order. Each number is summed
/// separately, so its bits do not depend on the buckets.
///
/// If owners are given, a rank receives only the sums of its own parameters and frees the other
/// gradients of a bucket after sending it. A device does not compute and exchange at the same time:
/// it waits for the exchange of a bucket when too many buckets are in memory, and exchanges the
/// rest at the end.
class GradientExchange {
 public:
  static constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
  // Maximum number of buckets in transit if each rank keeps only its share.
  static constexpr std::size_t most_under_way = 4;

  /// `owners` is the rank that owns each parameter; empty: every rank receives all sums.
  GradientExchange(Communicator& ranks, const Parameters& parameters, std::vector<int> owners = {},
                   std::size_t bytes = bucket_bytes);

  /// Adds this rank's gradient of a parameter; the gradient may be empty. Must be called once per
  /// parameter and step.
  void add(std::size_t parameter, const Tensor& gradient);
  /// Called after the last add(). Waits until all sums are computed and stores them as the
  /// parameters' gradients. A parameter that no rank used has no gradient. Returns the sum of the
  /// losses over the ranks.
  Tensor finish(const Tensor& losses);

  /// For each parameter: true if it had a gradient on any rank in the last step.
  const std::vector<bool>& reached() const { return reached_; }
  /// Duration of the last exchange, and the part of it (including waiting) that did not overlap
  /// with backward, in seconds.
  double seconds() const { return seconds_; }
  double exposed() const { return exposed_; }
  /// The part of exposed() that was spent before finish().
  double waited() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    // Indices of its parameters, in the order in which they are stored.
    std::vector<std::size_t> members = {};
    std::vector<std::int64_t> at = {};  // start of each member, and finally the end
    bool gaps = false;                  // there is padding between members
    std::vector<std::size_t> shares =
        {};  // start of each rank's share; empty: every rank needs the whole bucket
    std::size_t missing = 0;  // number of members whose gradients are not complete
    Tensor flat = {};
    std::uint64_t ticket = 0;  // the number that begin_sum() returned
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
  std::vector<Place> places_;  // place of each trained parameter
  std::size_t next_ = 0;       // first bucket that has not been sent
  std::size_t kept_ = 0;       // first bucket of which more than this rank's share is in memory
  std::vector<double> here_;   // for each parameter: 1 if it has a gradient on this rank
  std::vector<bool> reached_;
  std::vector<Tensor> own_;  // this rank's sums, from buckets that were freed
  bool adding_ = false;      // true once the step's first gradient has been added
  double seconds_ = 0, exposed_ = 0, waited_ = 0, seconds_before_ = 0;
};

}  // namespace longhand::nn
