// browser_test PROGRAM SOURCE opens pages made by the program in a browser: the live page, a report
// and pages of the book. Tests each page wide and narrow, light and dark. Exits with 77 if there is
// no Chromium.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "core/error.h"
#include "tests/browser/chromium.h"

namespace longhand {
namespace {

namespace fs = std::filesystem;

constexpr int skipped = 77;
constexpr unsigned longest = 400;  // time limit for all tests together, in seconds
volatile pid_t browser_group = 0, servers[2] = {};

void end_all(int) {
  if (browser_group > 0) ::kill(-browser_group, SIGKILL);
  for (const pid_t server : servers) {
    if (server > 0) ::kill(server, SIGKILL);
  }
  static const char words[] = "browser: not done in time\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words, sizeof words - 1);
  ::_exit(1);
}

std::string find_browser() {
  const char* const path = std::getenv("PATH");
  for (std::string rest = path ? path : ""; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::string file = rest.substr(0, end) + "/" + name;
      if (::access(file.c_str(), X_OK) == 0) return file;
    }
    rest.erase(0, end + 1);
  }
  return {};
}

int wrong = 0;

/// A page that is tested at one width (in pixels) in dark or light mode. Error messages contain all
/// three.
struct View {
  std::string page;
  int width;
  bool dark;
};

void expect(bool holds, const View& view, const std::string& what) {
  if (holds) return;
  ++wrong;
  std::fprintf(stderr, "browser: %s, %d pixels, %s: %s\n", view.page.c_str(), view.width,
               view.dark ? "dark" : "light", what.c_str());
}

/// Checks that a page has no errors, requests only addresses under `home`, is not too wide and has
/// a background of the right brightness.
void look_over(Chromium& browser, const View& view, const std::string& home) {
  for (const std::string& error : browser.errors()) expect(false, view, error);
  expect(!browser.requests().empty(), view, "nothing was asked for");
  for (const std::string& address : browser.requests()) {
    const bool inside =
        address.starts_with(home) || address.starts_with("data:") || address.starts_with("blob:");
    expect(inside, view, "asked for " + address);
  }
  const Json over = browser.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth");
  expect(over.number() <= 0, view, text("is ", over.number(), " pixels too wide"));
  // The red, green and blue components of the page's background colour.
  const Json ground = browser.evaluate(
      "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)");
  double light = 0;
  for (const Json& one : ground) light += one.number() / 3;
  expect(view.dark ? light < 80 : light > 200, view, "its ground is " + ground.dump());
}

/// Scrolls to the first element that matches the selector and returns its middle as [x, y].
Json middle_of(Chromium& browser, const std::string& selector) {
  return browser.evaluate("(() => { const e = document.querySelector('" + selector +
                          "'); e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = "
                          "e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / "
                          "2]; })()");
}

void look_at_report(Chromium& browser, const View& view, const fs::path& run) {
  browser.open("file://" + (run / "report.html").string(), view.width, 800, view.dark);
  // Finds the curve with the most corners, and the position of its middle corner on the screen.
  const Json found = browser.evaluate(R"((() => {
    const places = (path) => (path.getAttribute('d').match(/[-\d.]+ [-\d.]+/g) || []);
    const path = [...document.querySelectorAll('path[data-values]')]
      .sort((a, b) => places(b).length - places(a).length)[0];
    path.scrollIntoView({block: 'center', behavior: 'instant'});
    const all = places(path), [x, y] = all[all.length >> 1].split(' ').map(Number);
    const at = new DOMPoint(x, y).matrixTransform(path.ownerSVGElement.getScreenCTM());
    return [all.length, at.x, at.y];
  })())");
  expect(found[0].number() >= 30, view, "its curves have corners: " + found[0].dump());
  browser.move_pointer(found[1].number(), found[2].number());
  expect(browser.wait_for("[...document.querySelectorAll('.tip')].some(t => !t.hidden && "
                          "/\\d/.test(t.textContent) && t.querySelectorAll('b').length >= 2)"),
         view, "no values under the pointer");
  look_over(browser, view, "file://" + run.string());
}

void look_at_live_page(Chromium& browser, const View& view, const std::string& address) {
  browser.open(address, view.width, 800, view.dark);
  expect(browser.wait_for("[...state.charts.values()].some(c => c.curves.some(k => k.x.length >= "
                          "30) && c.place)"),
         view, "no curves come");
  // Waits until there are coloured pixels in the first chart, because its curves are drawn one
  // frame after the data arrive.
  expect(browser.wait_for(R"((() => {
    const canvas = [...state.charts.values()].find(c => c.place).curvesCanvas;
    const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let i = 0; i < bytes.length; i += 4) {
      const colour = [bytes[i], bytes[i + 1], bytes[i + 2]];
      if (bytes[i + 3] > 100 && Math.max(...colour) - Math.min(...colour) > 60) ++coloured;
    }
    return coloured > 150;
  })())"),
         view, "no curves are drawn");
  // The axis of a metric that is a share reaches from 0 to 1. An axis does not include negative
  // numbers if no value is negative.
  for (const char* figure : {"train/sequences", "accuracy"}) {
    const Json range = browser.evaluate(text("(() => { const r = new Chart('", figure,
                                             "', null).range(0, 0); return [r.low, r.high]; })()"));
    expect(range[0].number() > -0.1 && range[1].number() >= 1 && range[1].number() < 1.1, view,
           text("the axis of ", figure, " is ", range.dump()));
  }
  const Json range = browser.evaluate(
      "(() => { const r = new Chart('gradient_norm', null).range(0, 0); return [r.low, r.high]; "
      "})()");
  expect(range[0].number() >= 0, view, "the axis of gradient_norm is " + range.dump());
  // A score that was computed once is drawn as a dashed line, not only as a point.
  const Json level = browser.evaluate(R"((() => {
    const chart = [...state.charts.values()].find(c => c.place), canvas = chart.curvesCanvas;
    chart.curves = [{name: 'once', colour: 'rgb(255, 0, 0)', x: [100], y: [0.5]}];
    chart.paint();
    const bytes = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    const columns = new Set();
    for (let i = 0; i < bytes.length; i += 4) {
      if (bytes[i] > 200 && bytes[i + 1] < 60 && bytes[i + 3] > 100) columns.add(i / 4 % canvas.width);
    }
    return columns.size / canvas.width;
  })())");
  expect(level.number() > 0.3, view, "a single point has no line, but " + level.dump());
  const Json middle = middle_of(browser, ".chart .layers");
  browser.move_pointer(middle[0].number(), middle[1].number());
  expect(browser.wait_for("[...document.querySelectorAll('.chart .tip')].some(t => !t.hidden && "
                          "/^step /.test(t.textContent) && t.querySelector('.value'))"),
         view, "no values under the pointer");
  browser.evaluate("document.querySelector('.run .name').click()");
  expect(browser.wait_for("document.querySelector('#detail table')"), view, "no details of a run");
  look_over(browser, view, address.substr(0, address.find('#')));
}

void look_at_book(Chromium& browser, const View& view, const fs::path& book, const char* page) {
  browser.open("file://" + (book / page).string(), view.width, 800, view.dark);
  const bool formulas = std::string_view(page) != "index.html";
  const Json count = browser.evaluate("document.querySelectorAll('math').length");
  expect(!formulas || count.number() >= 3, view, "formulas: " + count.dump());
  expect(!formulas || browser.wait_for("[...document.fonts].some(font => font.family.includes("
                                       "'Longhand Math') && font.status === 'loaded')"),
         view, "the font of the formulas is not loaded");
  browser.evaluate(
      "(() => { const s = document.getElementById('search'); s.value = 'backpropagation'; "
      "s.dispatchEvent(new Event('input')); })()");
  expect(browser.wait_for("(() => { const found = [...document.querySelectorAll('#found a')]"
                          ".map(a => a.getAttribute('href')); return found.length >= 3 && "
                          "found[0].endsWith('math/tape.html') && "
                          "found.some(f => f.endsWith('course/number.html')); })()"),
         view, "a search for backpropagation does not find the tape first and the course");
  look_over(browser, view, "file://" + book.string());
}

/// Trains the models on the book's live page flip_flop.html, until the FAL model predicts the bit
/// of every read command at every length. Then types two texts, one of them invalid.
void train_in_book(Chromium& browser, const View& view, const fs::path& book) {
  browser.open("file://" + (book / view.page).string(), view.width, 800, view.dark);
  browser.evaluate("document.getElementById('train').click()");
  if (!browser.wait_for("kinds[0].solved > 0", Chromium::Seconds(120))) {
    expect(
        false, view,
        "FAL does not answer every read: " +
            browser.evaluate("[document.getElementById('state').value, kinds[0].scores]").dump());
    return;
  }
  std::printf("browser: FAL answered every read after %.1f s\n",
              browser.evaluate("kinds[0].solved").number());
  browser.evaluate(
      "(() => { const t = document.getElementById('typed'); t.value = 'w1 i0 i0 r'; "
      "t.dispatchEvent(new Event('input')); })()");
  expect(browser.wait_for("(() => { const v = views.get(kinds[0]); return v.tokens.length === 7 && "
                          "v.predictions[6][0].label === '1'; })()"),
         view, "FAL does not answer 1 to w1 i0 i0 r");
  expect(browser.wait_for("document.querySelectorAll('#heads section').length === 4"), view,
         "expected what four models look at");
  browser.evaluate(
      "(() => { const t = document.getElementById('typed'); t.value = 'w1 x'; "
      "t.dispatchEvent(new Event('input')); })()");
  expect(browser.wait_for("/x/.test(document.getElementById('refused').value)"), view,
         "a text that is no sample is not refused");
  look_over(browser, view, "file://" + book.string());
}

/// Steps through the backward pass on the book's live page tape.html, then changes an input and
/// checks the derivatives.
void walk_tape(Chromium& browser, const View& view, const fs::path& book) {
  browser.open("file://" + (book / view.page).string(), view.width, 800, view.dark);
  expect(browser.wait_for("result !== null"), view, "nothing is computed");
  browser.evaluate("for (let i = 0; i < 6; ++i) document.getElementById('next').click()");
  expect(browser
             .evaluate("document.querySelectorAll('#graph .derivative').length === 11 && "
                       "[...document.querySelectorAll('#graph .derivative')].every(d => "
                       "d.textContent.includes('='))")
             .boolean(),
         view, "after six records a derivative is missing");
  browser.evaluate(
      "(() => { const f = document.getElementById('of-x'); f.value = -1.5; "
      "f.dispatchEvent(new Event('input')); })()");
  expect(browser.wait_for("result.values.x === -1.5"), view, "a changed input changes nothing");
  const Json worst =
      browser.evaluate("Math.max(...result.numbers.map(n => Math.abs(n.derivative - n.quotient)))");
  expect(worst.number() < 1e-6, view, "a derivative is off by " + worst.dump());
  look_over(browser, view, "file://" + book.string());
}

/// Moves gamma on the page of chains, and trains its two models.
void follow_chains(Chromium& browser, const View& view, const fs::path& book) {
  browser.open("file://" + (book / view.page).string(), view.width, 800, view.dark);
  expect(browser.wait_for("result !== null"), view, "nothing is computed");
  const auto set = [&](const char* gamma) {
    browser.evaluate(
        "result = null; chosen = 12; for (const [id, value] of [['score', 12], ['gamma', " +
        std::string(gamma) +
        "]]) { const f = document.getElementById(id); f.value = value; "
        "f.dispatchEvent(new Event('input')); }");
    expect(browser.wait_for("result !== null && !busy"), view, "a new gamma is not computed");
    return browser.evaluate("result.output[chosen * count + chainOf(chosen).at(-1)]").number();
  };
  // Token 12 is three references away from its value.
  const double without = set("0"), best = set("0.71");
  expect(without < 0.001, view, text("with gamma 0 the value has the weight ", without));
  expect(std::abs(best - 0.25) < 0.01, view, text("the largest weight is ", best, ", not 0.25"));
  const double difference = browser.evaluate("result.difference").number();
  expect(difference < 1e-12, view, text("the sum differs from the operation by ", difference));
  browser.evaluate("document.getElementById('train').click()");
  expect(browser.wait_for("/^done/.test(document.getElementById('state').value)",
                          Chromium::Seconds(60)),
         view, "the training does not end");
  const Json learned = browser.evaluate("models.map(model => model.scores.at(-1).shares)");
  for (const Json& share : learned[0]) {
    expect(share == Json(1), view, "ChaCAL's shares are " + learned[0].dump());
  }
  expect(learned[1][2].number() < 0.8, view, "softmax's shares are " + learned[1].dump());
  look_over(browser, view, "file://" + book.string());
}

/// Reads and writes text with the model of the book.
void read_text_in_book(Chromium& browser, const View& view, const fs::path& book) {
  browser.open("file://" + (book / view.page).string(), view.width, 800, view.dark);
  expect(browser.wait_for("view !== null"), view, "the model does not read");
  const Json guess = browser.evaluate("view.predictions.at(-1)[0].label");
  expect(guess == Json("d"), view,
         "after \"the sum of the gra\" the model expects " + guess.dump());
  expect(browser.evaluate("document.querySelectorAll('#maps canvas').length").integer() == 16, view,
         "expected the maps of 16 heads");
  browser.evaluate("document.getElementById('many').click()");
  expect(browser.wait_for("!writing && document.getElementById('typed').value.includes("
                          "'of the gradient')"),
         view, "it writes " + browser.evaluate("document.getElementById('typed').value").dump());
  browser.evaluate("document.querySelectorAll('#maps button')[5].click()");
  expect(browser.evaluate("document.getElementById('shaded').textContent")
             .string()
             .starts_with("layer 2, head 2"),
         view, "a chosen head is not shown");
  look_over(browser, view, "file://" + book.string());
}

/// Types a right and a wrong answer to every exercise of a page.
void solve_exercises(Chromium& browser, const View& view, const fs::path& book) {
  browser.open("file://" + (book / view.page).string(), view.width, 800, view.dark);
  for (const bool right : {true, false}) {
    browser.evaluate(text(
        "document.querySelectorAll('.exercise').forEach(e => { const f = e.querySelector('form'); "
        "f.querySelector('input').value = '(' + e.querySelector('details pre').textContent + ')",
        right ? "" : " + 0.01", "'; f.requestSubmit(); })"));
    expect(browser.wait_for(text("[...document.querySelectorAll('.exercise output')].every(o => "
                                 "o.className === '",
                                 right ? "right" : "wrong", "')"),
                            Chromium::Seconds(60)),
           view,
           text("expected that every answer is ", right ? "right: " : "wrong: ",
                browser
                    .evaluate("[...document.querySelectorAll('.exercise output')].map(o => "
                              "o.value)")
                    .dump()));
  }
  look_over(browser, view, "file://" + book.string());
}

void require(const std::string& line) {
  LONGHAND_CHECK(std::system(line.c_str()) == 0, "expected success of: ", line);
}

/// Starts server number i: runs the command `longhand serve` with the arguments `words`. Returns
/// the address that the server prints.
std::string serve(int i, const std::string& program, const fs::path& folder,
                  std::vector<std::string> words) {
  const fs::path file = folder / text("address-", i);
  words.insert(words.begin(), {"longhand", "serve", "--port", "0"});
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  servers[i] = ::fork();
  if (servers[i] == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::execv(program.c_str(), all.data());
    ::_exit(127);
  }
  for (int tries = 0; tries < 1000; ++tries, ::usleep(10'000)) {
    std::ifstream in(file);
    const std::string said{std::istreambuf_iterator<char>(in), {}};
    if (!said.ends_with('\n')) continue;
    const std::size_t begin = said.find("http");
    return said.substr(begin, said.find('\n') - begin);
  }
  fail("the server does not start");
}

/// Trains a model that knows two answers, and starts a server for it.
std::string serve_model(const std::string& program, const fs::path& folder) {
  const fs::path records = folder / "qa.jsonl", run = folder / "runs" / "qa";
  std::ofstream(records) << R"({"prompt": "cat?", "answer": "meow"})"
                         << "\n"
                         << R"({"prompt": "dog?", "answer": "woof"})"
                         << "\n";
  require(text(program, " train --task text --text ", records.string(), " --text-validation ",
               records.string(), " --task.length 32 --task.separator '\\n' --width 32 --layers 2 ",
               "--heads softmax:2 --batch 4 --rate 5e-3 --warm_up 10 --steps 100 --threads 1 ",
               "--quiet --out ", run.string()));
  return serve(1, program, folder, {"--model", run.string()});
}

/// Opens the chat page and asks its model two questions.
void chat(Chromium& browser, const View& view, const std::string& address) {
  browser.open(address, view.width, 800, view.dark);
  expect(browser.wait_for("document.getElementById('model').textContent.includes('qa')"), view,
         "the model has no name");
  for (const char* question : {"cat?", "dog?"}) {
    browser.evaluate(text("(() => { document.getElementById('text').value = '", question,
                          "'; document.getElementById('temperature').value = 0; "
                          "document.getElementById('form').requestSubmit(); })()"));
    expect(browser.wait_for("running === null && turns.length % 2 === 0"), view, "no answer comes");
  }
  const Json said = browser.evaluate(
      "[...document.querySelectorAll('.said')].map(s => "
      "s.textContent)");
  expect(said[0] == Json("cat?") && said[1] == Json("meow"), view, "it answers " + said.dump());
  expect(said.size() == 4, view, "turns: " + said.dump());
  browser.evaluate("document.getElementById('new').click()");
  expect(browser.evaluate("document.querySelectorAll('.said').length").integer() == 0, view,
         "a new chat begins with old turns");
  look_over(browser, view, address.substr(0, address.find('#')));
}

int run(const std::string& program, const std::string& source) {
  const std::string chromium = find_browser();
  if (chromium.empty()) {
    std::puts("browser: skipped, there is no chromium here");
    return skipped;
  }
  const TemporaryFolder folder;
  const fs::path runs = folder / "runs";
  fs::create_directory(runs);
  for (const char* name : {"one", "two"}) {
    require(text(program, " train --task flip-flop --task.instructions 8 --layers 1 --width 16 ",
                 "--steps 60 --evaluate-every 30 --evaluate-samples 20 --threads 1 --quiet --seed ",
                 name == std::string_view("one") ? 1 : 2, " --out ", (runs / name).string()));
  }
  const fs::path book = folder / "book";
  require(text(program, " book --no-checks --source ", source, " --out ", book.string(),
               " >/dev/null"));
  const std::string address = serve(0, program, folder.path(), {runs.string()});
  const std::string model = serve_model(program, folder.path());
  std::unique_ptr<Chromium> browser;
  try {
    browser = std::make_unique<Chromium>(chromium);
    browser_group = browser->group();
    browser->open("about:blank", 800, 600, false);
  } catch (const Error& error) {
    std::printf("browser: skipped, %s does not start: %s\n", chromium.c_str(), error.what());
    return skipped;
  }
  for (const int width : {1280, 390}) {
    for (const bool dark : {false, true}) {
      look_at_report(*browser, {"report.html", width, dark}, runs / "one");
      look_at_live_page(*browser, {"the live page", width, dark}, address);
      chat(*browser, {"the page for chats", width, dark}, model);
      for (const char* page : {"index.html", "math/attention.html", "course/attention.html"}) {
        if (!fs::exists(book / page)) fail("the book has no page ", page);
        look_at_book(*browser, {page, width, dark}, book, page);
      }
    }
  }
  const bool computes = fs::exists(book / "live/longhand.wasm.js");
  for (const int width : {1280, 390}) {
    if (computes) {
      train_in_book(*browser, {"live/flip_flop.html", width, width == 390}, book);
      walk_tape(*browser, {"live/tape.html", width, width == 1280}, book);
      follow_chains(*browser, {"live/chains.html", width, width == 1280}, book);
      read_text_in_book(*browser, {"live/attention.html", width, width == 390}, book);
      solve_exercises(*browser, {"more/exercises.html", width, false}, book);
    } else {
      for (const char* page : {"flip_flop", "tape", "chains", "attention"}) {
        const View closed{text("live/", page, ".html"), width, width == 390};
        browser->open("file://" + (book / closed.page).string(), width, 800, closed.dark);
        look_over(*browser, closed, "file://" + book.string());
      }
    }
  }
  if (!computes) std::puts("browser: no training in the book, because scripts/wasm.sh did not run");
  if (wrong == 0) std::puts("browser: all views are right");
  return wrong > 0;
}

}  // namespace
}  // namespace longhand

int main(int count, char** words) {
  if (count != 3) return 2;
  ::signal(SIGALRM, longhand::end_all);
  ::signal(SIGTERM, longhand::end_all);
  ::signal(SIGPIPE, SIG_IGN);
  ::alarm(longhand::longest);
  int status = 1;
  try {
    status = longhand::run(words[1], words[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "browser: %s\n", error.what());
  }
  for (const pid_t server : longhand::servers) {
    if (server <= 0) continue;
    ::kill(server, SIGTERM);
    ::waitpid(server, nullptr, 0);
  }
  return status;
}
