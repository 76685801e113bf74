// link_probe NAMESPACE NAMESPACE ADDRESS measures TCP over the link between two network namespaces.
// ADDRESS belongs to the second namespace. Prints the median round trip of one byte, and the bytes
// per second of one connection, measured for one second.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int round_trips = 200;

void need(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::exit(1);
}

void enter(const std::string& space) {
  const int file = open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  need(file >= 0 && setns(file, CLONE_NEWNET) == 0, "link_probe: network namespace");
  close(file);
}

int tcp_socket() {
  const int made = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  need(made >= 0, "link_probe: socket");
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return made;
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Echoes single bytes. Then receives until the connection ends, and replies with the received
/// bytes per second.
void answer(int listening) {
  const int peer = accept(listening, nullptr, nullptr), one = 1;
  need(peer >= 0, "link_probe: accept");
  setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  std::vector<char> room(1 << 20);
  for (int i = 0; i < round_trips; ++i) {
    need(read(peer, room.data(), 1) == 1 && write(peer, room.data(), 1) == 1, "link_probe: echo");
  }
  const auto start = Clock::now();
  double bytes = 0;
  for (ssize_t got; (got = read(peer, room.data(), room.size())) > 0;)
    bytes += static_cast<double>(got);
  const double rate = bytes / since(start);
  need(write(peer, &rate, sizeof rate) == sizeof rate, "link_probe: answer");
}

void ask(const sockaddr_in& address) {
  const int peer = tcp_socket();
  need(connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
       "link_probe: connect");
  std::vector<double> seconds;
  std::vector<char> data(1 << 20);
  for (int i = 0; i < round_trips; ++i) {
    usleep(1000);
    const auto start = Clock::now();
    need(write(peer, data.data(), 1) == 1 && read(peer, data.data(), 1) == 1, "link_probe: a byte");
    seconds.push_back(since(start));
  }
  std::ranges::nth_element(seconds, seconds.begin() + round_trips / 2);
  for (const auto start = Clock::now(); since(start) < 1;) {
    need(write(peer, data.data(), data.size()) > 0, "link_probe: write");
  }
  shutdown(peer, SHUT_WR);
  double rate = 0;
  need(read(peer, &rate, sizeof rate) == sizeof rate, "link_probe: answer");
  std::printf("a byte there and back %.0f us, one connection %.2f Gbit/s\n",
              1e6 * seconds[round_trips / 2], 8e-9 * rate);
}

}  // namespace

int main(int count, char** words) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(5555);
  if (count != 4 || inet_pton(AF_INET, words[3], &address.sin_addr) != 1) {
    std::fprintf(stderr, "usage: link_probe NAMESPACE NAMESPACE ADDRESS\n");
    return 2;
  }
  enter(words[2]);
  const int listening = tcp_socket();
  need(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
           listen(listening, 1) == 0,
       "link_probe: listen");
  const pid_t other = fork();
  need(other >= 0, "link_probe: fork");
  if (other == 0) {
    answer(listening);
    return 0;
  }
  close(listening);
  enter(words[1]);
  ask(address);
  int status = 0;
  need(waitpid(other, &status, 0) == other && status == 0, "link_probe: the other end");
}
