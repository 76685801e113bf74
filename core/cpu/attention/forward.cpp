#include <algorithm>
#include <type_traits>

#include "core/cpu/attention/attention.h"
#include "core/cpu/chunks.h"

namespace longhand::cpu {
namespace {

/// Attention, ChaCAL or DeltaFormer.
struct Forward {
  const Scores& scores;
  RuleTensors rule;
  const Heads &v, &y;
  const Chacal* chacal = nullptr;
  const DeltaFormer* deltaformer = nullptr;

  /// True if rows depend on the rows before them.
  bool solved() const { return chacal || deltaformer; }
};

/// Rows of queries that pass over the keys together, so that each packed block of keys serves all
/// of them.
constexpr std::int64_t rows = 4 * attention_panel;

template <class T>
void run(const Crew& crew, Math math, const Forward& f) {
  const Scores& scores = f.scores;
  const auto& kernels =
      kernels_of<AttentionKernels<T>>(crew, f.rule.rule, f.solved(), math, scores.keys.longest());
  const auto& solving =
      f.solved() ? solve_kernels<AttentionKernels<T>>(crew, f.chacal != nullptr, math) : kernels;
  const std::int64_t heads = f.y.heads, group = heads / f.v.heads;
  const std::int64_t width = scores.q.width, value_width = f.v.width;
  // Single rows use f32 products of unrounded operands, which suits bf16 numbers, whose products
  // are exact in f32, but not f32 numbers, which would have to be rounded first. If a backward pass
  // follows, TRA must find the very bits of a score there, and stick the rounded weights; entmax's
  // mean is computed by panels.
  const bool by_row = f.rule.rule == Rule::softmax || (!f.rule.log_sum && !f.rule.residue);
  const bool singly = by_row && (math != Math::bf16 || std::is_same_v<T, bf16>);

  // Later rows cost more and are taken first. Where rows depend on earlier rows, the first row is
  // first.
  WorkList list;
  for (std::int64_t s = 0; s < scores.queries.count(); ++s) {
    const SegmentRows at = segment_rows(scores.queries, scores.keys, s);
    const std::int64_t parts = (at.queries + rows - 1) / rows;
    for (std::int64_t p = 0; p < parts; ++p) {
      const std::int64_t part = f.solved() ? p : parts - 1 - p;
      const std::int64_t begin = part * rows, end = std::min(at.queries, begin + rows);
      const double cost = static_cast<double>((end - begin) * (at.offset() + end)) *
                          static_cast<double>(width + value_width);
      const std::int64_t together = parts > 1 ? 1 : heads_together(cost, heads);
      for (std::int64_t h = 0; h < heads; h += together) {
        const std::int64_t end_head = std::min(heads, h + together);
        list.add({static_cast<std::int32_t>(s), static_cast<std::int32_t>(h),
                  static_cast<std::int32_t>(end_head), begin, end, part},
                 cost * static_cast<double>(end_head - h));
      }
    }
  }
  list.close();

  const Scratch scratch(f.y.data.backend(), crew.threads.threads(),
                        kernels.scratch(width, value_width, rows, scores.keys.longest()));
  Progress done(f.solved() ? static_cast<std::size_t>(scores.queries.count() * heads) : 0);
  const auto head = [&](const WorkItem& item, std::int64_t h, float* space) {
    const SegmentRows at = segment_rows(scores.queries, scores.keys, item.segment);
    AttentionRows<T> task{
        .shape = {at.queries, at.keys, at.offset(), window_of(scores), width, value_width},
        .q = rows_of<const T>(scores.q, h, at.query),
        .k = rows_of<const T>(scores.k, h / group, at.key),
        .v = rows_of<const T>(f.v, h / group, at.key),
        .y = rows_of<T>(f.y, h, at.query),
        .log_sum = column_of<float>(f.rule.log_sum, h, at.query),
        .mean = rows_of<T>(f.rule.root_mean, h, at.query),
        .residue = rows_of<T>(f.rule.residue, h, at.query),
        .earlier = {},
        .tau = column_of<const float>(scores.multiplier, h, at.query),
        .shift = column_of<const float>(scores.decay, h, at.key),
        .sink = f.rule.sink ? f.rule.sink.template data<float>() + h : nullptr,
        .pull = column_of<const float>(f.rule.count_bias, h, at.query),
        .scale = static_cast<float>(scores.scale)};
    if (f.chacal) {
      const Tensor& gamma = f.chacal->gamma;
      task.earlier = rows_of<const T>(f.chacal->earlier, h, at.key);
      task.gamma = gamma.template data<float>()[gamma.size() == 1 ? 0 : h];
    }
    if (f.deltaformer) {
      task.earlier = rows_of<const T>(f.deltaformer->earlier, h, at.key);
      task.gain = column_of<const float>(f.deltaformer->gain, h, at.query);
      task.read = rows_of<T>(f.deltaformer->read, h, at.query);
    }
    // A head of ChaCAL with gamma = 0 is softmax attention.
    const bool solves = f.deltaformer || task.gamma != 0;
    if (singly && !solves && at.queries <= attention_few) {
      for (std::int64_t row = item.begin; row < item.end; ++row) kernels.row(task, row, space);
      return;
    }
    const typename AttentionKernels<T>::Chunk chunk{item.begin, item.end};
    if (!solves) {
      kernels.begin(task, chunk, space);
      kernels.before(task, chunk, 0, at.offset() + item.begin, space);
      kernels.own(task, chunk, space);
      return;
    }
    const auto number = static_cast<std::size_t>(item.segment * heads + h);
    solving.begin(task, chunk, space);
    solving.before(task, chunk, 0, at.offset(), space);
    for (std::int64_t row = 0; row < item.begin; row += rows) {
      done.wait(number, row + rows);
      solving.before(task, chunk, at.offset() + row, at.offset() + row + rows, space);
    }
    solving.own(task, chunk, space);
    done.reach(number, item.end);
  };
  list.run(crew.threads, [&](const WorkItem& item, int worker) {
    for (std::int64_t h = item.head; h < item.head_end; ++h) head(item, h, scratch.of(worker));
  });
}

}  // namespace

void attention(const Crew& crew, Math math, const Attention& op) {
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math, {.scores = op.scores, .rule = tensors_of(op.rule), .v = op.v, .y = op.y});
  });
}

void attention(const Crew& crew, Math math, const Chacal& op) {
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math,
           {.scores = op.scores,
            .rule = {.sink = op.sink, .log_sum = op.log_denominator},
            .v = op.v,
            .y = op.y,
            .chacal = &op});
  });
}

void attention(const Crew& crew, Math math, const DeltaFormer& op) {
  const Scores scores = plain_scores(op);
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math,
           {.scores = scores,
            .rule = {.log_sum = op.log_denominator},
            .v = op.v,
            .y = op.y,
            .deltaformer = &op});
  });
}

}  // namespace longhand::cpu
