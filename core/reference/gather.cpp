#include "core/contract/gather.h"

#include "core/contract/elementwise.h"
#include "core/contract/require.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

/// Sets all values of a target to 0, or keeps them if Target::add is set. The caller then adds its
/// results to these values one by one.
void clear_unless_adding(Backend& backend, const Target& target) {
  if (!target.add) backend(Fill{.value = 0, .y = target.tensor});
}

}  // namespace

void run(ReferenceBackend&, const Embedding& op) {
  require_indices(Embedding::name, "ids", op.ids, op.table.rows());
  const Rows table(op.table);
  const Result y(op.y);
  const auto* ids = op.ids.data<std::int32_t>();
  for (std::int64_t i = 0; i < op.y.rows(); ++i) {
    for (std::int64_t j = 0; j < op.y.columns(); ++j) y.put(i, j, table(ids[i], j));
  }
}

void run(ReferenceBackend& backend, const EmbeddingBackward& op) {
  if (!op.dtable) return;
  require_indices(EmbeddingBackward::name, "ids", op.ids, op.dtable.tensor.rows());
  clear_unless_adding(backend, op.dtable);
  const Rows dy(op.dy);
  const Result dtable(Target(op.dtable.tensor, true));
  const auto* ids = op.ids.data<std::int32_t>();
  for (std::int64_t i = 0; i < op.dy.rows(); ++i) {
    for (std::int64_t j = 0; j < op.dy.columns(); ++j) dtable.put(ids[i], j, dy(i, j));
  }
}

void run(ReferenceBackend&, const Gather& op) {
  require_indices(Gather::name, "index", op.index, op.x.columns());
  const Rows x(op.x);
  const Result y(op.y);
  const auto* index = op.index.data<std::int32_t>();
  const std::int64_t k = op.index.columns();
  for (std::int64_t i = 0; i < op.y.rows(); ++i) {
    for (std::int64_t j = 0; j < k; ++j) y.put(i, j, x(i, index[i * k + j]));
  }
}

void run(ReferenceBackend& backend, const GatherBackward& op) {
  if (!op.dx) return;
  require_indices(GatherBackward::name, "index", op.index, op.dx.tensor.columns());
  clear_unless_adding(backend, op.dx);
  const Rows dy(op.dy);
  const Result dx(Target(op.dx.tensor, true));
  const auto* index = op.index.data<std::int32_t>();
  const std::int64_t k = op.index.columns();
  for (std::int64_t i = 0; i < op.dy.rows(); ++i) {
    for (std::int64_t j = 0; j < k; ++j) dx.put(i, index[i * k + j], dy(i, j));
  }
}

void run(ReferenceBackend&, const Argmax& op) {
  const Rows x(op.x);
  auto* y = op.y.data<std::int32_t>();
  for (std::int64_t i = 0; i < op.x.rows(); ++i) {
    std::int64_t largest = 0;
    for (std::int64_t j = 1; j < op.x.columns(); ++j) {
      if (x(i, j) > x(i, largest)) largest = j;
    }
    y[i] = static_cast<std::int32_t>(largest);
  }
}

}  // namespace longhand::reference
