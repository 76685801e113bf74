#include "core/contract/gather.h"

#include <atomic>
#include <vector>

#include "core/contract/require.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/gather/kernels.h"
#include "core/cpu/reduce/partial_sums.h"

namespace longhand::cpu {
namespace {

/// Checks in parallel that all indices are in [0, bound). If one is not, longhand::require_indices
/// finds this index and throws an Error.
void require_indices(ThreadPool& threads, Isa isa, std::string_view op, std::string_view argument,
                     const Tensor& indices, std::int64_t bound) {
  const auto& k = kernels_for<IndexKernels>(isa);
  const auto* index = indices.data<std::int32_t>();
  std::atomic<bool> sound{true};
  parallel_for(threads, indices.size(), 4 * grain, [&](std::int64_t begin, std::int64_t end) {
    if (!k.in_range(index + begin, end - begin, bound)) sound = false;
  });
  if (!sound) longhand::require_indices(op, argument, indices, bound);
}

/// The rows of dy, sorted by id. The gradient of row `id` of the embedding table is the sum of all
/// rows of dy with this id. Rows with equal ids keep their order.
struct Sorted {
  std::vector<std::int64_t> order;  // the indices of the rows of dy, sorted by id
  // The rows with a certain id are order[first[id]], ..., order[first[id + 1] - 1].
  std::vector<std::int64_t> first;
};

Sorted sort_by_id(const std::int32_t* ids, std::int64_t rows, std::int64_t vocabulary) {
  Sorted s;
  s.order.resize(static_cast<std::size_t>(rows));
  s.first.assign(static_cast<std::size_t>(vocabulary) + 1, 0);
  for (std::int64_t i = 0; i < rows; ++i) ++s.first[static_cast<std::size_t>(ids[i]) + 1];
  for (std::size_t v = 1; v < s.first.size(); ++v) s.first[v] += s.first[v - 1];
  std::vector<std::int64_t> next(s.first.begin(), s.first.end() - 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    s.order[static_cast<std::size_t>(next[static_cast<std::size_t>(ids[i])]++)] = i;
  }
  return s;
}

/// Computes dtable, the gradient of an embedding table. Divides the rows of dy into chunks and adds
/// the rows of each chunk to a separate table. Then adds all of these tables.
template <class T>
void scatter_into_parts(ThreadPool& threads, Isa isa, const EmbeddingBackward& op) {
  const auto& k = kernels_for<GatherKernels<T>>(isa);
  const std::int64_t rows = op.dy.rows(), n = op.dy.columns();
  const Tensor& table = op.dtable.tensor;
  const T* dy = op.dy.data<T>();
  const auto* ids = op.ids.data<std::int32_t>();
  const std::int64_t each = std::max<std::int64_t>(8 * table.rows(), (rows + 15) / 16);
  PartialSums sums(op.dtable, (rows + each - 1) / each, table.size());
  parallel_for(threads, rows, each, [&](std::int64_t begin, std::int64_t end) {
    k.scatter_rows(dy + begin * n, ids + begin, nullptr, sums.part(begin / each), end - begin, n);
  });
  sums.combine(threads, isa, 1);
}

/// Computes dtable, the gradient of an embedding table. Sorts the rows of dy by id and divides the
/// rows of the table into chunks. Each chunk of the table receives the rows of dy whose ids are in
/// the chunk. Chunks have about equal work, which is counted as rows of the table plus rows of dy.
template <class T>
void scatter_by_id(ThreadPool& threads, Isa isa, const EmbeddingBackward& op) {
  const auto& k = kernels_for<GatherKernels<T>>(isa);
  const std::int64_t rows = op.dy.rows(), n = op.dy.columns();
  const Tensor& table = op.dtable.tensor;
  const T* dy = op.dy.data<T>();
  float* dtable = table.data<float>();
  const auto* ids = op.ids.data<std::int32_t>();
  const Sorted sorted = sort_by_id(ids, rows, table.rows());

  const std::int64_t work = rows_per_chunk(n);
  std::vector<std::int64_t> cuts{0};
  std::int64_t done = 0;
  for (std::int64_t v = 0; v < table.rows(); ++v) {
    const std::int64_t now = v + 1 + sorted.first[static_cast<std::size_t>(v) + 1];
    if (now - done >= work || v + 1 == table.rows()) {
      cuts.push_back(v + 1);
      done = now;
    }
  }
  parallel_for(threads, std::ssize(cuts) - 1, 1, [&](std::int64_t chunk, std::int64_t) {
    const std::int64_t begin = cuts[static_cast<std::size_t>(chunk)];
    const std::int64_t end = cuts[static_cast<std::size_t>(chunk) + 1];
    if (!op.dtable.add) std::fill(dtable + begin * n, dtable + end * n, 0.0f);
    const std::int64_t first = sorted.first[static_cast<std::size_t>(begin)];
    k.scatter_rows(dy, ids, sorted.order.data() + first, dtable,
                   sorted.first[static_cast<std::size_t>(end)] - first, n);
  });
}

}  // namespace

void run(CpuBackend& backend, const Embedding& op) {
  require_indices(backend.threads(), backend.isa(), Embedding::name, "ids", op.ids,
                  op.table.rows());
  visit_activation(op.table.dtype(), [&]<class From>(From) {
    visit_activation(op.y.dtype(), [&]<class To>(To) {
      const auto& k = kernels_for<EmbeddingKernels<From, To>>(backend.isa());
      const std::int64_t n = op.y.columns();
      const Store how = store_to(op.y, n);
      const From* table = op.table.data<From>();
      const auto* ids = op.ids.data<std::int32_t>();
      To* y = op.y.data<To>();
      parallel_for(backend.threads(), op.y.rows(), rows_per_chunk(n),
                   [&](std::int64_t begin, std::int64_t end) {
                     k.forward(table, ids + begin, y + begin * n, how, end - begin, n);
                   });
    });
  });
}

void run(CpuBackend& backend, const EmbeddingBackward& op) {
  if (!op.dtable) return;
  const std::int64_t vocabulary = op.dtable.tensor.rows();
  require_indices(backend.threads(), backend.isa(), EmbeddingBackward::name, "ids", op.ids,
                  vocabulary);
  visit_activation(op.dy.dtype(), [&]<class T>(T) {
    // If dy has many more rows than the table, it is faster to add each chunk of dy to a separate
    // table.
    if (op.dy.rows() >= 16 * vocabulary) {
      scatter_into_parts<T>(backend.threads(), backend.isa(), op);
    } else {
      scatter_by_id<T>(backend.threads(), backend.isa(), op);
    }
  });
}

void run(CpuBackend& backend, const Gather& op) {
  require_indices(backend.threads(), backend.isa(), Gather::name, "index", op.index,
                  op.x.columns());
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& kernel = kernels_for<GatherKernels<T>>(backend.isa());
    const std::int64_t n = op.x.columns(), k = op.index.columns();
    const T* x = op.x.data<T>();
    const auto* index = op.index.data<std::int32_t>();
    T* y = op.y.data<T>();
    parallel_for(backend.threads(), op.y.rows(), rows_per_chunk(k),
                 [&](std::int64_t begin, std::int64_t end) {
                   kernel.gather(x + begin * n, index + begin * k, y + begin * k, end - begin, n,
                                 k);
                 });
  });
}

void run(CpuBackend& backend, const GatherBackward& op) {
  if (!op.dx) return;
  const Tensor& dx = op.dx.tensor;
  require_indices(backend.threads(), backend.isa(), GatherBackward::name, "index", op.index,
                  dx.columns());
  visit_activation(op.dy.dtype(), [&]<class T>(T) {
    const auto& kernel = kernels_for<GatherKernels<T>>(backend.isa());
    const std::int64_t n = dx.columns(), k = op.index.columns();
    const T* dy = op.dy.data<T>();
    const auto* index = op.index.data<std::int32_t>();
    T* to = dx.data<T>();
    const std::int64_t each = rows_per_chunk(n), rows = dx.rows();
    std::vector<float> sums(static_cast<std::size_t>(backend.threads().threads() * n));
    backend.threads().run((rows + each - 1) / each, [&](std::int64_t chunk, int worker) {
      const std::int64_t begin = chunk * each;
      kernel.gather_backward(index + begin * k, dy + begin * k, to + begin * n, op.dx.add,
                             sums.data() + worker * n, std::min(each, rows - begin), n, k);
    });
  });
}

void run(CpuBackend& backend, const Argmax& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<GatherKernels<T>>(backend.isa());
    const std::int64_t n = op.x.columns();
    const T* x = op.x.data<T>();
    auto* y = op.y.data<std::int32_t>();
    parallel_for(backend.threads(), op.x.rows(), rows_per_chunk(n),
                 [&](std::int64_t begin, std::int64_t end) {
                   k.argmax(x + begin * n, y + begin, end - begin, n);
                 });
  });
}

}  // namespace longhand::cpu
