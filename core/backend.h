#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/math_mode.h"
#include "core/memory.h"
#include "core/tensor.h"

namespace longhand {

/// All operations of the library. An operation is a struct that names its tensors and documents its
/// formula (core/contract/). A backend executes it:
///
///   backend(LayerNorm{.x = x, .gain = gain, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
///
/// operator() first checks shapes and types and throws an Error if they are wrong. These checks are
/// the same for all backends, so a backend's run() receives only valid operands. A caller includes
/// the header of each operation that it calls. The following list is the only list of operations.
/// Code that handles all operations includes core/contract/all.h and iterates over this list
/// (core/forwarding.h).
using Contract = std::tuple<
    struct Fill, struct Copy, struct Scale, struct Combine, struct Rearrange, struct Activate,
    struct ActivateBackward, struct Gate, struct GateBackward, struct AddBias, struct Dropout,
    struct Matmul, struct ColumnSum, struct Reduce, struct LayerNorm, struct LayerNormBackward,
    struct RmsNorm, struct RmsNormBackward, struct Rope, struct Rotate, struct RotateBackward,
    struct Embedding, struct EmbeddingBackward, struct Gather, struct GatherBackward, struct Argmax,
    struct Softmax, struct SoftmaxBackward, struct CrossEntropy, struct CrossEntropyBackward,
    struct BinaryCrossEntropy, struct BinaryCrossEntropyBackward, struct Triangle,
    struct SolveTriangular, struct Cumulate, struct LogCounts, struct SquareSums, struct GlobalNorm,
    struct Adam, struct Sgd, struct Append, struct Attention, struct AttentionBackward,
    struct AttentionWeights, struct FindBadScore, struct Reinforce, struct Fal, struct FalBackward,
    struct Chacal, struct ChacalBackward, struct DeltaFormer, struct DeltaFormerBackward,
    struct Delta, struct DeltaBackward, struct ShortConvolution, struct ShortConvolutionBackward,
    struct Lstm, struct LstmBackward, struct BlockMatmul, struct BlockEmbedding>;

/// Base class with one pure virtual function run() for each operation in the type list `List`.
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
  int threads = 0;         // number of threads; 0: the default of ThreadPool (core/parallel.h)
  Math math = Math::fast;  // math mode of products that specify no mode
  bool checked = false;    // if true, attention throws an Error if a score is NaN or infinite
};

/// A computation that is repeated. The operations and the memory are the same each time, but the
/// values differ.
class Repeat {
 public:
  virtual ~Repeat() = default;
  /// Runs the computation, either by calling `body` or by replaying a recording of an earlier call.
  /// Returns true if a recording was replayed.
  ///
  /// The body may only run operations of the backend. It must not transfer data from or to the
  /// host, and it must release all memory that it allocates. Values that differ between
  /// repetitions, and results that are needed later, must be in tensors that exist before the first
  /// run.
  virtual bool run(const std::function<void()>& body) = 0;
};

/// Only one thread at a time may use a backend, because operations share scratch memory and a pool
/// of threads. An operation throws an Error if another thread is running an operation. Programs
/// that compute on several threads create one backend for each of them. Tensors may be copied and
/// destroyed on any thread.
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
  /// Returns the math mode of a product: `wanted` or, by default, the mode of the backend's
  /// options. Math::portable is replaced by Math::exact, because both modes compute f32 products.
  Math math(const std::optional<Math>& wanted) const {
    const Math math = wanted.value_or(options_.math);
    return math == Math::portable ? Math::exact : math;
  }
  CachingAllocator& memory() { return memory_; }

  /// Throws an Error if this backend does not support the type.
  virtual void require_dtype(DType dtype) const = 0;
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void synchronize() = 0;
  /// True if operations work on the host's memory, so that a tensor may refer to a mapped file.
  virtual bool in_host_memory() const { return false; }
  /// True if the backend can record operations and replay the recording, which is faster. In this
  /// case, repeat() returns a new Repeat. Otherwise it returns null.
  virtual bool repeats() const { return false; }
  virtual std::unique_ptr<Repeat> repeat() { return nullptr; }
  /// Declares that the values of these tensors do not change until the next call of steady(). Only
  /// SteadyValues calls this function.
  virtual void steady(const std::vector<Tensor>& /*values*/) {}
  /// Returns one line of description for each device other than the host's processor. The first
  /// line describes the device in use.
  virtual std::vector<std::string> devices() const { return {}; }

  /// Called with the name of every operation before it is executed; for tests and profiles.
  std::function<void(std::string_view)> observer;

 private:
  std::string name_;
  BackendOptions options_;
  CachingAllocator memory_;
};

/// While a SteadyValues exists, its tensors must keep their values. A backend may then cache data
/// that it derives from them. The CPU backend caches their packed panels for products, at most
/// most_kept_bytes in total. Results have the same bits with and without SteadyValues. A backend
/// has at most one SteadyValues at a time.
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
  /// Keeps the tensors' memory in use, so that no other tensor is allocated at their addresses.
  std::vector<Tensor> values_;
};

std::shared_ptr<Backend> make_reference_backend(BackendOptions options = {});
std::shared_ptr<Backend> make_cpu_backend(BackendOptions options = {});
/// Throws an Error if the build has no CUDA backend.
std::shared_ptr<Backend> make_cuda_backend(BackendOptions options = {});
/// Makes the backend named "reference", "cpu" or "cuda".
std::shared_ptr<Backend> make_backend(std::string_view name, BackendOptions options = {});

}  // namespace longhand
