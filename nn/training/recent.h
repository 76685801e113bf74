#pragma once

#include <cstddef>
#include <list>
#include <utility>

namespace longhand::nn {

/// A few values by key. When there are too many, the one asked for longest ago goes.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  /// The key's value, made by make() if there is none. Room is made first.
  template <class Make>
  Value& at(const Key& key, Make&& make) {
    for (auto i = values_.begin(); i != values_.end(); ++i) {
      if (i->first == key) {
        values_.splice(values_.begin(), values_, i);
        return values_.front().second;
      }
    }
    if (values_.size() == most_) values_.pop_back();
    return values_.emplace_front(key, make()).second;
  }

  std::size_t size() const { return values_.size(); }

 private:
  std::size_t most_;
  std::list<std::pair<Key, Value>> values_;  // the last one asked for first
};

}  // namespace longhand::nn
