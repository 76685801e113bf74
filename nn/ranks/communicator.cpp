#include "nn/ranks/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <utility>

#include "core/backend.h"

namespace longhand::nn {
namespace {

/// Tensors are summed in pieces of so many bytes, all tensors one after another: small enough for
/// the processor's cache, large enough to make a message worth its while.
constexpr std::size_t piece_bytes = 4 << 20;

/// Entries [first, end) of the tensors, taken one after another.
template <class T, class F>
void for_pieces(std::span<const Tensor> tensors, std::size_t first, std::size_t end, F&& f) {
  std::size_t at = 0;  // of the tensor
  for (const Tensor& tensor : tensors) {
    const auto size = static_cast<std::size_t>(tensor.size());
    const std::size_t from = std::max(first, at), to = std::min(end, at + size);
    if (from < to) f(tensor, tensor.data<T>() + (from - at), from - first, to - from);
    at += size;
  }
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)) {
  LONGHAND_CHECK(std::has_single_bit(static_cast<unsigned>(size())),
                 "ranks: expected 1, 2, 4, 8 or another power of two, got ", size());
}

void Communicator::exchange(int peer, std::span<const std::byte> send,
                            std::span<std::byte> receive) {
  transport_->exchange(peer, send, receive);
  sent_ += send.size();
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.begin(), mine.end());
  for (int d = 1; d < size(); d *= 2) {  // what 1, 2, 4 ... ranks have, doubled
    std::vector<std::byte> both(2 * all.size());
    const bool low = (rank() & d) == 0;
    const std::size_t half = all.size();
    std::ranges::copy(all, both.begin() + static_cast<std::ptrdiff_t>(low ? 0 : half));
    exchange(rank() ^ d, all, std::span(both).subspan(low ? half : 0, half));
    all = std::move(both);
  }
  return all;
}

std::vector<double> Communicator::gather(std::span<const double> mine) {
  const std::vector<std::byte> bytes = gather(std::as_bytes(mine));
  std::vector<double> all(bytes.size() / sizeof(double));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(all)).begin());
  return all;
}

std::vector<std::string> Communicator::gather(std::string_view mine) {
  const std::array length{static_cast<double>(mine.size())};
  const std::vector<double> lengths = gather(std::span<const double>(length));
  const auto longest = static_cast<std::size_t>(std::ranges::max(lengths));
  std::string padded(mine);
  padded.resize(longest);
  const std::vector<std::byte> bytes = gather(std::as_bytes(std::span(padded)));
  std::vector<std::string> all;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    all.emplace_back(reinterpret_cast<const char*>(bytes.data()) + r * longest,
                     static_cast<std::size_t>(lengths[r]));
  }
  return all;
}

bool Communicator::any(bool mine) {
  if (size() == 1) return mine;
  const std::array here{mine ? 1.0 : 0.0};
  return std::ranges::count(gather(std::span<const double>(here)), 1.0) > 0;
}

void Communicator::meet() { any(false); }

void Communicator::together(const std::function<void()>& work) {
  if (size() == 1) return work();
  std::exception_ptr failed;
  try {
    work();
  } catch (const RankLost&) {
    throw;  // nobody is there to be told
  } catch (...) {
    failed = std::current_exception();
  }
  const std::array here{failed ? 1.0 : 0.0};
  const std::vector<double> all = gather(std::span<const double>(here));
  const auto first = std::ranges::find(all, 1.0);
  if (first == all.end()) return;
  fail_together();
  if (first - all.begin() == rank()) std::rethrow_exception(failed);
  throw FailedElsewhere(text("rank ", first - all.begin(), " failed"));
}

void Communicator::sum(std::span<const Tensor> tensors) {
  if (size() == 1 || tensors.empty()) return;
  const DType type = tensors.front().dtype();
  for (const Tensor& t : tensors) {
    LONGHAND_CHECK(t.dtype() == type, "ranks: expected tensors of one type to sum, got ", type,
                   " and ", t.dtype());
  }
  if (type == DType::f64) return sum_as<double>(tensors);
  LONGHAND_CHECK(type == DType::f32, "ranks: expected f32 or f64 to sum, got ", type);
  sum_as<float>(tensors);
}

template <class T>
void Communicator::sum_as(std::span<const Tensor> tensors) {
  std::size_t count = 0;
  for (const Tensor& t : tensors) count += static_cast<std::size_t>(t.size());
  constexpr std::size_t most = piece_bytes / sizeof(T);
  std::vector<T> numbers(std::min(count, most)), room(numbers.size());
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t end = std::min(count, first + most);
    for_pieces<T>(tensors, first, end,
                  [&](const Tensor& t, const T* from, std::size_t at, std::size_t n) {
                    t.backend().download(numbers.data() + at, from, n * sizeof(T));
                  });
    sum_chunk(std::span(numbers).first(end - first), std::span(room));
    for_pieces<T>(tensors, first, end, [&](const Tensor& t, T* to, std::size_t at, std::size_t n) {
      t.backend().upload(to, numbers.data() + at, n * sizeof(T));
    });
  }
}

/// Each rank first adds up a share of the numbers, halving it with every exchange: with the
/// neighbour first, so that the sums are those of the tree. Then the shares go back the same way. A
/// rank thus sends 2 (N-1)/N of all numbers, whatever their tree.
template <class T>
void Communicator::sum_chunk(std::span<T> numbers, std::span<T> room) {
  struct Half {
    std::size_t kept, kept_end, given, given_end;
  };
  std::vector<Half> halves;
  std::size_t first = 0, end = numbers.size();
  for (int d = 1; d < size(); d *= 2) {
    const std::size_t middle = first + (end - first) / 2;
    const bool low = (rank() & d) == 0;
    const Half half = low ? Half{first, middle, middle, end} : Half{middle, end, first, middle};
    const std::size_t n = half.kept_end - half.kept;
    exchange(rank() ^ d, std::as_bytes(numbers.subspan(half.given, half.given_end - half.given)),
             std::as_writable_bytes(room.first(n)));
    T* const mine = numbers.data() + half.kept;
    const T* const theirs = room.data();
    for (std::size_t i = 0; i < n; ++i) mine[i] = low ? mine[i] + theirs[i] : theirs[i] + mine[i];
    halves.push_back(half);
    first = half.kept;
    end = half.kept_end;
  }
  for (int d = size() / 2; d > 0; d /= 2) {
    const Half half = halves.back();
    halves.pop_back();
    exchange(rank() ^ d, std::as_bytes(numbers.subspan(half.kept, half.kept_end - half.kept)),
             std::as_writable_bytes(numbers.subspan(half.given, half.given_end - half.given)));
  }
}

void Communicator::share(std::span<const Tensor> tensors, std::span<const int> owners) {
  std::vector<std::byte> send, receive;
  // Ranks [first, first + d) know what they own; with every exchange they are twice as many.
  for (int d = 1; d < size(); d *= 2) {
    const auto in_group = [&](int owner, int first) { return owner >= first && owner < first + d; };
    const int mine = rank() / d * d, theirs = mine ^ d;
    std::size_t sent = 0, received = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (in_group(owners[i], mine)) sent += tensors[i].bytes();
      if (in_group(owners[i], theirs)) received += tensors[i].bytes();
    }
    send.resize(sent);
    receive.resize(received);
    std::size_t at = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i];
      if (!in_group(owners[i], mine)) continue;
      t.backend().download(send.data() + at, t.address(), t.bytes());
      at += t.bytes();
    }
    for (std::size_t from = 0, to = std::max(sent, received); from < to; from += piece_bytes) {
      const auto piece = [&](std::size_t bytes) {
        return std::pair(std::min(from, bytes), std::min(from + piece_bytes, bytes));
      };
      const auto [send_from, send_to] = piece(sent);
      const auto [receive_from, receive_to] = piece(received);
      exchange(rank() ^ d, std::span(send).subspan(send_from, send_to - send_from),
               std::span(receive).subspan(receive_from, receive_to - receive_from));
    }
    at = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i];
      if (!in_group(owners[i], theirs)) continue;
      t.backend().upload(t.address(), receive.data() + at, t.bytes());
      at += t.bytes();
    }
  }
}

Communicator& alone() {
  static Communicator one;
  return one;
}

}  // namespace longhand::nn
