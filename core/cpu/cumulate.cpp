#include "core/contract/cumulate.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/elementary.h"

/// Cumulative sums and counts over the tokens of a sequence. Each sequence is processed by one
/// thread. Dividing a sequence among threads is not worthwhile, because the work per token is small
/// compared with attention.
namespace longhand::cpu {
namespace {

std::int64_t segments_per_chunk(const Segments& segments, std::int64_t columns) {
  return rows_per_chunk(std::max<std::int64_t>(1, segments.longest()) * columns);
}

}  // namespace

void run(CpuBackend& backend, const Cumulate& op) {
  if (!op.y) return;
  const std::int64_t columns = op.x.columns();
  const bool add = op.y.add;
  const auto* const x = op.x.data<float>();
  auto* const y = op.y.tensor.data<float>();
  const float* const before = op.before ? op.before.data<float>() : nullptr;
  float* const after = op.after ? op.after.data<float>() : nullptr;
  const bool covered = op.segments.tile() && op.segments.tokens() == op.x.rows();
  if (!add && !covered) std::memset(op.y.tensor.address(), 0, op.y.tensor.bytes());
  parallel_for(backend.threads(), op.segments.count(), segments_per_chunk(op.segments, columns),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<double> sums(static_cast<std::size_t>(columns));
                 for (std::int64_t s = begin; s < end; ++s) {
                   std::ranges::fill(sums, 0.0);
                   if (before) std::copy_n(before + s * columns, columns, sums.begin());
                   const std::int64_t first = op.segments.begins()[s];
                   const std::int64_t rows = op.segments.lengths()[s];
                   for (std::int64_t t = 0; t < rows; ++t) {
                     const std::int64_t row = first + (op.reverse ? rows - 1 - t : t);
                     const float* const from = x + row * columns;
                     float* const to = y + row * columns;
                     for (std::int64_t c = 0; c < columns; ++c) {
                       sums[c] += static_cast<double>(from[c]);
                       const auto sum = static_cast<float>(sums[c]);
                       to[c] = add ? to[c] + sum : sum;
                     }
                   }
                   for (std::int64_t c = 0; after && c < columns; ++c) {
                     after[s * columns + c] = static_cast<float>(sums[c]);
                   }
                 }
               });
}

void run(CpuBackend& backend, const LogCounts& op) {
  const std::int64_t columns = op.y.columns();
  auto* const y = op.y.data<float>();
  parallel_for(backend.threads(), op.queries.count(), segments_per_chunk(op.queries, columns),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t s = begin; s < end; ++s) {
                   const SegmentRows at = segment_rows(op.queries, op.keys, s);
                   for (std::int64_t t = 0; t < at.queries; ++t) {
                     const std::int64_t n = op.whole ? at.keys : at.offset() + t + 1;
                     const auto log_n = static_cast<float>(
                         elementary::log(static_cast<double>(std::max<std::int64_t>(2, n))));
                     std::fill_n(y + (at.query + t) * columns, columns, log_n);
                   }
                 }
               });
}

}  // namespace longhand::cpu
