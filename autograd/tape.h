#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "autograd/variable.h"

namespace longhand {

/// Reverse-mode differentiation. While a Recording exists, each operation on values that require
/// gradients appends a record: its output, and a function that computes the gradients of its inputs
/// from the gradient of its output. An operation is recorded after the operations that compute its
/// inputs. Backward can therefore process the records once, from the last to the first. Each record
/// is then dropped, together with the tensors that it stores.
class Tape {
 public:
  /// Adds d(sum of losses)/d(leaf) to the gradient of every leaf, and empties the tape.
  void backward(std::initializer_list<Var> losses);
  void backward(const Var& loss) { backward({loss}); }
  /// Runs backward from y with the given gradient dy, and empties the tape.
  void backward(const Var& y, const Tensor& dy);

  /// Registers `complete`, which backward calls with the index of a leaf as soon as the leaf's
  /// gradient is complete. It is not called for leaves that no recorded operation uses. watch()
  /// must be called before anything is recorded.
  void watch(std::span<const Sink> leaves, std::function<void(std::size_t leaf)> complete);
  /// For recomputed() (recompute.cpp), which records a function f on this tape and then discards
  /// this tape. The next record of the tape `other` runs f again in its backward pass. Each use of
  /// a watched leaf in f therefore counts as a use by this next record.
  void watch_for(const Tape& other) { watch_ = other.watch_; }

  std::size_t size() const { return records_.size(); }
  void clear() { records_.clear(); }

  static Tape* current();  // the tape on which this thread records, or nullptr

 private:
  friend class Recording;
  struct Record {
    std::string_view op;
    Sink output;
    std::function<void(const Tensor& dy)> backward;
  };
  struct Watch;
  template <class Backward>
  friend Var record(std::string_view op, std::initializer_list<const Var*> inputs, Tensor y,
                    Backward&& backward);
  void note(std::span<const Var* const> inputs) const;
  void walk();

  std::vector<Record> records_;
  std::shared_ptr<Watch> watch_;
};

/// Makes a tape the current tape of this thread while the object exists.
class Recording {
 public:
  explicit Recording(Tape& tape);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Tape* outer_;
};

/// Returns y as the result of an operation. The operation is recorded if there is a current tape
/// and an input requires a gradient. Empty inputs (omitted optional arguments) are ignored.
template <class Backward>
Var record(std::string_view op, std::initializer_list<const Var*> inputs, Tensor y,
           Backward&& backward) {
  Tape* const tape = Tape::current();
  bool wanted = false;
  for (const Var* input : inputs) wanted = wanted || input->wants_grad();
  if (tape == nullptr || !wanted) return Var(std::move(y));
  Var out(std::move(y), true);
  if (tape->watch_) tape->note(std::span(inputs.begin(), inputs.size()));
  tape->records_.push_back({op, out.sink(), std::forward<Backward>(backward)});
  return out;
}

}  // namespace longhand
