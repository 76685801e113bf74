#include <algorithm>

#include "core/cpu/attention/passes.h"
#include "core/elementary.h"

namespace longhand::cpu {
namespace {

/// Returns `queries` rounded up to a multiple of the panel size.
std::int64_t panel_rows(std::int64_t queries) {
  return (queries + attention_panel - 1) / attention_panel * attention_panel;
}

void put(const Target& y, std::int64_t i, double value) {
  if (!y) return;
  float& at = y.tensor.data<float>()[i];
  at = static_cast<float>(y.add ? static_cast<double>(at) + value : value);
}

/// Computes the gradient of each head's sink, an extra score in every row, without a value vector:
///   dsink = -sum_i exp(sink - log_sum_i) dots_i,
/// where log_sum_i is the logarithm of the softmax denominator of row i, and dots_i is dy_i . y_i.
void sink_gradients(const Backward& b, const float* dots) {
  const std::int64_t heads = b.log_sum.columns(), rows = b.log_sum.rows();
  const float *const sink = b.sink.data<float>(), *const logs = b.log_sum.data<float>();
  for (std::int64_t h = 0; h < heads; ++h) {
    double sum = 0;
    for (std::int64_t i = h; i < rows * heads; i += heads) {
      sum -= elementary::exp(sink[h] - logs[i]) * static_cast<double>(dots[i]);
    }
    put(b.dsink, h, sum);
  }
}

/// Adds the sum of each query's row of dS (`sums`) to the gradient of Scores::decay at the query's
/// position.
void add_row_sums(const Scores& s, const float* sums, const Target& shift) {
  const std::int64_t heads = s.q.heads;
  for (std::int64_t segment = 0; segment < s.queries.count(); ++segment) {
    const SegmentRows at = segment_rows(s.queries, s.keys, segment);
    float* const to = shift.tensor.data<float>() + (at.key + at.offset()) * heads;
    for (std::int64_t i = 0; i < at.queries * heads; ++i) to[i] += sums[at.query * heads + i];
  }
}

/// Executes one backward pass: divides the work into items (each a range of keys for one or more
/// heads), allocates the memory that the items share, runs the items and adds their partial sums.
template <class T>
class BackwardPass {
 public:
  BackwardPass(const ExecContext& exec, const Backward& b,
               const AttentionGradientKernels<T>& kernels, bool solves)
      : exec_(exec),
        b_(b),
        scores_(b.scores),
        kernels_(kernels),
        solves_(solves),
        range_(kernels_.range),
        heads_(scores_.k.heads),
        group_(scores_.q.heads / heads_),
        width_(scores_.q.width),
        value_width_(b.v.width) {}

  void run() {
    divide();
    allocate();
    Progress progress(list_.items.size());
    const Scratch scratch(scores_.q.data.backend(), exec_.threads.threads(),
                          kernels_.scratch(width_, value_width_, range_));
    list_.run(exec_.threads, [&](const WorkItem& item, int worker) {
      for (std::int64_t h = item.head; h < item.head_end; ++h) {
        head(item, h, progress, scratch.of(worker));
      }
    });
    if (row_sums_) add_row_sums(scores_, row_sums_.template data<float>(), b_.dscores.decay);
    if (dots_) sink_gradients(b_, dots_.template data<float>());
    if (b_.gamma) add_gamma_gradients();
  }

 private:
  using Kernels = AttentionGradientKernels<T>;
  struct Segment {
    // The segment's first item, as an index into the work list. The segment's other items follow
    // it. The index is used only if the keys of the segment are divided into several ranges.
    std::size_t first_item;
    std::int64_t parts, parts_before;
    std::int64_t sums, solved_rows;  // offsets of the segment in all_sums_ and all_solved_rows_
  };

  /// Adds the work items of each segment to the list, from the last range of keys to the first. If
  /// an item processes the keys [a, b) of a head, it waits for the item that processes the keys of
  /// this head from b on. Threads seldom wait, because the items of all heads for one range are
  /// adjacent in the list.
  void divide() {
    for (std::int64_t s = 0; s < scores_.queries.count(); ++s) {
      const SegmentRows at = segment_rows(scores_.queries, scores_.keys, s);
      const std::int64_t parts = (at.keys + range_ - 1) / range_;
      segments_.push_back({list_.items.size(), parts, parts_, sums_, solved_rows_});
      parts_ += parts;
      if (parts > 1) {
        sums_ += heads_ * group_ * panel_rows(at.queries) * kernels_.stride(width_);
        if (solves_) {
          solved_rows_ += heads_ * group_ * at.queries * kernels_.stride(value_width_);
        }
      }
      for (std::int64_t part = parts - 1; part >= 0; --part) add_items(s, at, part, parts);
    }
    list_.close();
  }
  void add_items(std::int64_t segment, const SegmentRows& at, std::int64_t part,
                 std::int64_t parts) {
    const std::int64_t begin = part * range_, end = std::min(at.keys, begin + range_);
    const std::int64_t unseeing = std::max<std::int64_t>(0, begin - first_position(scores_, at));
    // Number of queries that see a key of the range.
    const std::int64_t queries = at.queries - unseeing;
    const double cost = static_cast<double>((end - begin) * queries * group_) * 2.5 *
                        static_cast<double>(width_ + value_width_);
    const std::int64_t together = parts > 1 ? 1 : heads_together(cost, heads_);
    for (std::int64_t h = 0; h < heads_; h += together) {
      const std::int64_t end_head = std::min(heads_, h + together);
      list_.add({static_cast<std::int32_t>(segment), static_cast<std::int32_t>(h),
                 static_cast<std::int32_t>(end_head), begin, end, part},
                cost * static_cast<double>(end_head - h));
    }
  }

  /// Allocates the buffers that all ranges of keys of a segment share, and the partial sums that
  /// run() adds up at the end.
  void allocate() {
    Backend& backend = scores_.q.data.backend();
    const std::int64_t numbers = scores_.q.data.rows() * scores_.q.heads;
    const auto of_rows = [&](bool wanted) { return wanted ? floats(backend, numbers) : Tensor(); };
    all_sums_ = floats(backend, sums_);
    all_solved_rows_ = floats(backend, solved_rows_);
    all_walked_ = floats(backend, kernels_.leftward && sums_ > 0 ? walked_numbers * numbers : 0);
    dots_ = of_rows(static_cast<bool>(b_.dsink));
    row_sums_ = of_rows(static_cast<bool>(b_.dscores.decay));
    dgamma_.resize(static_cast<std::size_t>(b_.gamma ? parts_ * heads_ * group_ : 0));
  }

  /// Returns the arguments of the kernels for one work item and key head h.
  AttentionGradients<T> task_of(const WorkItem& item, std::int64_t h) {
    const SegmentRows at = segment_rows(scores_.queries, scores_.keys, item.segment);
    const std::int64_t q_head = h * group_;
    AttentionGradients<T> task{
        .shape = {at.queries, at.keys, first_position(scores_, at), window_of(scores_), width_,
                  value_width_},
        .heads = group_,
        .q = rows_of<const T>(scores_.q, q_head, at.query),
        .k = rows_of<const T>(scores_.k, h, at.key),
        .v = rows_of<const T>(b_.v, h, at.key),
        .y = rows_of<const T>(b_.mean, q_head, at.query),
        .dy = rows_of<const T>(b_.dy, q_head, at.query),
        .residue = rows_of<const T>(b_.residue, q_head, at.query),
        .log_sum = column_of<const float>(b_.log_sum, q_head, at.query),
        .tau = column_of<const float>(scores_.multiplier, q_head, at.query),
        .shift = column_of<const float>(scores_.decay, q_head, at.key),
        .pull = column_of<const float>(b_.pull, q_head, at.query),
        .sink = static_cast<bool>(b_.sink),
        .scale = static_cast<float>(scores_.scale),
        .dq = rows_of<T>(b_.dq.heads, q_head, at.query),
        .dk = rows_of<T>(b_.dk.heads, h, at.key),
        .dv = rows_of<T>(b_.dv.heads, h, at.key),
        .dtau = column_of<float>(b_.dscores.multiplier.tensor, q_head, at.query),
        .dshift = column_of<float>(b_.dscores.decay.tensor, q_head, at.key),
        .dots = {},
        .row_sums = {},
        .dpull = column_of<float>(b_.dpull.tensor, q_head, at.query),
        .add_dq = b_.dq.add,
        .add_dk = b_.dk.add,
        .add_dv = b_.dv.add,
        .add_dtau = b_.dscores.multiplier.add,
        .add_dshift = b_.dscores.decay.add,
        .add_dpull = b_.dpull.add,
        .begin = item.begin,
        .end = item.end,
        .range = range_};
    const auto of_head = [&](const Tensor& x) {
      if (!x) return HeadRows<float>{};
      return HeadRows<float>{x.template data<float>() + at.query * scores_.q.heads + q_head,
                             scores_.q.heads};
    };
    task.dots = of_head(dots_);
    task.row_sums = of_head(row_sums_);
    const Segment& segment = segments_[item.segment];
    if (segment.parts > 1) share(task, segment, at, q_head);
    task.gain = column_of<const float>(b_.gain, q_head, at.query);
    task.read = rows_of<const T>(b_.read, q_head, at.query);
    task.dgain = column_of<float>(b_.dgain.tensor, q_head, at.query);
    task.add_dgain = b_.dgain.add;
    if (b_.gamma) {
      const bool one = b_.gamma.size() == 1;
      const std::int64_t part = segment.parts_before + item.part;
      task.gamma = b_.gamma.template data<float>() + (one ? 0 : q_head);
      task.gamma_step = one ? 0 : 1;
      task.dgamma = &dgamma_[part * heads_ * group_ + q_head];
    }
    return task;
  }
  /// Sets the task's pointers to the buffers that all ranges of keys of a segment share: the sums
  /// for dq, the state of each row (only for rules that process keys from the last to the first),
  /// and the solution W of a triangular system (only for ChaCAL and DeltaFormer).
  void share(AttentionGradients<T>& task, const Segment& segment, const SegmentRows& at,
             std::int64_t q_head) {
    task.dq_sums = all_sums_.template data<float>() + segment.sums +
                   q_head * panel_rows(at.queries) * kernels_.stride(width_);
    if (kernels_.leftward) {
      task.walked = all_walked_.template data<float>() +
                    walked_numbers * (at.query * scores_.q.heads + q_head * at.queries);
    }
    if (solves_) {
      task.solved_rows = all_solved_rows_.template data<float>() + segment.solved_rows +
                         q_head * at.queries * kernels_.stride(value_width_);
    }
  }

  void head(const WorkItem& item, std::int64_t h, Progress& progress, float* space) {
    const AttentionGradients<T> task = task_of(item, h);
    const SegmentShape& shape = task.shape;
    const Segment& segment = segments_[item.segment];
    const bool several = segment.parts > 1;
    // `number` is the index of this work item, and `next` is the index of the item whose range of
    // keys follows this item's range. If a panel of queries sees keys of both ranges, item `next`
    // must process the panel first.
    const std::size_t number =
        segment.first_item + static_cast<std::size_t>((segment.parts - 1 - item.part) * heads_ + h);
    const std::size_t next = number - static_cast<std::size_t>(heads_);
    const std::int64_t panels = (shape.queries + attention_panel - 1) / attention_panel;

    kernels_.begin(task, space);
    for (std::int64_t g = 0; g < group_; ++g) {
      kernels_.begin_head(task, g, space);
      for (std::int64_t p = panels - 1; p >= 0; --p) {
        const std::int64_t row = p * attention_panel;
        const std::int64_t first = shape.offset + row;
        const std::int64_t last = std::min(first + attention_panel, shape.keys) - 1;
        if (last < item.begin) break;
        const std::int64_t step = g * panels + panels - p;
        if (first - shape.window + 1 < item.end) {
          if (last >= item.end) progress.wait(next, step);
          kernels_.panel(task, g, row, space);
        }
        if (several) progress.reach(number, step);
      }
      kernels_.end_head(task, g, space);
    }
    kernels_.end(task, space);
  }

  void add_gamma_gradients() const {
    const std::int64_t gammas = b_.gamma.size();
    std::vector<double> by_head(static_cast<std::size_t>(heads_ * group_), 0.0);
    for (std::size_t i = 0; i < dgamma_.size(); ++i) {
      by_head[gammas == 1 ? 0 : i % by_head.size()] += static_cast<double>(dgamma_[i]);
    }
    for (std::int64_t i = 0; i < gammas; ++i) put(b_.dgamma, i, by_head[i]);
  }

  const ExecContext& exec_;
  const Backward& b_;
  const Scores& scores_;
  const Kernels& kernels_;
  bool solves_;
  std::int64_t range_, heads_, group_, width_, value_width_;

  WorkList list_;
  std::vector<Segment> segments_;
  // Totals over all segments. parts_: number of ranges of keys. sums_: number of floats in
  // all_sums_. solved_rows_: number of floats in all_solved_rows_.
  std::int64_t parts_ = 0, sums_ = 0, solved_rows_ = 0;

  Tensor all_sums_, all_solved_rows_, all_walked_, dots_, row_sums_;
  // Partial sums of the gradient of gamma, one for each segment, range of keys and query head. At
  // the end, they are added in a fixed order.
  std::vector<float> dgamma_;
};

}  // namespace

template <class T>
void run_backward(const ExecContext& exec, const Backward& b,
                  const AttentionGradientKernels<T>& kernels, bool solves) {
  BackwardPass<T>(exec, b, kernels, solves).run();
}
template void run_backward(const ExecContext&, const Backward&,
                           const AttentionGradientKernels<float>&, bool);
template void run_backward(const ExecContext&, const Backward&,
                           const AttentionGradientKernels<bf16>&, bool);

}  // namespace longhand::cpu
