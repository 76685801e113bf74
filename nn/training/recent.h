#pragma once

#include <cstddef>
#include <list>
#include <utility>

namespace longhand::nn {

/// A small cache. When it is full, the least recently used value is removed.
template <class Key, class Value>
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  /// Returns the value of the key. If the cache has no such value, adds make(). If the cache is
  /// full, first removes the least recently used value.
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
  std::list<std::pair<Key, Value>> values_;  // most recently used first
};

}  // namespace longhand::nn
