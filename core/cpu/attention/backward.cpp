#include <algorithm>
#include <cmath>

#include "core/cpu/attention/attention.h"
#include "core/cpu/chunks.h"

namespace longhand::cpu {
namespace {

/// Attention, ChaCAL or DeltaFormer. `v` is what a row reads at earlier keys: y for DeltaFormer.
struct Backward {
  const Scores& scores;
  RuleTensors rule;
  const Heads &v, &dy;
  const HeadsTarget &dq, &dk, &dv;
  ScoreTargets dscores = {};
  const ChacalBackward* chacal = nullptr;
  const DeltaFormerBackward* deltaformer = nullptr;

  /// True if rows depend on the rows before them.
  bool solved() const { return chacal || deltaformer; }
};

/// Number of rows of dq_sums.
std::int64_t panel_rows(std::int64_t queries) {
  return (queries + attention_panel - 1) / attention_panel * attention_panel;
}

void put(const Target& y, std::int64_t i, double value) {
  if (!y) return;
  float& at = y.tensor.data<float>()[i];
  at = static_cast<float>(y.add ? static_cast<double>(at) + value : value);
}

/// Adds the gradients of the sinks, db = -sum_i exp(b - log_sum_i) D_i. The kernels do not see the
/// sink's share of a row.
void sink_gradients(const RuleTensors& rule, const float* dots) {
  const std::int64_t heads = rule.log_sum.columns(), rows = rule.log_sum.rows();
  const float *const sink = rule.sink.data<float>(), *const logs = rule.log_sum.data<float>();
  for (std::int64_t h = 0; h < heads; ++h) {
    double sum = 0;
    for (std::int64_t i = h; i < rows * heads; i += heads) {
      sum -= static_cast<double>(std::exp(sink[h] - logs[i]) * dots[i]);
    }
    put(rule.dsink, h, sum);
  }
}

/// Adds the sum of row i of dS to dc_i.
void add_row_sums(const Scores& s, const float* sums, const Target& shift) {
  const std::int64_t heads = s.q.heads;
  for (std::int64_t segment = 0; segment < s.queries.count(); ++segment) {
    const SegmentRows at = segment_rows(s.queries, s.keys, segment);
    float* const to = shift.tensor.data<float>() + (at.key + at.offset()) * heads;
    for (std::int64_t i = 0; i < at.queries * heads; ++i) to[i] += sums[at.query * heads + i];
  }
}

template <class T>
void run(const Crew& crew, Math math, const Backward& b) {
  const Scores& scores = b.scores;
  using Kernels = AttentionGradientKernels<T>;
  const Kernels& kernels =
      b.solved() ? solve_kernels<Kernels>(crew, b.chacal != nullptr, math)
                 : kernels_of<Kernels>(crew, b.rule.rule, false, math, scores.keys.longest());
  const std::int64_t range = kernels.range;
  const std::int64_t heads = scores.k.heads, group = scores.q.heads / heads;
  const std::int64_t width = scores.q.width, value_width = b.v.width;
  const std::int64_t window = window_of(scores);
  Backend& backend = scores.q.data.backend();

  // The ranges of a segment from the last to the first; items of one range of all heads are
  // neighbours, so that threads seldom follow each other on one head.
  WorkList list;
  struct Segment {
    std::size_t first_item;  // item of the last range, head 0, if there are several ranges
    std::int64_t parts, parts_before;
    std::int64_t sums, solved_rows;  // where its rows lie in the shared memory
  };
  std::vector<Segment> segments;
  std::int64_t sums = 0, solved_rows = 0, parts_before = 0;
  for (std::int64_t s = 0; s < scores.queries.count(); ++s) {
    const SegmentRows at = segment_rows(scores.queries, scores.keys, s);
    const std::int64_t parts = (at.keys + range - 1) / range;
    segments.push_back({list.items.size(), parts, parts_before, sums, solved_rows});
    parts_before += parts;
    if (parts > 1) {
      sums += heads * group * panel_rows(at.queries) * kernels.stride(width);
      if (b.solved()) solved_rows += heads * group * at.queries * kernels.stride(value_width);
    }
    for (std::int64_t part = parts - 1; part >= 0; --part) {
      const std::int64_t begin = part * range, end = std::min(at.keys, begin + range);
      const std::int64_t queries = std::min(at.queries, at.keys - begin);
      const double cost = static_cast<double>((end - begin) * queries * group) * 2.5 *
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

  const Scratch scratch(backend, crew.threads.threads(),
                        kernels.scratch(width, value_width, range));
  const Tensor all_sums = floats(backend, sums), all_solved_rows = floats(backend, solved_rows);
  const Tensor all_walked =
      floats(backend, leftward(b.rule.rule) && sums > 0
                          ? walked_numbers * scores.q.data.rows() * scores.q.heads
                          : 0);
  const auto of_rows = [&](bool wanted) {
    return wanted ? floats(backend, scores.q.data.rows() * scores.q.heads) : Tensor();
  };
  const Tensor dots = of_rows(static_cast<bool>(b.rule.dsink));
  const Tensor row_sums = of_rows(static_cast<bool>(b.dscores.decay));
  // Sums for gamma of each segment, range and head, which are added at the end in a fixed order.
  std::vector<float> dgamma(static_cast<std::size_t>(b.chacal ? parts_before * heads * group : 0));
  Progress progress(list.items.size());

  const auto head = [&](const WorkItem& item, std::int64_t h, float* space) {
    const SegmentRows at = segment_rows(scores.queries, scores.keys, item.segment);
    const Segment& segment = segments[item.segment];
    const std::int64_t q_head = h * group;
    AttentionGradients<T> task{
        .shape = {at.queries, at.keys, at.offset(), window, width, value_width},
        .heads = group,
        .q = rows_of<const T>(scores.q, q_head, at.query),
        .k = rows_of<const T>(scores.k, h, at.key),
        .v = rows_of<const T>(b.v, h, at.key),
        .y = rows_of<const T>(b.rule.y, q_head, at.query),
        .dy = rows_of<const T>(b.dy, q_head, at.query),
        .residue = rows_of<const T>(b.rule.residue, q_head, at.query),
        .log_sum = column_of<const float>(b.rule.log_sum, q_head, at.query),
        .tau = column_of<const float>(scores.multiplier, q_head, at.query),
        .shift = column_of<const float>(scores.decay, q_head, at.key),
        .pull = column_of<const float>(b.rule.count_bias, q_head, at.query),
        .sink = static_cast<bool>(b.rule.sink),
        .scale = static_cast<float>(scores.scale),
        .dq = rows_of<T>(b.dq.heads, q_head, at.query),
        .dk = rows_of<T>(b.dk.heads, h, at.key),
        .dv = rows_of<T>(b.dv.heads, h, at.key),
        .dtau = column_of<float>(b.dscores.multiplier.tensor, q_head, at.query),
        .dshift = column_of<float>(b.dscores.decay.tensor, q_head, at.key),
        .dots = {},
        .row_sums = {},
        .dpull = column_of<float>(b.rule.dcount_bias.tensor, q_head, at.query),
        .add_dq = b.dq.add,
        .add_dk = b.dk.add,
        .add_dv = b.dv.add,
        .add_dtau = b.dscores.multiplier.add,
        .add_dshift = b.dscores.decay.add,
        .add_dpull = b.rule.dcount_bias.add,
        .begin = item.begin,
        .end = item.end,
        .range = range};
    const std::int64_t part = segment.parts_before + item.part;
    const auto of_head = [&](const Tensor& x) {
      if (!x) return HeadRows<float>{};
      return HeadRows<float>{x.template data<float>() + at.query * scores.q.heads + q_head,
                             scores.q.heads};
    };
    task.dots = of_head(dots);
    task.row_sums = of_head(row_sums);
    const bool several = segment.parts > 1;
    if (several) {
      task.dq_sums = all_sums.template data<float>() + segment.sums +
                     q_head * panel_rows(at.queries) * kernels.stride(width);
    }
    if (several && leftward(b.rule.rule)) {
      task.walked = all_walked.template data<float>() +
                    walked_numbers * (at.query * scores.q.heads + q_head * at.queries);
    }
    if (b.solved() && several) {
      task.solved_rows = all_solved_rows.template data<float>() + segment.solved_rows +
                         q_head * at.queries * kernels.stride(value_width);
    }
    if (b.deltaformer) {
      task.gain = column_of<const float>(b.deltaformer->gain, q_head, at.query);
      task.read = rows_of<const T>(b.deltaformer->read, q_head, at.query);
      task.dgain = column_of<float>(b.deltaformer->dgain.tensor, q_head, at.query);
      task.add_dgain = b.deltaformer->dgain.add;
    }
    if (b.chacal) {
      const Tensor& gamma = b.chacal->gamma;
      task.gamma = gamma.template data<float>() + (gamma.size() == 1 ? 0 : q_head);
      task.gamma_step = gamma.size() == 1 ? 0 : 1;
      task.dgamma = &dgamma[part * heads * group + q_head];
    }
    // This item, and the item of the next range, which passes first over each panel that they
    // share.
    const std::size_t number =
        segment.first_item + static_cast<std::size_t>((segment.parts - 1 - item.part) * heads + h);
    const std::size_t next = number - static_cast<std::size_t>(heads);
    const std::int64_t panels = (at.queries + attention_panel - 1) / attention_panel;

    kernels.begin(task, space);
    for (std::int64_t g = 0; g < group; ++g) {
      kernels.begin_head(task, g, space);
      for (std::int64_t p = panels - 1; p >= 0; --p) {
        const std::int64_t row = p * attention_panel;
        const std::int64_t first = at.offset() + row;
        const std::int64_t last = std::min(first + attention_panel, at.keys) - 1;
        if (last < item.begin) break;
        const std::int64_t step = g * panels + panels - p;
        if (first - window + 1 < item.end) {
          if (last >= item.end) progress.wait(next, step);
          kernels.panel(task, g, row, space);
        }
        if (several) progress.reach(number, step);
      }
      kernels.end_head(task, g, space);
    }
    kernels.end(task, space);
  };
  list.run(crew.threads, [&](const WorkItem& item, int worker) {
    for (std::int64_t h = item.head; h < item.head_end; ++h) head(item, h, scratch.of(worker));
  });

  if (row_sums) add_row_sums(scores, row_sums.template data<float>(), b.dscores.decay);
  if (dots) sink_gradients(b.rule, dots.template data<float>());
  if (!b.chacal) return;
  const std::int64_t gammas = b.chacal->gamma.size();
  std::vector<double> by_head(static_cast<std::size_t>(heads * group), 0.0);
  for (std::size_t i = 0; i < dgamma.size(); ++i) {
    by_head[gammas == 1 ? 0 : i % by_head.size()] += static_cast<double>(dgamma[i]);
  }
  for (std::int64_t i = 0; i < gammas; ++i) put(b.chacal->dgamma, i, by_head[i]);
}

bool all_zero(const Tensor& gamma) {
  const float* const g = gamma.data<float>();
  return std::all_of(g, g + gamma.size(), [](float x) { return x == 0; });
}

}  // namespace

void attention(const Crew& crew, Math math, const AttentionBackward& op) {
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math,
           {op.scores, tensors_of(op.rule), op.v, op.dy, op.dq, op.dk, op.dv, op.dscores});
  });
}

void attention(const Crew& crew, Math math, const ChacalBackward& op) {
  const bool plain = !op.dgamma && all_zero(op.gamma);
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math,
           {.scores = op.scores,
            .rule = {.sink = op.sink, .log_sum = op.log_denominator, .y = op.y, .dsink = op.dsink},
            .v = op.v,
            .dy = op.dy,
            .dq = op.dq,
            .dk = op.dk,
            .dv = op.dv,
            .dscores = op.dscores,
            .chacal = plain ? nullptr : &op});
  });
}

void attention(const Crew& crew, Math math, const DeltaFormerBackward& op) {
  const Scores scores = plain_scores(op);
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    run<T>(crew, math,
           {.scores = scores,
            .rule = {.log_sum = op.log_denominator, .y = op.y},
            .v = op.y,
            .dy = op.dy,
            .dq = op.dq,
            .dk = op.dk,
            .dv = op.dv,
            .deltaformer = &op});
  });
}

}  // namespace longhand::cpu
