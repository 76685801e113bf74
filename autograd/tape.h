#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "autograd/variable.h"

namespace longhand {

/// Reverse-mode differentiation. While a Recording stands, each op on values that want gradients
/// appends one record: its output and a function that turns the output's gradient into the inputs'.
/// The order of recording is a topological order, so backward is one walk from the last record to
/// the first. A record is dropped as it is passed, and with it the tensors it saved.
class Tape {
 public:
  /// Adds d(sum of losses)/d(leaf) to every leaf's gradient and empties the tape.
  void backward(std::initializer_list<Var> losses);
  void backward(const Var& loss) { backward({loss}); }
  /// The same from a given gradient of y.
  void backward(const Var& y, const Tensor& dy);

  /// Before anything is recorded: `complete` is called with a leaf's number when backward has
  /// passed the last record that uses it, so that its gradient has all that this backward adds.
  /// Leaves that no record uses are not heard of.
  void watch(std::span<const Sink> leaves, std::function<void(std::size_t leaf)> complete);
  /// What is recorded here will be recorded again by a function that is about to be recorded on
  /// the other tape: its leaves are in use there until that function is done.
  void watch_for(const Tape& other) { watch_ = other.watch_; }

  std::size_t size() const { return records_.size(); }
  void clear() { records_.clear(); }

  static Tape* current();  // this thread's, nullptr when nothing is recorded

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

/// Makes a tape the current one of this thread for as long as it stands.
class Recording {
 public:
  explicit Recording(Tape& tape);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  Tape* outer_;
};

/// What an op returns: y, recorded if a tape is current and an input wants a gradient. The inputs'
/// empty ones (optional arguments) do not count.
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
