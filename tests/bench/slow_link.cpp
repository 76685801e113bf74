// slow_link NAMESPACE NAMESPACE DEVICE MBITS MICROSECONDS simulates a slow link between two network
// namespaces, for kernels without netem. It creates a TAP device with the name DEVICE in each
// namespace, prints "ready", and forwards packets between the devices at MBITS per second (0:
// unlimited), delayed by MICROSECONDS. The two directions are independent. A packet arrives when
// its last bit arrives. As with veth, one read or write transfers a whole TCP segment of up to 64
// KiB, whose checksum is not yet computed. Packets that the link has not accepted wait in the
// device's queue. At SIGTERM it prints one line with the number of forwarded packets, how late they
// were forwarded (mean and maximum), and its processor time.
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace {

using Nanoseconds = std::int64_t;
// A packet is read from the device at most this many nanoseconds before the link can send it.
constexpr Nanoseconds taken_ahead = 500'000;
// Size of the struct virtio_net_hdr in bytes. Its header file, linux/virtio_net.h, cannot be
// compiled as C++.
constexpr std::size_t header = 10;
constexpr std::size_t most_packets = 16384;  // maximum packets in transit in one direction

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "slow_link: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

Nanoseconds now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * Nanoseconds{1'000'000'000} + t.tv_nsec;
}

struct Packet {
  Nanoseconds due = 0;
  std::size_t size = 0;  // bytes of the virtio_net_hdr and of the Ethernet frame
  // The bytes are not initialized, because memory pages that are never written use no memory.
  std::array<std::byte, header + 18 + 65536> bytes;
};

/// Opens a TAP device in a network namespace, and moves this process into the namespace.
int open_device(const std::string& space, const char* name) {
  const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) fail("network namespace " + space);
  close(file);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(device, TUNSETIFF, &request) != 0) fail(std::string("TAP device ") + name);
  if (ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
    fail("TUNSETOFFLOAD");
  return device;
}

/// Number of bytes that a packet takes on an Ethernet link, where it is cut into frames as
/// described by its virtio_net_hdr.
std::size_t on_the_wire(const Packet& packet) {
  std::array<std::uint16_t, 2> cut{};  // bytes per frame: cut[0] of headers, cut[1] of payload
  std::memcpy(cut.data(), packet.bytes.data() + 2, sizeof cut);
  // `around` is the number of bytes of the preamble, the checksum and the gap around a frame.
  const std::size_t size = packet.size - header, around = 24;
  if (packet.bytes[1] == std::byte{0} || cut[1] == 0 || size <= cut[0]) return size + around;
  const std::size_t frames = (size - cut[0] + cut[1] - 1) / cut[1];
  return size + (frames - 1) * cut[0] + frames * around;
}

class Direction {
 public:
  Direction(int from, int to, double bits_per_nanosecond, Nanoseconds delay)
      : from_(from), to_(to), rate_(bits_per_nanosecond), delay_(delay) {}

  int from() const { return from_; }
  /// The earliest time at which read() accepts a packet.
  Nanoseconds reads_from() const {
    return on_the_way_.size() < most_packets ? free_ - taken_ahead : on_the_way_.front()->due;
  }
  Nanoseconds next_due() const {
    return on_the_way_.empty() ? INT64_MAX : on_the_way_.front()->due;
  }

  /// Reads packets from the device as long as the link accepts them. Returns false if none was
  /// read.
  bool read() {
    bool any = false;
    for (Nanoseconds t = now(); t >= reads_from() && on_the_way_.size() < most_packets; t = now()) {
      if (spare_.empty()) spare_.emplace_back(new Packet);
      const ssize_t size = ::read(from_, spare_.back()->bytes.data(), spare_.back()->bytes.size());
      if (size < 0) {
        if (errno == EAGAIN || errno == EIO) break;  // EIO means that the device is not up yet
        fail("read");
      }
      Packet& packet = *spare_.back();
      packet.size = static_cast<std::size_t>(size);
      const double bits = 8 * static_cast<double>(on_the_wire(packet));
      free_ = std::max(free_, t) + (rate_ > 0 ? static_cast<Nanoseconds>(bits / rate_) : 0);
      packet.due = free_ + delay_;
      on_the_way_.push_back(std::move(spare_.back()));
      spare_.pop_back();
      any = true;
    }
    return any;
  }

  /// Writes to the other device all packets whose due time has passed.
  void write() {
    while (!on_the_way_.empty()) {
      const Packet& packet = *on_the_way_.front();
      const Nanoseconds late = now() - packet.due;
      if (late < 0) return;
      const bool given = ::write(to_, packet.bytes.data(), packet.size) >= 0;
      given ? ++packets : ++lost;
      bytes += given ? static_cast<std::int64_t>(packet.size) : 0;
      total_late += late;
      most_late = std::max(most_late, late);
      spare_.push_back(std::move(on_the_way_.front()));
      on_the_way_.pop_front();
    }
  }

  std::int64_t packets = 0, lost = 0, bytes = 0;
  Nanoseconds total_late = 0, most_late = 0;

 private:
  int from_, to_;
  double rate_;
  // `free_` is the time at which the link will have sent all packets accepted so far.
  Nanoseconds delay_, free_ = 0;
  std::deque<std::unique_ptr<Packet>> on_the_way_;
  // Packets that can be reused. The packet used last is at the end, because its memory is still in
  // the CPU's caches.
  std::vector<std::unique_ptr<Packet>> spare_;
};

volatile std::sig_atomic_t stopped = 0;

double number(const char* word) {
  double value = -1;
  const char* end = word + std::strlen(word);
  if (std::from_chars(word, end, value).ptr != end || value < 0) {
    std::fprintf(stderr, "slow_link: expected a number of 0 or more, got %s\n", word);
    std::exit(2);
  }
  return value;
}

void report(const Direction& a, const Direction& b) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const std::int64_t packets = a.packets + b.packets, lost = a.lost + b.lost;
  const auto all = static_cast<double>(std::max<std::int64_t>(1, packets + lost));
  std::fprintf(
      stderr,
      "slow_link: %lld packets, %.1f MB, %lld lost, late by %.1f us (mean), %.0f us (maximum), "
      "%.2f s of the processor\n",
      static_cast<long long>(packets), 1e-6 * static_cast<double>(a.bytes + b.bytes),
      static_cast<long long>(lost), 1e-3 * static_cast<double>(a.total_late + b.total_late) / all,
      1e-3 * static_cast<double>(std::max(a.most_late, b.most_late)),
      seconds(used.ru_utime) + seconds(used.ru_stime));
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) {
    std::fprintf(stderr, "usage: slow_link NAMESPACE NAMESPACE DEVICE MBITS MICROSECONDS\n");
    return 2;
  }
  const double rate = number(words[4]) / 1000;
  const auto delay = static_cast<Nanoseconds>(1000 * number(words[5]));
  const int one = open_device(words[1], words[3]), other = open_device(words[2], words[3]);
  Direction there(one, other, rate, delay), back(other, one, rate, delay);

  // Like the kernel's own links, this process must not wait for the time slices of other programs.
  sched_param priority{};
  priority.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
    setpriority(PRIO_PROCESS, 0, -20);
    std::fprintf(stderr, "slow_link: no real-time priority: %s\n", std::strerror(errno));
  }
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);

  struct sigaction action {};
  action.sa_handler = [](int) { stopped = 1; };
  sigset_t blocked, during_wait;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &during_wait);
  sigaction(SIGTERM, &action, nullptr);

  std::puts("ready");
  std::fflush(stdout);
  while (!stopped) {
    for (Direction* d : {&there, &back}) {
      d->write();
      if (d->read()) d->write();
    }
    const Nanoseconds t = now();
    Nanoseconds wake = std::min(there.next_due(), back.next_due());
    std::array<pollfd, 2> polled{};
    std::size_t listening = 0;
    for (const Direction* d : {&there, &back}) {
      if (d->reads_from() <= t) {
        polled[listening++] = {.fd = d->from(), .events = POLLIN, .revents = 0};
      } else {
        wake = std::min(wake, d->reads_from());
      }
    }
    if (wake <= t) continue;
    const Nanoseconds wait = wake - t;
    const timespec timeout{.tv_sec = wait / 1'000'000'000, .tv_nsec = wait % 1'000'000'000};
    const int events =
        ppoll(polled.data(), listening, wake == INT64_MAX ? nullptr : &timeout, &during_wait);
    if (events < 0 && errno != EINTR) fail("ppoll");
  }
  report(there, back);
}
