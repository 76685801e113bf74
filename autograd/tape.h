#pragma once

#include <functional>
#include <initializer_list>
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
  template <class Backward>
  friend Var record(std::string_view op, std::initializer_list<const Var*> inputs, Tensor y,
                    Backward&& backward);
  void walk();

  std::vector<Record> records_;
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
  tape->records_.push_back({op, out.sink(), std::forward<Backward>(backward)});
  return out;
}

}  // namespace longhand
