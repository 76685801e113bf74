#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace longhand {

/// The first row and the number of rows of each sequence in a batch. Sequences may be empty. A
/// key/value cache has unused rows between its sequences, so a sequence may begin at a row beyond
/// the sum of all earlier lengths. Copies share the memory.
class Segments {
 public:
  Segments() = default;
  /// Consecutive sequences. The first one begins at row 0.
  Segments(Backend& backend, std::span<const std::int32_t> lengths);
  Segments(Backend& backend, std::span<const std::int32_t> begins,
           std::span<const std::int32_t> lengths);

  /// Replaces the lengths of consecutive sequences without changing the number of sequences. Writes
  /// the new values into the memory of the tensors begin() and length(), which earlier copies of
  /// this object share. The spans begins() and lengths() of such a copy keep the old values.
  void assign(std::span<const std::int32_t> lengths);
  /// Replaces the lengths. Each sequence still begins at the same row.
  void assign_lengths(std::span<const std::int32_t> lengths);

  explicit operator bool() const { return host_ != nullptr; }
  std::int64_t count() const { return static_cast<std::int64_t>(lengths().size()); }
  std::int64_t longest() const { return host_ ? host_->longest : 0; }
  std::int64_t tokens() const { return host_ ? host_->tokens : 0; }  // the sum of the lengths
  /// Number of rows up to the end of the last sequence: the maximum of first row + length.
  std::int64_t rows() const { return host_ ? host_->rows : 0; }
  /// True if the sequences are in order, and each of the rows 0 .. tokens() - 1 belongs to exactly
  /// one sequence.
  bool tile() const { return host_ && host_->tile; }

  std::span<const std::int32_t> begins() const;
  std::span<const std::int32_t> lengths() const;
  /// The first row of each sequence, as an i32 tensor of count() entries in the backend's memory.
  const Tensor& begin() const { return begin_; }
  const Tensor& length() const { return length_; }

 private:
  struct Host {
    std::vector<std::int32_t> begins, lengths;
    std::int64_t longest = 0, tokens = 0, rows = 0;
    bool tile = true;
  };
  static std::shared_ptr<const Host> host_of(std::span<const std::int32_t> begins,
                                             std::span<const std::int32_t> lengths);
  void set(std::span<const std::int32_t> begins, std::span<const std::int32_t> lengths);

  std::shared_ptr<const Host> host_;
  Tensor begin_, length_;
};

}  // namespace longhand
