#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace longhand::nn {

/// Sums values in a binary tree: first values 0 and 1, then values 2 and 3, then these two sums,
/// and so on. Each addition is done as soon as both operands exist, so at most one value per level
/// of the tree is stored. `add(a, b)` must return a + b. After 2^k values, only their sum is
/// stored. If more values follow, this sum becomes an inner node of the larger tree.
template <class Value, class Add>
class Tree {
 public:
  explicit Tree(Add add) : add_(std::move(add)) {}

  void push(Value value) {
    for (std::size_t count = count_++; count & 1; count >>= 1) {
      value = add_(std::move(held_.back()), std::move(value));
      held_.pop_back();
    }
    held_.push_back(std::move(value));
  }
  Value take() {  // returns the single sum that is stored
    Value sum = std::move(held_.front());
    held_.clear();
    count_ = 0;
    return sum;
  }
  std::size_t held() const { return held_.size(); }

 private:
  Add add_;
  std::size_t count_ = 0;
  std::vector<Value> held_;
};

/// The sum of 2^k numbers, computed by a Tree.
inline double tree_sum(const std::vector<double>& numbers) {
  Tree<double, double (*)(double, double)> tree([](double a, double b) { return a + b; });
  for (const double x : numbers) tree.push(x);
  return tree.take();
}

}  // namespace longhand::nn
