#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/contract/attention.h"
#include "core/contract/chain.h"
#include "core/contract/combine.h"
#include "core/contract/convolution.h"
#include "core/contract/cumulate.h"
#include "core/contract/delta.h"
#include "core/contract/dropout.h"
#include "core/contract/elementwise.h"
#include "core/contract/fal.h"
#include "core/contract/gather.h"
#include "core/contract/loss.h"
#include "core/contract/lstm.h"
#include "core/contract/matmul.h"
#include "core/contract/norm.h"
#include "core/contract/optimizer.h"
#include "core/contract/rearrange.h"
#include "core/contract/reduce.h"
#include "core/contract/reinforce.h"
#include "core/contract/rope.h"
#include "core/contract/softmax.h"
#include "core/contract/triangle.h"
#include "core/memory.h"

namespace longhand {

/// All the arithmetic there is. Each operation is a struct that names its tensors and states its
/// formula (core/contract/); a backend runs it:
///
///   backend(LayerNorm{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
///
/// operator() checks shapes and types first, in one place for all backends, and throws Error; what
/// a backend's run() receives is sound. This list of types is the only one: what serves every
/// operation walks it (core/forwarding.h).
using Contract =
    std::tuple<Fill, Copy, Scale, Combine, Rearrange, Activate, ActivateBackward, Gate,
               GateBackward, AddBias, Dropout, Matmul, ColumnSum, Reduce, LayerNorm,
               LayerNormBackward, RmsNorm, RmsNormBackward, Rope, Rotate, RotateBackward, Embedding,
               EmbeddingBackward, Gather, GatherBackward, Argmax, Softmax, SoftmaxBackward,
               CrossEntropy, CrossEntropyBackward, BinaryCrossEntropy, BinaryCrossEntropyBackward,
               Triangle, SolveTriangular, Cumulate, LogCounts, SquareSums, GlobalNorm, Adam, Sgd,
               Append, Attention, AttentionBackward, AttentionWeights, FindBadScore, Reinforce, Fal,
               FalBackward, Chain, ChainBackward, Delta, DeltaBackward, ShortConvolution,
               ShortConvolutionBackward, Lstm, LstmBackward>;

/// One pure virtual run() for each operation of the list.
template <class List>
class Runs;

template <class Op>
class Runs<std::tuple<Op>> {
 public:
  virtual ~Runs() = default;
  virtual void run(const Op& op) = 0;
};

template <class Op, class... Rest>
class Runs<std::tuple<Op, Rest...>> : public Runs<std::tuple<Rest...>> {
 public:
  using Runs<std::tuple<Rest...>>::run;
  virtual void run(const Op& op) = 0;
};

struct BackendOptions {
  int threads = 0;         // 0: all cores
  Math math = Math::fast;  // for products that do not name their own
  bool checked = false;    // attention looks for scores that are NaN or infinite, and says where
};

/// Work that is done again and again: the same operations, on the same memory with other contents.
class Repeat {
 public:
  virtual ~Repeat() = default;
  /// Does the work, by running the body or, when that was recorded, without it: true then.
  ///
  /// The body gives the backend operations and no more. It brings nothing up and reads nothing
  /// back, and of the memory it asks for it keeps nothing; numbers that differ from time to time
  /// lie in tensors made before, and so does everything whose values are wanted afterwards.
  virtual bool run(const std::function<void()>& body) = 0;
};

class Backend : public Runs<Contract>, public std::enable_shared_from_this<Backend> {
 public:
  Backend(std::string name, BackendOptions options, std::unique_ptr<MemorySource> memory)
      : name_(std::move(name)), options_(options), memory_(name_, std::move(memory)) {}

  template <class Op>
  void operator()(const Op& op) {
    check(op);
    if (observer) observer(Op::name);
    run(op);
  }

  const std::string& name() const { return name_; }
  const BackendOptions& options() const { return options_; }
  Math math(const std::optional<Math>& wanted) const { return wanted.value_or(options_.math); }
  CachingAllocator& memory() { return memory_; }

  virtual void require_dtype(DType dtype) const = 0;  // Error when this backend lacks it
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void synchronize() = 0;
  /// True if the backend can record work and gains from repeating it; repeat() then returns a
  /// recorder, otherwise null.
  virtual bool repeats() const { return false; }
  virtual std::unique_ptr<Repeat> repeat() { return nullptr; }
  /// Until the next call the values of these tensors stay as they are; see SteadyValues.
  virtual void steady(const std::vector<Tensor>& /*values*/) {}
  /// A line for each device other than the host's processor, the one in use first.
  virtual std::vector<std::string> devices() const { return {}; }

  /// Told the name of every operation before it runs; for tests and profiles.
  std::function<void(std::string_view)> observer;

 private:
  std::string name_;
  BackendOptions options_;
  CachingAllocator memory_;
};

/// While it stands, these tensors keep their values, and a backend may keep what it makes of them
/// from one operation to the next: the processor's products their panels, in so many bytes of
/// its memory at most. The same bits either way. One at a time for a backend.
class SteadyValues {
 public:
  static constexpr std::size_t most_kept_bytes = std::size_t{256} << 20;

  SteadyValues(Backend& backend, std::vector<Tensor> values)
      : backend_(backend), values_(std::move(values)) {
    backend_.steady(values_);
  }
  ~SteadyValues() { backend_.steady({}); }
  SteadyValues(const SteadyValues&) = delete;
  SteadyValues& operator=(const SteadyValues&) = delete;

 private:
  Backend& backend_;
  std::vector<Tensor> values_;  // held: nothing else comes to lie there
};

std::shared_ptr<Backend> make_reference_backend(BackendOptions options = {});
std::shared_ptr<Backend> make_cpu_backend(BackendOptions options = {});
/// Error where the build has no CUDA.
std::shared_ptr<Backend> make_cuda_backend(BackendOptions options = {});
/// By name: reference, cpu or cuda.
std::shared_ptr<Backend> make_backend(std::string_view name, BackendOptions options = {});

}  // namespace longhand
