#include "autograd/tape.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "autograd/slot.h"
#include "core/contract/elementwise.h"
#include "core/error.h"

namespace longhand {
namespace {

thread_local Tape* current_tape = nullptr;

}  // namespace

struct Tape::Watch {
  const Tape* tape;
  // Maps the address of a leaf's gradient (Sink::Slot) to the index of the leaf in the argument
  // `leaves` of watch().
  std::unordered_map<const void*, std::size_t> number;
  // For each leaf, the index of the first record (recorded operation) that uses it. Backward
  // processes records from the last to the first, so the leaf's gradient is complete after this
  // record.
  std::vector<std::optional<std::size_t>> first_record;
  std::function<void(std::size_t leaf)> complete;
};

void Tape::watch(std::span<const Sink> leaves, std::function<void(std::size_t leaf)> complete) {
  watch_ = std::make_shared<Watch>(
      Watch{.tape = this, .number = {}, .first_record = {}, .complete = std::move(complete)});
  watch_->first_record.resize(leaves.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i]) watch_->number.emplace(leaves[i].slot_.get(), i);
  }
}

void Tape::note(std::span<const Var* const> inputs) const {
  for (const Var* input : inputs) {
    if (!input->wants_grad()) continue;
    const auto leaf = watch_->number.find(input->sink().slot_.get());
    if (leaf == watch_->number.end()) continue;
    auto& first = watch_->first_record[leaf->second];
    if (!first) first = watch_->tape->records_.size();
  }
}

Tape* Tape::current() { return current_tape; }

Recording::Recording(Tape& tape) : outer_(current_tape) { current_tape = &tape; }
Recording::~Recording() { current_tape = outer_; }

void Tape::backward(std::initializer_list<Var> losses) {
  for (const Var& loss : losses) {
    LONGHAND_CHECK(loss.wants_grad(),
                   "backward: the loss does not depend on any value that requires a gradient");
    LONGHAND_CHECK(loss.value().size() == 1,
                   "backward: expected a loss with one element, got shape ", loss.shape());
    Tensor one = empty_like(loss.value());
    one.backend()(Fill{.value = 1, .y = one});
    loss.sink().add(one);
  }
  walk();
}

void Tape::backward(const Var& y, const Tensor& dy) {
  LONGHAND_CHECK(y.wants_grad(),
                 "backward: the output does not depend on any value that requires a gradient");
  y.sink().add(dy);
  walk();
}

void Tape::walk() {
  Tape* const recording = current_tape;
  // No operation is recorded during backward, because gradients are not differentiated again.
  current_tape = nullptr;
  // Pairs (index of a record, index of a leaf), in ascending order. The record is the first one
  // that uses the leaf. Backward processes records from the last to the first, so this use is the
  // last one in backward.
  std::vector<std::pair<std::size_t, std::size_t>> last_uses;
  if (watch_) {
    for (std::size_t leaf = 0; leaf < watch_->first_record.size(); ++leaf) {
      if (const auto record = watch_->first_record[leaf]) last_uses.emplace_back(*record, leaf);
    }
    std::ranges::sort(last_uses);
  }
  try {
    while (!records_.empty()) {
      {
        const Record record = std::move(records_.back());
        records_.pop_back();
        const Tensor dy = std::move(record.output.slot_->grad);
        record.output.slot_->grad = Tensor();
        if (dy) record.backward(dy);  // dy is empty if no loss depends on the output
      }
      for (; !last_uses.empty() && last_uses.back().first == records_.size();
           last_uses.pop_back()) {
        watch_->complete(last_uses.back().second);
      }
    }
  } catch (...) {
    current_tape = recording;
    records_.clear();
    throw;
  }
  current_tape = recording;
}

}  // namespace longhand
