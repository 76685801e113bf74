// Tests the live page of `longhand serve`: its responses to valid and invalid HTTP requests from
// this machine and from other machines.
#include <sys/file.h>

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/serve/curves.h"
#include "apps/serve/http_server.h"
#include "apps/serve/live_page.h"
#include "core/atomic_file.h"
#include "core/rng.h"
#include "tests/http_client.h"
#include "tests/program.h"

namespace serve_test {

using namespace longhand;
using namespace longhand::app;

/// A server in this process, on a free port. It responds with a summary of the received request.
struct Echo {
  explicit Echo(HttpLimits limits = {})
      : server(
            "127.0.0.1", 0,
            [](const HttpRequest& request) {
              std::string said = request.method + " " + request.path + " " + request.token;
              for (const auto& [name, value] : request.query) said += text("|", name, "=", value);
              return HttpResponse{.body = said};
            },
            limits),
        thread([this] { server.run([this] { return over.load(); }); }) {}
  ~Echo() {
    over = true;
    thread.join();
  }

  std::atomic<bool> over = false;
  HttpServer server;
  std::thread thread;
  std::uint16_t port() const { return server.port(); }
};

std::string line_of(std::int64_t step, double loss) {
  return text("{\"step\":", step, ",\"loss\":", loss, ",\"tokens\":10,\"seconds\":0.5}\n");
}

Curves::Time soon() { return std::chrono::steady_clock::now() + std::chrono::hours(1); }

/// Runs the command `longhand serve` on the folder runs/.
struct Served : Program {
  Served() { std::filesystem::create_directory(folder / "runs"); }
  ~Served() {
    if (process > 0) ::kill(process, SIGTERM);
    if (process > 0) finish(process);
  }
  void serve(rlim_t descriptors = 0) {
    process = ::fork();
    if (process == 0) {
      const rlimit limit{descriptors, descriptors};
      if (descriptors > 0) ::setrlimit(RLIMIT_NOFILE, &limit);
      const int out = ::open(path("address").c_str(), O_WRONLY | O_CREAT, 0666);
      ::dup2(out, STDOUT_FILENO);
      if (::chdir(folder.path().c_str()) == 0) {
        ::execl(built_program, "longhand", "serve", "--port", "0", nullptr);
      }
      ::_exit(127);
    }
    for (int tries = 0; tries < 1000; ++tries, ::usleep(10'000)) {
      const std::string address = contents(path("address"));
      if (!address.ends_with('\n')) continue;
      port = static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1));
      token = address.substr(address.find('#') + 1);
      token.pop_back();
      return;
    }
    BOOST_FAIL("the server does not start");
  }
  HttpAnswer get(const std::string& target) const { return http_request(port, "GET", target); }
  HttpAnswer post(const std::string& target) const {
    return http_request(port, "POST", target,
                        "X-Longhand-Token: " + token + "\r\nContent-Length: 0\r\n");
  }
  /// Waits until wanted(row) is true for the only row in the list of runs, and returns this row.
  template <class F>
  Json wait_for(F wanted) const {
    for (int tries = 0; tries < 600; ++tries, ::usleep(50'000)) {
      const Json runs = get("/api/runs").json()["runs"];
      if (runs.size() == 1 && wanted(runs[0])) return runs[0];
    }
    BOOST_FAIL("the run is never as it should be");
    return {};
  }

  template <class F>
  static void wait_until(F holds) {
    for (int tries = 0; tries < 600; ++tries, ::usleep(50'000)) {
      if (holds()) return;
    }
    BOOST_FAIL("it never comes to that");
  }

  pid_t process = 0;
  std::uint16_t port = 0;
  std::string token;
};

}  // namespace serve_test

BOOST_FIXTURE_TEST_SUITE(serve_test, TemporaryFolder)

using namespace serve_test;

BOOST_AUTO_TEST_CASE(queries_are_decoded_and_malformed_ones_refused) {
  std::map<std::string, std::string, std::less<>> query;
  BOOST_TEST(parse_query("a=1&b=x%2Fy+z&&c", query));
  BOOST_TEST(query.at("a") == "1");
  BOOST_TEST(query.at("b") == "x/y z");
  BOOST_TEST(query.at("c") == "");
  for (const char* bad : {"a=%", "a=%2", "a=%zz", "%g0=1"}) BOOST_TEST(!parse_query(bad, query));
}

BOOST_AUTO_TEST_CASE(a_host_is_a_numeric_address_or_localhost) {
  for (const char* good :
       {"127.0.0.1:8765", "127.0.0.1", "localhost:1", "[::1]:8765", "10.0.0.7:80"}) {
    BOOST_TEST(is_plain_host(good), good);
  }
  for (const char* bad : {"", "evil.example", "evil.example:8765", "127.0.0.1.evil.example",
                          "localhost.evil.example", "[::1]evil", "[::1", "0x7f.1"}) {
    BOOST_TEST(!is_plain_host(bad), bad);
  }
}

BOOST_AUTO_TEST_CASE(a_curve_keeps_its_size_limit_and_its_extremes) {
  Course course;
  constexpr std::int64_t steps = 100'000;
  for (std::int64_t step = 1; step <= steps; ++step)
    course.add(step, static_cast<double>(step % 7));
  BOOST_TEST(course.buckets().size() <= Course::most);
  const std::vector<Bucket> few = thinned(course.buckets(), 50);
  BOOST_TEST(few.size() <= 50u);
  std::int64_t count = 0, before = 0;
  double sum = 0;
  for (const Bucket& bucket : few) {
    BOOST_TEST(bucket.first == before + 1);
    before = bucket.last;
    count += bucket.count;
    sum += bucket.sum;
    BOOST_TEST(bucket.low == 0.0f);
    BOOST_TEST(bucket.high == 6.0f);
  }
  BOOST_TEST(before == steps);
  BOOST_TEST(count == steps);
  double exact = 0;
  for (std::int64_t step = 1; step <= steps; ++step) exact += static_cast<double>(step % 7);
  BOOST_TEST(sum == exact);
}

BOOST_AUTO_TEST_CASE(a_growing_file_is_read_further_and_a_replaced_one_again) {
  const std::filesystem::path file = path() / "metrics.jsonl";
  Curves curves;
  BOOST_TEST(curves.read(FileDescriptor(), soon()));  // the file does not exist yet
  std::ofstream out(file, std::ios::binary);
  out << line_of(1, 4) << "damaged\n{\"step\":2,\"loss\":3}\n" << line_of(3, 2).substr(0, 10);
  out.flush();
  const auto read = [&] { return curves.read(open_regular_file(file), soon()); };
  const auto between = [&] { return curves.between({}, {"loss"}, 1, 9, 100, soon()).front(); };
  BOOST_TEST(read());
  BOOST_TEST(curves.step() == 2);  // an incomplete line is not counted
  BOOST_TEST(curves.last("loss").value() == 3.0);
  BOOST_TEST(curves.last("tokens_per_second").value() == 20.0);
  out << line_of(3, 2).substr(10);
  out << "{\"step\":4,\"train/right\":0.5,\"intervals\":{\"train/right\":[0.4,0.6]},\"samples\":"
         "[{\"prompt\":\"a\",\"text\":\"b\"}]}\n";
  out << "{\"step\":5,\"loss\":" << std::string(3 << 20, '1') << "}\n" << line_of(6, 1);
  out.flush();
  BOOST_TEST(read());
  BOOST_TEST(curves.step() == 6);
  BOOST_TEST(between().size() == 4u);  // steps 1, 2, 3 and 6 have a valid loss
  BOOST_TEST((*curves.evaluation())["step"].integer() == 4);
  BOOST_TEST(curves.samples().size() == 1u);
  write_atomically(file, line_of(1, 8));
  BOOST_TEST(read());
  BOOST_TEST(curves.step() == 1);
  BOOST_TEST(between().size() == 1u);
  BOOST_TEST(curves.samples().empty());
}

BOOST_AUTO_TEST_CASE(zooming_into_a_long_run_shows_its_exact_values) {
  const std::filesystem::path file = path() / "metrics.jsonl";
  {
    std::ofstream out(file, std::ios::binary);
    for (int step = 1; step <= 50'000; ++step) out << line_of(step, step);
  }
  Curves curves;
  const FileDescriptor open = open_regular_file(file);
  int reads = 1;
  while (!curves.read(open, std::chrono::steady_clock::now() + std::chrono::milliseconds(1))) {
    ++reads;
  }
  BOOST_TEST(reads > 1);  // one millisecond is too short to read the whole file
  const auto between = [&](std::int64_t from, std::int64_t to, Curves::Time until) {
    return curves.between(open, {"loss", "none", "seconds"}, from, to, 300, until);
  };
  BOOST_TEST(between(0, 1 << 30, soon())[0].size() <= 300u);
  const std::vector<std::vector<Bucket>> parts = between(31'003, 31'007, soon());
  const std::vector<Bucket>& part = parts[0];
  BOOST_REQUIRE(part.size() == 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    BOOST_TEST(part[i].count == 1u);
    BOOST_TEST(part[i].mean() == 31'003.0 + static_cast<double>(i));
  }
  BOOST_TEST(parts[1].empty());
  BOOST_TEST(parts[2].size() == 5u);
  // Without time to read the file, the values in memory are returned.
  const auto coarse = between(31'003, 31'007, std::chrono::steady_clock::now());
  BOOST_TEST(coarse[0].size() < 5u);
  BOOST_TEST(coarse[0].front().count > 1u);
}

BOOST_AUTO_TEST_CASE(values_near_the_largest_double_stay_finite) {
  const std::filesystem::path file = path() / "metrics.jsonl";
  {
    std::ofstream out(file, std::ios::binary);
    for (int step = 1; step <= 10'000; ++step) {
      out << "{\"step\":" << step << ",\"loss\":" << (step % 2 ? "1e308" : "-1.7e308")
          << ",\"tokens\":1e300,\"seconds\":1e-300}\n";
    }
  }
  write_atomically(path() / "config.ini", "[task]\nname = reversal\n");
  LivePage page({path()}, "token");
  const HttpResponse answer = page.answer(
      {.method = "GET", .path = "/api/series", .query = {{"runs", "1"}, {"figures", "loss"}}});
  const std::optional<Json> json = Json::parse(answer.body);
  BOOST_REQUIRE(json.has_value());
  const Json& loss = (*json)["runs"]["1"]["loss"];
  for (std::size_t i = 0; i < loss["y"].size(); ++i) {
    BOOST_TEST(loss["low"][i].number() == -1.7e308);
    BOOST_TEST(loss["high"][i].number() == 1e308);
    BOOST_TEST(std::abs(loss["y"][i].number()) <= 1e308);
  }
  const HttpResponse list = page.answer({.method = "GET", .path = "/api/runs"});
  BOOST_TEST(Json::parse(list.body).has_value());
}

BOOST_AUTO_TEST_CASE(requests_are_fast_for_runs_of_any_size) {
  const std::filesystem::path file = path() / "metrics.jsonl";
  write_atomically(path() / "config.ini", "[task]\nname = reversal\n");
  std::string figures;
  {
    std::ofstream out(file, std::ios::binary);
    std::string rest;
    for (int figure = 0; figure < 60; ++figure) {
      rest += text(",\"f", figure, "\":", figure);
      figures += text(figure == 0 ? "" : ",", "f", figure);
    }
    for (int step = 1; step <= 30'000; ++step) out << "{\"step\":" << step << rest << "}\n";
  }
  LivePage page({path()}, "token");
  const auto seconds_of = [&](const HttpRequest& request) {
    timespec from{}, to{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    const HttpResponse answer = page.answer(request);
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    BOOST_TEST(answer.status == 200, answer.body);
    return static_cast<double>(to.tv_sec - from.tv_sec) +
           1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
  };
  const HttpRequest list{.method = "GET", .path = "/api/runs"};
  for (int i = 0; i < 300; ++i) {  // repeats until the server has read the whole file
    BOOST_TEST(seconds_of(list) < 1);
    if (contains(page.answer(list).body, "\"whole\":true").passed) break;
  }
  // The lines of the requested steps make up 7 MiB of the file. The request names each of the 60
  // figures (values per step) twice, and run 1 four times: as 1, 01, 001 and 1.
  const HttpRequest part{.method = "GET",
                         .path = "/api/series",
                         .query = {{"runs", "1,01,001,1"},
                                   {"figures", figures + "," + figures},
                                   {"from", "100"},
                                   {"to", "14000"},
                                   {"points", "2000"}}};
  BOOST_TEST(seconds_of(part) < 2);  // reading each number separately would take 30 s

  // Each file consists of empty lines, of lines that are not JSON, or of a single endless line.
  for (const std::string unit : {"\n", "{\n", " "}) {
    std::string rubbish;
    while (rubbish.size() < (std::size_t{8} << 20)) rubbish += unit;
    write_atomically(file, rubbish);
    BOOST_TEST(seconds_of(list) < 1);
  }
}

BOOST_AUTO_TEST_CASE(requests_have_size_limits) {
  const Echo echo({.header_bytes = 2048, .body_bytes = 100});
  const HttpAnswer good = http_request(echo.port(), "GET", "/a?x=1%202", "X-Longhand-Token: t\r\n");
  BOOST_TEST(good.status == 200);
  BOOST_TEST(good.body == "GET /a t|x=1 2");
  BOOST_TEST(contains(good.head, "Content-Security-Policy: default-src 'none'"));
  const auto status = [&](const std::string& bytes) {
    return raw_request(echo.port(), bytes).status;
  };
  const std::string host = "Host: localhost\r\nConnection: close\r\n";
  BOOST_TEST(status("GET / HTTP/1.1\r\n" + host + "\r\n") == 200);
  BOOST_TEST(status("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n") == 403);
  BOOST_TEST(status("GET / HTTP/1.1\r\nConnection: close\r\n\r\n") == 403);
  BOOST_TEST(
      status(
          "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n") ==
      403);
  BOOST_TEST(status("DELETE / HTTP/1.1\r\n" + host + "\r\n") == 405);
  BOOST_TEST(status("GET /?a=%zz HTTP/1.1\r\n" + host + "\r\n") == 400);
  BOOST_TEST(status("rubbish\r\n\r\n") == 400);
  BOOST_TEST(status("GET / HTTP/1.1\r\n" + host + "X: " + std::string(4000, 'x') + "\r\n\r\n") ==
             413);
  BOOST_TEST(status("POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999\r\n\r\n") == 413);
  BOOST_TEST(status("POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n") == 400);
  BOOST_TEST(status("POST / HTTP/1.1\r\n" + host +
                    "Transfer-Encoding: chunked\r\n\r\nffffffff\r\nxx") == 413);
  BOOST_TEST(http_request(echo.port(), "GET", "/b").status == 200);  // the server still answers
}

BOOST_AUTO_TEST_CASE(garbage_never_ends_the_server) {
  const Echo echo;
  Rng rng(3, Purpose::test);
  const std::string start = "GET /api/runs?runs=1,2&from=3 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int i = 0; i < 300; ++i) {
    std::string bytes = start;
    for (int k = 0; k < 4; ++k) {
      bytes[rng.below(static_cast<std::uint32_t>(bytes.size()))] =
          static_cast<char>(rng.below(256));
    }
    const FileDescriptor socket = connect_to(echo.port());
    send_all(socket, bytes.substr(0, rng.below(static_cast<std::uint32_t>(bytes.size() + 1))));
  }
  BOOST_TEST(http_request(echo.port(), "GET", "/").status == 200);
}

BOOST_AUTO_TEST_CASE(slow_or_many_clients_do_not_delay_others) {
  const Echo echo({.connections = 8, .idle = std::chrono::seconds(1)});
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 7; ++i) {
    slow.push_back(connect_to(echo.port()));
    send_all(slow.back(), "GET / HT");
  }
  BOOST_TEST(http_request(echo.port(), "GET", "/").status == 200);
  // At the limit of 8 connections, each new connection replaces the oldest one.
  for (int i = 0; i < 20; ++i) slow.push_back(connect_to(echo.port()));
  ::usleep(1'500'000);  // now all connections exceed the time limit
  BOOST_TEST(http_request(echo.port(), "GET", "/").status == 200);
  BOOST_TEST((receive_all(slow.front()) == ""));  // the oldest connection gets no response
}

BOOST_AUTO_TEST_CASE(clients_that_send_half_a_request_do_not_block_others) {
  const Echo echo({.connections = 8});  // each connection has a limit of 20 seconds
  std::vector<FileDescriptor> half;
  for (int i = 0; i < 24; ++i) {
    half.push_back(connect_to(echo.port()));
    send_all(half.back(), "GET / HT");
  }
  for (int i = 0; i < 3; ++i) BOOST_TEST(http_request(echo.port(), "GET", "/").status == 200);
  BOOST_TEST((receive_all(half.front()) == ""));  // the connection that waited longest was closed
  send_all(half.back(), "TP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  BOOST_TEST(receive_all(half.back()).value_or("").starts_with("HTTP/1.1 200"));
}

BOOST_AUTO_TEST_CASE(a_client_that_expects_100_continue_gets_it) {
  const Echo echo({.body_bytes = 100});
  const auto begin = [&](const std::string& expected, const std::string& length) {
    FileDescriptor socket = connect_to(echo.port());
    send_all(socket, "POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: " +
                         expected + "\r\nContent-Length: " + length + "\r\n\r\n");
    return socket;
  };
  const FileDescriptor waits = begin("100-continue", "3");
  std::string first(25, '\0');
  BOOST_TEST(::recv(waits.get(), first.data(), first.size(), MSG_WAITALL) == 25);
  BOOST_TEST(first == "HTTP/1.1 100 Continue\r\n\r\n");
  send_all(waits, "abc");
  BOOST_TEST(receive_all(waits).value_or("").starts_with("HTTP/1.1 200"));
  BOOST_TEST(receive_all(begin("100-continue", "101")).value_or("").starts_with("HTTP/1.1 413"));
  BOOST_TEST(receive_all(begin("miracles", "3")).value_or("").starts_with("HTTP/1.1 417"));
  BOOST_TEST(receive_all(begin("100-continue", "0")).value_or("").ends_with("POST /a "));
}

BOOST_AUTO_TEST_CASE(unread_responses_are_bounded) {
  std::atomic<bool> over = false;
  HttpServer server(
      "127.0.0.1", 0,
      [](const HttpRequest& request) {
        return HttpResponse{.body = std::string(request.path == "/" ? 1 : 20 << 20, 'x')};
      },
      {.waiting_bytes = 50u << 20});
  std::thread thread([&] { server.run([&] { return over.load(); }); });
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 2; ++i) {
    idle.push_back(connect_to(server.port()));
    send_all(idle.back(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    char first = 0;
    BOOST_TEST(::recv(idle.back().get(), &first, 1, 0) == 1);
  }
  BOOST_TEST(http_request(server.port(), "GET", "/large").status == 503);
  BOOST_TEST(http_request(server.port(), "GET", "/").status == 200);
  idle.clear();
  ::usleep(300'000);
  BOOST_TEST(http_request(server.port(), "GET", "/large").body.size() == std::size_t{20} << 20);
  over = true;
  thread.join();
}

BOOST_AUTO_TEST_CASE(a_host_name_or_an_address_in_use_is_refused) {
  const Echo echo;
  const auto ignore = [](const HttpRequest&) { return HttpResponse(); };
  BOOST_TEST(contains(refusal([&] { HttpServer("localhost", 0, ignore); }), "127.0.0.1"));
  BOOST_TEST(contains(refusal([&] { HttpServer("127.0.0.1", echo.port(), ignore); }),
                      text("port ", echo.port(), ": cannot listen")));
}

BOOST_FIXTURE_TEST_CASE(runs_are_shown_by_number_only, Served) {
  const auto trained = (*this)(
      "train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 --width 8 --steps 6 "
      "--batch 2 --evaluate-every 3 --evaluate-samples 2 --threads 1 --quiet --out runs/small");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  std::filesystem::create_directory(folder / "runs/bad");
  write_atomically(folder / "runs/bad/config.ini", "[task]\nname = <b>no\n");
  serve();
  const Json runs = get("/api/runs").json()["runs"];
  BOOST_REQUIRE(runs.size() == 2u);
  const Json& bad = runs[0]["name"] == "bad" ? runs[0] : runs[1];
  const Json& small = runs[0]["name"] == "bad" ? runs[1] : runs[0];
  BOOST_TEST(bad["state"] == "unreadable");
  BOOST_TEST(small["state"] == "finished");
  BOOST_TEST(small["step"].integer() == 6);
  BOOST_TEST(small["score"].is_number());
  const std::string number = small["run"].dump();
  const Json series = get("/api/series?runs=" + number + "&figures=loss,train/sequences,no").json();
  BOOST_TEST(series["whole"].boolean());
  BOOST_TEST(series["runs"][number]["loss"]["y"].size() == 6u);
  BOOST_TEST(series["runs"][number]["train/sequences"]["x"].size() == 2u);
  BOOST_TEST(!series["runs"][number].contains("no"));
  const Json told = get("/api/run?run=" + number).json();
  BOOST_TEST(told["settings"]["model.width"] == "8");
  BOOST_TEST(told["evaluation"]["step"].integer() == 6);

  const HttpAnswer page = get("/");
  BOOST_TEST(contains(page.head, "text/html"));
  for (const char* const file : {"/page.js", "/chart.js", "/style.css"}) {
    BOOST_TEST(contains(page.body, file));
    BOOST_TEST(get(file).status == 200);
  }
  const HttpAnswer report = get("/page?run=" + number + "&name=report.html");
  BOOST_TEST(report.body == contents(folder / "runs/small/report.html"));
  BOOST_TEST(contains(report.head, "Content-Security-Policy: sandbox"));
  for (const char* target :
       {"/page?run=NR&name=config.ini", "/page?run=NR&name=../../small/report.html", "/etc/passwd",
        "/../../etc/passwd", "/page?run=NR", "/api/none"}) {
    std::string asked = target;
    if (const auto at = asked.find("NR"); at != std::string::npos) asked.replace(at, 2, number);
    BOOST_TEST(get(asked).status == 404, asked);
  }
  for (const char* target : {"/api/run?run=99", "/api/run?run=../bad", "/api/run", "/page?run=-1",
                             "/api/series?runs=1&figures=loss&from=x",
                             "/api/series?runs=1&figures=loss&points=99999999999999999999"}) {
    BOOST_TEST(get(target).status == 400, target);
  }
  // A run can be trained further while the server shows it.
  BOOST_TEST((*this)("train --resume runs/small --quiet").status == 0);
}

BOOST_FIXTURE_TEST_CASE(holders_of_the_token_stop_and_resume_runs, Served) {
  const pid_t training = start(
      "train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 --width 8 "
      "--steps 100000 --batch 2 --evaluate-samples 2 --threads 1 --quiet --out runs/long");
  wait_for_lines("runs/long", 3);
  serve();
  const Json row = wait_for([](const Json& run) { return run["state"] == "training"; });
  BOOST_TEST(row["here"].boolean());
  BOOST_TEST(row["resident_bytes"].number() > 1e6);
  const std::string of = "?run=" + row["run"].dump();
  for (const char* what : {"/api/stop", "/api/resume", "/api/look"}) {
    BOOST_TEST(http_request(port, "POST", what + of).status == 403);
    BOOST_TEST(
        http_request(port, "POST", what + of, "X-Longhand-Token: " + token.substr(1) + "0\r\n")
            .status == 403);
    BOOST_TEST(get(what + of).status == 404);
  }
  BOOST_TEST(post("/api/resume" + of).status == 400);  // the run is already being trained
  BOOST_TEST(post("/api/stop" + of).status == 200);
  BOOST_TEST(finish(training) == 128 + SIGTERM);
  const Json stopped = wait_for([](const Json& run) { return run["state"] == "stopped"; });
  const std::int64_t step = stopped["step"].integer();
  BOOST_TEST(post("/api/stop" + of).status == 400);
  BOOST_TEST(post("/api/resume" + of).status == 200);
  wait_for(
      [&](const Json& run) { return run["state"] == "training" && run["step"].integer() > step; });
  BOOST_TEST(post("/api/stop" + of).status == 200);
  wait_for([](const Json& run) { return run["state"] == "stopped" && !run.contains("doing"); });
}

BOOST_FIXTURE_TEST_CASE(a_lock_naming_another_process_kills_nothing, Served) {
  BOOST_REQUIRE((*this)("train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 "
                        "--width 8 --steps 2 --batch 2 --evaluate-samples 2 --quiet --out runs/r")
                    .status == 0);
  // This process holds the lock of the run, but the lock file names another process.
  const pid_t bystander = start("train --task sorting --steps 1000000 --quiet --threads 1 --out b");
  std::array<char, 65> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string lock = path("runs/r/lock");
  write_atomically(lock, text("process ", bystander, " on ", host.data(), "\n"));
  const FileDescriptor held(::open(lock.c_str(), O_RDONLY));
  BOOST_REQUIRE(::flock(held.get(), LOCK_EX) == 0);
  serve();
  const Json row = wait_for([](const Json& run) { return run["state"] == "training"; });
  BOOST_TEST(!row["here"].boolean());
  BOOST_TEST(post("/api/stop?run=" + row["run"].dump()).status == 400);
  BOOST_TEST(::kill(bystander, SIGKILL) == 0);
  BOOST_TEST(finish(bystander) == -SIGKILL);
}

/// A user who can write to the folder of runs must not be able to make the server show or change
/// files elsewhere.
BOOST_FIXTURE_TEST_CASE(no_link_in_the_folder_of_runs_is_followed, Served) {
  namespace fs = std::filesystem;
  const auto trained = (*this)(
      "train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 --width 8 --steps 2 "
      "--batch 2 --evaluate-samples 2 --threads 1 --quiet --out runs/linked");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const std::string secret = "SECRET:x:0:0\n";
  write_atomically(folder / "secret", secret);
  const fs::path run = folder / "runs/linked";
  fs::remove(run / "report.html");
  fs::create_symlink(folder / "secret", run / "report.html");
  fs::create_symlink("/proc/self/environ", run / "inspect.html");
  fs::create_symlink(folder / "secret", run / "serve.log");
  fs::create_directories(folder / "runs/named");
  fs::create_symlink(folder / "secret", folder / "runs/named/config.ini");
  fs::create_directories(folder / "elsewhere");
  fs::copy(run / "config.ini", folder / "elsewhere/config.ini");
  write_atomically(folder / "elsewhere/report.html", secret);
  fs::create_directory_symlink(folder / "elsewhere", folder / "runs/away");
  serve();
  const HttpAnswer list = get("/api/runs");
  BOOST_TEST(list.body.find("SECRET") == list.body.npos);
  const Json told = list.json();
  BOOST_REQUIRE(told["runs"].size() == 2u);
  BOOST_REQUIRE(told["skipped"].size() == 1u);
  BOOST_TEST(told["skipped"][0] == "runs/away: is a link, which is not followed");
  std::string number;
  for (const Json& row : told["runs"]) {
    if (row["name"] == "linked") number = row["run"].dump();
    if (row["name"] == "named") {
      BOOST_TEST(contains(row["error"].string(), "config.ini: expected a file, got a link"));
    }
  }
  BOOST_TEST(get("/api/run?run=" + number).json()["pages"].size() == 0u);
  for (const char* name : {"report.html", "inspect.html"}) {
    const HttpAnswer page = get("/page?run=" + number + "&name=" + name);
    BOOST_TEST(page.status == 400);
    BOOST_TEST(contains(page.body, "expected a file, got a link"));
  }
  // This request starts the command `inspect`. Its output goes to a new file serve.log, which
  // replaces the link of this name.
  BOOST_TEST(post("/api/look?run=" + number).status == 200);
  wait_until([&] { return !contains(get("/api/runs").body, "\"doing\"").passed; });
  BOOST_TEST(contents(folder / "secret") == secret);
  BOOST_TEST(fs::symlink_status(run / "serve.log").type() == fs::file_type::regular);
}

BOOST_FIXTURE_TEST_CASE(pipes_and_loops_of_links_do_not_stop_the_server, Served) {
  namespace fs = std::filesystem;
  const auto make = [&](const std::string& name) {
    fs::create_directories(folder / "runs" / name);
    write_atomically(folder / "runs" / name / "config.ini", "[task]\nname = reversal\n");
    return folder / "runs" / name;
  };
  const auto pipe = [&](const fs::path& path) {
    fs::remove(path);
    BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  };
  make("sound");
  pipe(make("config") / "config.ini");
  pipe(make("lock") / "lock");
  pipe(make("metrics") / "metrics.jsonl");
  const fs::path pages = make("pages");
  pipe(pages / "report.html");
  pipe(pages / "serve.log");
  fs::create_symlink("loop", folder / "runs/loop");
  fs::remove(make("looped") / "config.ini");
  fs::create_symlink("config.ini", folder / "runs/looped/config.ini");
  serve();
  const Json told = get("/api/runs").json();
  BOOST_REQUIRE(told["runs"].size() == 6u);
  std::string number;
  for (const Json& row : told["runs"]) {
    const std::string& name = row["name"].string();
    const bool sound = name == "sound" || name == "lock" || name == "pages";
    BOOST_TEST((row["state"] == "unreadable") == !sound, name);
    if (name == "pages") number = row["run"].dump();
  }
  BOOST_TEST(contains(told["skipped"].dump(), "runs/loop: cannot be read: Too many levels"));
  BOOST_TEST(get("/page?run=" + number + "&name=report.html").status == 400);
  // This request starts the command `inspect`, which fails because the run has no checkpoint.
  BOOST_TEST(post("/api/look?run=" + number).status == 200);
  wait_until([&] { return contains(get("/api/runs").body, "has no checkpoint").passed; });
  BOOST_TEST(::kill(process, SIGTERM) == 0);
  BOOST_TEST(finish(std::exchange(process, 0)) == 128 + SIGTERM);
}

BOOST_FIXTURE_TEST_CASE(a_server_without_free_descriptors_waits_and_recovers, Served) {
  serve(16);
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(connect_to(port));
  const auto processor_seconds = [&] {
    std::ifstream file(text("/proc/", process, "/stat"));
    std::string all((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(all.substr(all.rfind(')') + 2));
    std::string field;
    double ticks = 0;
    for (int i = 3; i <= 15 && fields >> field; ++i) ticks += i >= 14 ? std::stod(field) : 0;
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  };
  ::usleep(200'000);
  const double before = processor_seconds();
  ::usleep(2'000'000);
  // A server that polled without pauses would use 2 s of processor time.
  BOOST_TEST(processor_seconds() - before < 0.5);
  clients.clear();
  ::usleep(500'000);
  BOOST_TEST(get("/").status == 200);
}

BOOST_FIXTURE_TEST_CASE(folders_that_cannot_be_served_are_refused, Served) {
  refuses(1, "serve nowhere", "nowhere");
  refuses(1, "serve --address example.org", "127.0.0.1");
  refuses(2, "serve --port 70000", "--port");
}

BOOST_AUTO_TEST_SUITE_END()
