#include "nn/ranks/communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/backend.h"
#include "core/contract/combine.h"

namespace longhand::nn {
namespace {

/// Sums over the ranks are computed in pieces of this many bytes. A piece may contain parts of
/// several tensors. It fits in the processor's cache and is large enough for efficient messages.
constexpr std::size_t piece_bytes = 4 << 20;

/// Treats all tensors together as one array. For each tensor, calls f with the part of this tensor
/// that is in the range [first, end) of the array.
template <class T, class F>
void for_pieces(std::span<const Tensor> tensors, std::size_t first, std::size_t end, F&& f) {
  std::size_t at = 0;  // number of entries of all tensors before this one
  for (const Tensor& tensor : tensors) {
    const auto size = static_cast<std::size_t>(tensor.size());
    const std::size_t from = std::max(first, at), to = std::min(end, at + size);
    if (from < to) f(tensor, tensor.data<T>() + (from - at), from - first, to - from);
    at += size;
  }
}

/// mine[i] += theirs[i]. Compilers vectorize the inner loop, whose length is constant.
template <class T>
void add_to(std::span<T> mine, std::span<const T> theirs) {
  constexpr std::size_t block = 64;
  T* __restrict a = mine.data();
  const T* __restrict b = theirs.data();
  std::size_t i = 0;
  for (; i + block <= mine.size(); i += block) {
    for (std::size_t k = 0; k < block; ++k) a[i + k] += b[i + k];
  }
  for (; i < mine.size(); ++i) a[i] += b[i];
}

/// True if the CPU can access the backend's memory directly.
bool on_host(const Backend& backend) { return backend.devices().empty(); }

struct Range {
  std::size_t first, end;
  std::size_t size() const { return end - first; }
  Range piece(std::size_t at, std::size_t most) const {
    const std::size_t from = std::min(first + at, end);
    return {from, std::min(from + most, end)};
  }
};

}  // namespace

/// Executes pieces of work in the order in which they were added. They are executed on a separate
/// thread or, if there is none, in wait().
class Communicator::Background {
 public:
  explicit Background(bool own_thread) {
    if (own_thread) thread_ = std::thread([this] { work(); });
  }
  ~Background() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  std::uint64_t add(std::function<void()> piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
    changed_.notify_all();
    return ++begun_;
  }
  void wait(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    const auto enough = [&] { return done_ >= std::min(count, begun_); };
    while (!thread_.joinable() && !enough()) do_next(lock);
    changed_.wait(lock, enough);
    if (failed_) std::rethrow_exception(failed_);
  }
  std::uint64_t done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  double seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return end_ || !pieces_.empty(); });
      if (pieces_.empty()) return;
      do_next(lock);
    }
  }
  void do_next(std::unique_lock<std::mutex>& lock) {
    std::function<void()> piece = std::move(pieces_.front());
    pieces_.pop_front();
    const bool skipped = static_cast<bool>(failed_);  // after a failure, later work is skipped
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    std::exception_ptr failed;
    try {
      if (!skipped) piece();
    } catch (...) {
      failed = std::current_exception();
    }
    piece = nullptr;  // releases the tensors before the work is reported as finished
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    lock.lock();
    if (failed) failed_ = failed;
    seconds_ += taken.count();
    ++done_;
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> pieces_;
  std::uint64_t begun_ = 0, done_ = 0;
  double seconds_ = 0;
  std::exception_ptr failed_;
  bool end_ = false;
  std::thread thread_;
};

Communicator::~Communicator() = default;

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

int Communicator::share_of(int rank) const {
  int share = 0;
  for (int d = 1; d < size(); d *= 2) share = 2 * share + ((rank & d) != 0 ? 1 : 0);
  return share;
}

std::uint64_t Communicator::begin_sum(const Tensor& x, std::vector<std::size_t> shares) {
  if (size() == 1) return 0;
  LONGHAND_CHECK(x.dtype() == DType::f32 || x.dtype() == DType::f64,
                 "ranks: expected tensors of f32 or f64 to sum, got ", x.dtype());
  LONGHAND_CHECK(
      shares.empty() || (shares.size() == static_cast<std::size_t>(size()) + 1 &&
                         std::ranges::is_sorted(shares) && shares.front() == 0 &&
                         shares.back() == static_cast<std::size_t>(x.size())),
      "ranks: `shares`: expected the ascending bounds of one piece for each rank, from 0 to "
      "the size of the tensor");
  const bool host = on_host(x.backend());
  if (!background_) {
    background_ = std::make_unique<Background>(host && transport_->serves_any_thread());
  }
  return background_->add([this, x, host, shares = std::move(shares)] {
    if (!host && devices_) {
      return shares.empty() ? sum_on_device(x) : sum_shares_on_device(x, shares);
    }
    const auto as = [&]<class T>(T) {
      if (host) return sum_in_place<T>(x, shares);
      if (shares.empty()) return sum_as<T>({&x, 1});
      sum_shares_over_host<T>(x, shares);
    };
    x.dtype() == DType::f64 ? as(double()) : as(float());
  });
}

std::uint64_t Communicator::sums_done() const { return background_ ? background_->done() : 0; }
double Communicator::seconds_in_sums() const { return background_ ? background_->seconds() : 0; }

void Communicator::finish(std::uint64_t count) {
  if (background_) background_->wait(count);
}

/// The receive buffer, with room for `count` numbers. Only one sum may use it at a time.
template <class T>
std::span<T> Communicator::room(std::size_t count) {
  if (room_bytes_ < count * sizeof(T)) {
    room_bytes_ = count * sizeof(T);
    room_ = std::make_unique_for_overwrite<std::byte[]>(room_bytes_);
  }
  return {reinterpret_cast<T*>(room_.get()), count};
}

template <class T>
void Communicator::sum_in_place(const Tensor& x, std::span<const std::size_t> shares) {
  const std::span<T> numbers(x.data<T>(), static_cast<std::size_t>(x.size()));
  if (!shares.empty()) return sum_shares(numbers, shares);
  constexpr std::size_t most = piece_bytes / sizeof(T);
  for (std::size_t first = 0; first < numbers.size(); first += most) {
    sum_chunk(numbers.subspan(first, std::min(most, numbers.size() - first)));
  }
}

/// Calls f for each exchange of sum_shares(), which leaves on every rank only this rank's share of
/// the sums. The exchanges are those of the first phase of sum_chunk(), but the shares of the ranks
/// may have different lengths.
template <class F>
void Communicator::walk_shares(std::span<const std::size_t> shares, std::size_t most, F&& f) const {
  std::size_t first = 0, end = static_cast<std::size_t>(size());
  for (int d = 1; d < size(); d *= 2) {
    const std::size_t middle = first + (end - first) / 2;
    const bool low = (rank() & d) == 0;
    const Range one{shares[first], shares[middle]}, two{shares[middle], shares[end]};
    const Range kept = low ? one : two, given = low ? two : one;
    for (std::size_t at = 0; at < std::max(kept.size(), given.size()); at += most) {
      f(rank() ^ d, kept.piece(at, most), given.piece(at, most));
    }
    (low ? end : first) = middle;
  }
}

template <class T>
void Communicator::sum_shares(std::span<T> numbers, std::span<const std::size_t> shares) {
  walk_shares(shares, piece_bytes / sizeof(T), [&](int peer, Range kept, Range given) {
    const std::span<T> theirs = room<T>(kept.size());
    exchange(peer, std::as_bytes(numbers.subspan(given.first, given.size())),
             std::as_writable_bytes(theirs));
    add_to(numbers.subspan(kept.first, kept.size()), std::span<const T>(theirs));
  });
}

template <class T>
void Communicator::sum_shares_over_host(const Tensor& x, std::span<const std::size_t> shares) {
  std::vector<T> numbers(static_cast<std::size_t>(x.size()));
  x.backend().download(numbers.data(), x.address(), x.bytes());
  sum_shares<T>(numbers, shares);
  const auto own = static_cast<std::size_t>(share_of(rank()));
  const std::size_t first = shares[own], count = shares[own + 1] - first;
  if (count == 0) return;
  x.backend().upload(x.data<T>() + first, numbers.data() + first, count * sizeof(T));
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> mine) {
  finish();
  std::vector<std::byte> all(mine.begin(), mine.end());
  // Each round doubles the number of ranks whose data this rank has received.
  for (int d = 1; d < size(); d *= 2) {
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
    throw;  // gather() is not called, because it would need the lost rank
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
  finish();
  const DType type = tensors.front().dtype();
  for (const Tensor& t : tensors) {
    LONGHAND_CHECK(t.dtype() == type, "ranks: expected tensors of one type to sum, got ", type,
                   " and ", t.dtype());
  }
  if (devices_ && !on_host(tensors.front().backend())) {
    for (const Tensor& t : tensors) sum_on_device(t);
    return;
  }
  if (type == DType::f64) return sum_as<double>(tensors);
  LONGHAND_CHECK(type == DType::f32, "ranks: expected tensors of f32 or f64 to sum, got ", type);
  sum_as<float>(tensors);
}

template <class T>
void Communicator::sum_as(std::span<const Tensor> tensors) {
  std::size_t count = 0;
  for (const Tensor& t : tensors) count += static_cast<std::size_t>(t.size());
  constexpr std::size_t most = piece_bytes / sizeof(T);
  std::vector<T> numbers(std::min(count, most));
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t end = std::min(count, first + most);
    for_pieces<T>(tensors, first, end,
                  [&](const Tensor& t, const T* from, std::size_t at, std::size_t n) {
                    t.backend().download(numbers.data() + at, from, n * sizeof(T));
                  });
    sum_chunk(std::span(numbers).first(end - first));
    for_pieces<T>(tensors, first, end, [&](const Tensor& t, T* to, std::size_t at, std::size_t n) {
      t.backend().upload(to, numbers.data() + at, n * sizeof(T));
    });
  }
}

/// Sums `numbers` over all ranks by recursive halving. In the first phase, each exchange halves the
/// range of indices that a rank sums. At the end of this phase, each of N ranks has the sums of its
/// own share, which is 1/N of the indices. First, ranks r and r ^ 1 exchange, then ranks r and r ^
/// 2, then ranks r and r ^ 4, and so on. The terms are therefore added in the order of a binary
/// tree. In the second phase, the same exchanges in reverse order distribute the shares to all
/// ranks. Each rank sends 2 (N - 1) / N times the bytes of `numbers`.
template <class T>
void Communicator::sum_chunk(std::span<T> numbers) {
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
    const std::span<T> theirs = room<T>(n);
    exchange(rank() ^ d, std::as_bytes(numbers.subspan(half.given, half.given_end - half.given)),
             std::as_writable_bytes(theirs));
    // Each rank computes its own number plus the peer's number, so the two ranks of a pair add in
    // opposite orders. The order does not change the bits of a sum, unless the sum is NaN.
    add_to(numbers.subspan(half.kept, n), std::span<const T>(theirs));
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

void Communicator::exchange_on_device(int peer, const Tensor& give, const Tensor& take) {
  give.backend().synchronize();
  devices_->exchange(peer, give.address(), give.bytes(), take.address(), take.bytes());
  sent_ += give.bytes();
}

/// Does the same as sum_shares() for a tensor on a device. The device computes the additions.
void Communicator::sum_shares_on_device(const Tensor& x, std::span<const std::size_t> shares) {
  Backend& backend = x.backend();
  const Tensor flat = x.reshape({x.size()});
  const auto slice_of = [](const Tensor& all, Range range) {
    return all.slice(static_cast<std::int64_t>(range.first),
                     static_cast<std::int64_t>(range.size()));
  };
  Tensor room;
  const std::size_t most = piece_bytes / size_of(x.dtype());
  walk_shares(shares, most, [&](int peer, Range kept, Range given) {
    const auto count = static_cast<std::int64_t>(kept.size());
    if (!room || room.size() < count) room = Tensor(backend, {count}, x.dtype());
    const Tensor mine = slice_of(flat, kept), theirs = room.slice(0, count);
    exchange_on_device(peer, slice_of(flat, given), theirs);
    if (count > 0) {
      backend(Combine{.f = Combination::sum, .a = mine, .b = theirs, .y = mine});
    }
  });
}

/// Does the same as sum_chunk() for a tensor on a device. The device computes the additions.
void Communicator::sum_on_device(const Tensor& x) {
  Backend& backend = x.backend();
  const Tensor flat = x.reshape({x.size()});
  const Tensor room(backend, {(x.size() + 1) / 2}, x.dtype());  // receive buffer for one half of x
  struct Half {
    Tensor kept, given;
  };
  std::vector<Half> halves;
  std::int64_t first = 0, end = x.size();
  for (int d = 1; d < size(); d *= 2) {
    const std::int64_t middle = first + (end - first) / 2;
    const bool low = (rank() & d) == 0;
    const Tensor one = flat.slice(first, middle - first), two = flat.slice(middle, end - middle);
    const Half half = low ? Half{one, two} : Half{two, one};
    const Tensor theirs = room.slice(0, half.kept.size());
    exchange_on_device(rank() ^ d, half.given, theirs);
    if (half.kept.size() > 0) {
      backend(Combine{.f = Combination::sum, .a = half.kept, .b = theirs, .y = half.kept});
    }
    halves.push_back(half);
    (low ? end : first) = middle;
  }
  for (int d = size() / 2; d > 0; d /= 2) {
    exchange_on_device(rank() ^ d, halves.back().kept, halves.back().given);
    halves.pop_back();
  }
}

void Communicator::share(std::span<const Tensor> tensors, std::span<const int> owners) {
  finish();
  // Broadcasts a limited number of bytes at a time, so that the buffers stay small.
  for (std::size_t first = 0; first < tensors.size();) {
    std::size_t count = 0, bytes = 0;
    for (; first + count < tensors.size() && bytes < 4 * piece_bytes; ++count) {
      bytes += tensors[first + count].bytes();
    }
    share_some(tensors.subspan(first, count), owners.subspan(first, count));
    first += count;
  }
}

void Communicator::share_some(std::span<const Tensor> tensors, std::span<const int> owners) {
  std::vector<std::byte> send, receive;
  // At the start of each round, every rank has the tensors that its group of d consecutive ranks
  // owns. After the exchange with a rank of the neighbouring group, every rank has the tensors of
  // both groups.
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

Communicator& single_rank() {
  static Communicator one;
  return one;
}

}  // namespace longhand::nn
