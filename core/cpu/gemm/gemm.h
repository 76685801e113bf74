#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/contract/matmul.h"
#include "core/cpu/gemm/kept_panels.h"
#include "core/cpu/isa.h"
#include "core/dtype.h"
#include "core/formulas.h"
#include "core/parallel.h"

/// Matrix products of the CPU backend. Operands are given by pointers, sizes and leading
/// dimensions.
namespace longhand::cpu {

/// A row-major matrix, or a batch of such matrices, of f32 or bf16. The leading dimension `ld` and
/// the distance `batch_stride` between matrices count elements.
struct GemmOperand {
  const void* data = nullptr;
  DType type = DType::f32;
  std::int64_t ld = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;
};

struct GemmResult {
  void* data = nullptr;
  DType type = DType::f32;
  std::int64_t ld = 0;
  std::int64_t batch_stride = 0;
};

/// The operations that follow a product op(a) op(b), where op() is the identity or the transpose. f
/// is an activation function, and f' is its derivative. If `at` is omitted:
///   z = alpha op(a) op(b) + bias;  c = f(z) + residual + beta c.
/// If `at` is given, with the elementwise product *:
///   c = (alpha op(a) op(b)) * f'(at) + beta c.
/// Arguments that are omitted have null data.
struct Epilogue {
  const float* bias = nullptr;
  std::optional<Activation> f = {};
  GemmResult pre = {};  // receives z, the input of f, unless omitted
  GemmOperand residual = {}, at = {};
};

/// A batch of matrix products op(a) op(b), followed by the operations of `epilogue`, whose result
/// is stored in c. op(a), which is a or its transpose, is m x k, op(b) is k x n, and c is m x n.
/// The old values of c are multiplied by the factor `beta` and added. If `beta` is 0, they are not
/// read. c must not overlap a or b, but may be one of the inputs Epilogue::residual and
/// Epilogue::at.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmOperand a, b;
  GemmResult c;
  float alpha = 1, beta = 0;
  Epilogue epilogue = {};
  Math math = Math::exact;
};

/// Scratch memory that grows as needed and is reused: one buffer per worker thread, and two buffers
/// that all workers share.
class GemmWorkspace {
 public:
  /// `kept` caches the packed panels of operands whose values do not change (SteadyValues). If it
  /// is null, no panels are cached.
  explicit GemmWorkspace(KeptPanels* kept = nullptr) : kept_(kept) {}
  GemmWorkspace(const GemmWorkspace&) = delete;
  GemmWorkspace& operator=(const GemmWorkspace&) = delete;

  /// Grows the buffers to at least these sizes. Their contents may be lost.
  void reserve(int workers, std::size_t bytes_each, std::size_t packed_bytes,
               std::size_t partial_bytes);
  std::byte* of_worker(int worker) { return workers_[static_cast<std::size_t>(worker)].data; }
  std::byte* packed() { return packed_.data; }
  std::byte* partial() { return partial_.data; }
  KeptPanels* kept() { return kept_; }

  /// Calls body(task, worker) once for each task in [0, tasks). Each worker first executes a range
  /// of tasks that is the same in every call, so its cache may still contain their data from the
  /// previous call. The worker then executes tasks from the ranges of other workers. Tasks are
  /// independent, so their distribution over workers does not affect results.
  void run(ThreadPool& pool, std::int64_t tasks,
           FunctionRef<void(std::int64_t task, int worker)> body);

 private:
  struct Buffer {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();
    void grow(std::size_t wanted);
  };
  KeptPanels* kept_;
  std::vector<Buffer> workers_;
  Buffer packed_, partial_;
  // The tasks [next, end) of one worker that are not yet started. Each Stretch has its own cache
  // line.
  struct alignas(64) Stretch {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  std::unique_ptr<Stretch[]> stretches_;
  int stretch_count_ = 0;
};

struct GemmKernels;

/// Computes the matrix product g. The division into blocks does not depend on the number of
/// threads, so neither do the bits of the result.
void gemm(const Gemm& g, Isa isa, ThreadPool& pool, GemmWorkspace& workspace);
/// Like gemm() above, but with the given table of kernels.
void gemm(const Gemm& g, const GemmKernels& kernels, ThreadPool& pool, GemmWorkspace& workspace);

}  // namespace longhand::cpu
