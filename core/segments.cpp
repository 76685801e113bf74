#include "core/segments.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace longhand {
namespace {

std::vector<std::int32_t> sums_before(std::span<const std::int32_t> lengths) {
  std::vector<std::int32_t> begins(lengths.size());
  std::int64_t next = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    begins[s] = static_cast<std::int32_t>(next);
    next += lengths[s];
    LONGHAND_CHECK(next <= std::numeric_limits<std::int32_t>::max(),
                   "segments: expected fewer than 2^31 tokens, got ", next);
  }
  return begins;
}

}  // namespace

Segments::Segments(Backend& backend, std::span<const std::int32_t> lengths)
    : Segments(backend, sums_before(lengths), lengths) {}

Segments::Segments(Backend& backend, std::span<const std::int32_t> begins,
                   std::span<const std::int32_t> lengths)
    : begin_(backend, {std::ssize(begins)}, DType::i32),
      length_(backend, {std::ssize(lengths)}, DType::i32) {
  set(begins, lengths);
}

void Segments::assign(std::span<const std::int32_t> lengths) { set(sums_before(lengths), lengths); }

void Segments::assign_lengths(std::span<const std::int32_t> lengths) {
  host_ = host_of(host_->begins, lengths);
  length_.assign(lengths);
}

std::shared_ptr<const Segments::Host> Segments::host_of(std::span<const std::int32_t> begins,
                                                        std::span<const std::int32_t> lengths) {
  LONGHAND_CHECK(begins.size() == lengths.size(),
                 "segments: expected a first row and a length for each segment, got ",
                 begins.size(), " first rows and ", lengths.size(), " lengths");
  auto host = std::make_shared<Host>();
  host->begins.assign(begins.begin(), begins.end());
  host->lengths.assign(lengths.begin(), lengths.end());
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    LONGHAND_CHECK(begins[s] >= 0 && lengths[s] >= 0, "segments: segment ", s,
                   ": expected a first row and a length of at least 0, got the first row ",
                   begins[s], " and the length ", lengths[s]);
    host->tile = host->tile && begins[s] == host->tokens;
    host->tokens += lengths[s];
    host->longest = std::max<std::int64_t>(host->longest, lengths[s]);
    host->rows = std::max(host->rows, std::int64_t{begins[s]} + lengths[s]);
  }
  return host;
}

void Segments::set(std::span<const std::int32_t> begins, std::span<const std::int32_t> lengths) {
  // The tensors refuse another number of segments. Nothing has changed then.
  std::shared_ptr<const Host> host = host_of(begins, lengths);
  begin_.assign(begins);
  length_.assign(lengths);
  host_ = std::move(host);
}

std::span<const std::int32_t> Segments::begins() const {
  return host_ ? std::span<const std::int32_t>(host_->begins) : std::span<const std::int32_t>();
}

std::span<const std::int32_t> Segments::lengths() const {
  return host_ ? std::span<const std::int32_t>(host_->lengths) : std::span<const std::int32_t>();
}

}  // namespace longhand
