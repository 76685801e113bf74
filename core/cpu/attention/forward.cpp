#include <algorithm>
#include <type_traits>

#include "core/cpu/attention/passes.h"

namespace longhand::cpu {
namespace {

/// Number of queries that are processed together, so that each block of keys is packed only once
/// for all of them.
constexpr std::int64_t rows = 4 * attention_panel;

/// The time of a multiplication in a row that is computed alone, divided by the time in a panel of
/// rows (an estimate). Memory limits the speed of a single row, which reads all keys and values.
constexpr double cost_alone = 16;

/// Executes one forward pass: divides the work into items (each a range of query rows for one or
/// more heads) and runs them.
template <class T>
class ForwardPass {
 public:
  ForwardPass(const ExecContext& exec, Math math, const Forward& f,
              const ForwardKernels<T>& kernels)
      : exec_(exec),
        f_(f),
        scores_(f.scores),
        kernels_(kernels.plain),
        solving_(kernels.solving),
        heads_(f.y.heads),
        group_(heads_ / f.v.heads),
        width_(scores_.q.width),
        value_width_(f.v.width) {
    // Segments with few queries can use a second kernel, which computes one row at a time with f32
    // products of unrounded operands. f32 tensors in Math::bf16 do not use it, because this mode
    // requires operands rounded to bf16. A pass that saves tensors for the backward pass uses it
    // only if the kernel writes these tensors (row_saves), which it does only for softmax.
    const bool saved = f.log_sum || f.residue;
    singly_ = (kernels_.row_saves || !saved) && (math != Math::bf16 || std::is_same_v<T, bf16>);
  }

  void run() {
    divide();
    const Scratch scratch(f_.y.data.backend(), exec_.threads.threads(),
                          kernels_.scratch(width_, value_width_, rows, scores_.keys.longest()));
    Progress done(solving_ ? static_cast<std::size_t>(scores_.queries.count() * heads_) : 0);
    list_.run(exec_.threads, [&](const WorkItem& item, int worker) {
      for (std::int64_t h = item.head; h < item.head_end; ++h) {
        head(item, h, done, scratch.of(worker));
      }
    });
  }

 private:
  using Kernels = AttentionKernels<T>;

  /// Adds the work items of each segment to the list, from the last rows to the first, because
  /// later rows cost more. In ChaCAL and DeltaFormer, rows depend on the outputs of earlier rows,
  /// so the order is from the first rows to the last.
  void divide() {
    for (std::int64_t s = 0; s < scores_.queries.count(); ++s) {
      const SegmentRows at = segment_rows(scores_.queries, scores_.keys, s);
      const std::int64_t parts = (at.queries + rows - 1) / rows;
      const std::int64_t offset = first_position(scores_, at);
      for (std::int64_t p = 0; p < parts; ++p) {
        const std::int64_t part = solving_ ? p : parts - 1 - p;
        const std::int64_t begin = part * rows, end = std::min(at.queries, begin + rows);
        const double cost = static_cast<double>((end - begin) * std::min(at.keys, offset + end)) *
                            static_cast<double>(width_ + value_width_) *
                            (!solving_ && alone(at) ? cost_alone : 1);
        const std::int64_t together = parts > 1 ? 1 : heads_together(cost, heads_);
        for (std::int64_t h = 0; h < heads_; h += together) {
          const std::int64_t end_head = std::min(heads_, h + together);
          list_.add({static_cast<std::int32_t>(s), static_cast<std::int32_t>(h),
                     static_cast<std::int32_t>(end_head), begin, end, part},
                    cost * static_cast<double>(end_head - h));
        }
      }
    }
    list_.close();
  }

  /// True if each row of the segment is computed alone. Heads with chains are computed by solve().
  bool alone(const SegmentRows& at) const { return singly_ && at.queries <= attention_few; }

  AttentionRows<T> task_of(const SegmentRows& at, std::int64_t h) const {
    AttentionRows<T> task{.shape = {at.queries, at.keys, first_position(scores_, at),
                                    window_of(scores_), width_, value_width_},
                          .q = rows_of<const T>(scores_.q, h, at.query),
                          .k = rows_of<const T>(scores_.k, h / group_, at.key),
                          .v = rows_of<const T>(f_.v, h / group_, at.key),
                          .y = rows_of<T>(f_.y, h, at.query),
                          .log_sum = column_of<float>(f_.log_sum, h, at.query),
                          .mean = rows_of<T>(f_.mean, h, at.query),
                          .residue = rows_of<T>(f_.residue, h, at.query),
                          .earlier = rows_of<const T>(f_.earlier, h, at.key),
                          .tau = column_of<const float>(scores_.multiplier, h, at.query),
                          .shift = column_of<const float>(scores_.decay, h, at.key),
                          .sink = f_.sink ? f_.sink.template data<float>() + h : nullptr,
                          .pull = column_of<const float>(f_.pull, h, at.query),
                          .scale = static_cast<float>(scores_.scale),
                          .gain = column_of<const float>(f_.gain, h, at.query),
                          .read = rows_of<T>(f_.read, h, at.query)};
    if (f_.gamma) task.gamma = f_.gamma.template data<float>()[f_.gamma.size() == 1 ? 0 : h];
    return task;
  }

  void head(const WorkItem& item, std::int64_t h, Progress& done, float* space) const {
    const SegmentRows at = segment_rows(scores_.queries, scores_.keys, item.segment);
    const AttentionRows<T> task = task_of(at, h);
    const typename Kernels::Chunk chunk{item.begin, item.end};
    // A head of ChaCAL with gamma = 0 is softmax attention.
    const bool softmax = f_.gamma && task.gamma == 0;
    if (solving_ && !softmax) {
      solve(item, static_cast<std::size_t>(item.segment * heads_ + h), task, done, space);
    } else if (alone(at)) {
      for (std::int64_t row = item.begin; row < item.end; ++row) kernels_.row(task, row, space);
    } else {
      kernels_.begin(task, chunk, space);
      kernels_.before(task, chunk, 0, std::min(at.keys, task.shape.offset + item.begin), space);
      kernels_.own(task, chunk, space);
    }
  }
  /// Computes the rows of a work item for ChaCAL or DeltaFormer, whose rows depend on the outputs
  /// of earlier rows. Before it reads the outputs of an earlier chunk of rows, it waits until that
  /// chunk is finished.
  void solve(const WorkItem& item, std::size_t number, const AttentionRows<T>& task, Progress& done,
             float* space) const {
    const typename Kernels::Chunk chunk{item.begin, item.end};
    const std::int64_t offset = task.shape.offset;
    solving_->begin(task, chunk, space);
    solving_->before(task, chunk, 0, offset, space);
    for (std::int64_t row = 0; row < item.begin; row += rows) {
      done.wait(number, row + rows);
      solving_->before(task, chunk, offset + row, offset + row + rows, space);
    }
    solving_->own(task, chunk, space);
    done.reach(number, item.end);
  }

  const ExecContext& exec_;
  const Forward& f_;
  const Scores& scores_;
  const Kernels& kernels_;
  const Kernels* solving_;
  std::int64_t heads_, group_, width_, value_width_;
  bool singly_ = false;
  WorkList list_;
};

}  // namespace

template <class T>
void run_forward(const ExecContext& exec, Math math, const Forward& f,
                 const ForwardKernels<T>& kernels) {
  ForwardPass<T>(exec, math, f, kernels).run();
}
template void run_forward(const ExecContext&, Math, const Forward&, const ForwardKernels<float>&);
template void run_forward(const ExecContext&, Math, const Forward&, const ForwardKernels<bf16>&);

}  // namespace longhand::cpu
