#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nn/module.h"
#include "nn/ranks/communicator.h"

namespace longhand::nn {

/// Sums a step's gradients over the ranks, if possible while the backward pass is running.
/// Parameters are grouped into buckets in reverse order, which is roughly the order in which the
/// backward pass completes their gradients. A bucket is sent when all of its gradients are complete
/// and all earlier buckets were sent. All ranks therefore exchange the same buckets in the same
/// order. The division into buckets does not change the bits of a sum.
///
/// If owners are given, a rank receives only the sums of its own parameters. After a bucket was
/// exchanged, the rank frees all other gradients of the bucket.
///
/// If the gradients are on a device, or if only one thread may use the transport, finish()
/// exchanges the buckets after the backward pass. With owners, add() then also exchanges the oldest
/// bucket whenever more than most_under_way complete buckets are in memory.
class GradientExchange {
 public:
  static constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
  // Maximum number of buckets in transit if owners are given.
  static constexpr std::size_t most_under_way = 4;

  /// `owners` contains the rank that owns each parameter. If it is empty, every rank receives all
  /// sums.
  GradientExchange(Communicator& ranks, const Parameters& parameters, std::vector<int> owners = {},
                   std::size_t bytes = bucket_bytes);

  /// Adds this rank's gradient of a parameter. The gradient may be empty. Must be called once per
  /// parameter and step.
  void add(std::size_t parameter, const Tensor& gradient);
  /// Must be called after the last add(). Waits for all sums and stores them as the parameters'
  /// gradients. A parameter without a gradient on any rank gets no gradient. Returns the sum of the
  /// losses over the ranks.
  Tensor finish(const Tensor& losses);

  /// Contains true for each parameter that had a gradient on any rank in the last step.
  const std::vector<bool>& reached() const { return reached_; }
  /// Seconds that the sums of the last step took, and seconds in which this rank waited for them.
  double seconds() const { return seconds_; }
  double exposed() const { return exposed_; }
  /// The seconds for which add() waited for other ranks. They are a part of the seconds for which
  /// this rank waited for sums (exposed()).
  double waited() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    // Indices of the bucket's parameters. Their gradients are in this order in `flat`.
    std::vector<std::size_t> members = {};
    /// index in `flat` of the start of each member, and of the end of the last one
    std::vector<std::int64_t> at = {};
    bool gaps = false;  // true if there is padding between members
    // Indices that cut `flat` into one piece per rank, for begin_sum(). Empty: every rank receives
    // all sums of the bucket.
    std::vector<std::size_t> shares = {};
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
  std::size_t kept_ = 0;       // first bucket that is not freed yet
  std::vector<double> here_;   // for each parameter: 1 if it has a gradient on this rank
  std::vector<bool> reached_;
  std::vector<Tensor> own_;  // sums of this rank's own parameters from buckets that were freed
  bool adding_ = false;      // true after the first add() of a step
  double seconds_ = 0, exposed_ = 0, waited_ = 0, seconds_before_ = 0;
};

}  // namespace longhand::nn
