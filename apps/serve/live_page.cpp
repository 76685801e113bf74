#include "apps/serve/live_page.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "apps/machine.h"
#include "apps/serve/page_files.h"
#include "apps/serve/token.h"
#include "core/commas.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/text_file.h"

namespace longhand::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Maximum time for reading files in one response.
constexpr auto patience = std::chrono::milliseconds(150);
constexpr std::size_t most_runs_at_once = 200, most_figures_at_once = 60, most_points = 2000;
constexpr std::size_t most_values_at_once = 400'000;  // maximum number of values per response
constexpr std::size_t largest_page = 64u << 20;       // maximum bytes of a run's page

/// Content security policy for the pages in a run's folder. They may contain scripts but cannot
/// load anything.
constexpr const char* apart =
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";
constexpr std::array<const char*, 3> page_names{"report.html", "inspect.html", "attention.html"};

HttpResponse json_answer(const Json& value) {
  return {.type = "application/json", .body = value.dump() + "\n"};
}

HttpResponse refused_answer(int status, std::string_view why) {
  return {.status = status, .type = "application/json", .body = Json{{"error", why}}.dump() + "\n"};
}

std::string parameter(const HttpRequest& request, std::string_view name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::int64_t number_in(const HttpRequest& request, std::string_view name, std::int64_t otherwise) {
  const std::string word = parameter(request, name);
  if (word.empty()) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  LONGHAND_CHECK(error == std::errc() && end == word.data() + word.size(), name,
                 ": expected an integer");
  return value;
}

/// The comma-separated words of a parameter, without repetitions.
std::vector<std::string> list_in(const HttpRequest& request, std::string_view name) {
  std::vector<std::string> words;
  const std::string all = parameter(request, name);
  for (const std::string_view word : at_commas(all)) {
    if (!word.empty() && std::ranges::find(words, word) == words.end()) words.emplace_back(word);
  }
  return words;
}

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {  // JSON cannot represent NaN and infinity
    out += "null";
    return;
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::general, 7)
                       .ptr;
  out.append(digits.data(), end);
}

/// A curve as {"x": [...], "y": [...]}. If values were combined, also "low" and "high".
std::string course_of(const std::vector<Bucket>& buckets) {
  const bool several = std::ranges::any_of(buckets, [](const Bucket& b) { return b.count > 1; });
  std::string out = "{";
  const auto list = [&](const char* name, auto value) {
    out += text(out.size() > 1 ? "," : "", '"', name, "\":[");
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (i > 0) out += ',';
      append_number(out, value(buckets[i]));
    }
    out += ']';
  };
  list("x", [](const Bucket& b) { return 0.5 * static_cast<double>(b.first + b.last); });
  list("y", [](const Bucket& b) { return b.mean(); });
  if (several) {
    list("low", [](const Bucket& b) { return static_cast<double>(b.low); });
    list("high", [](const Bucket& b) { return static_cast<double>(b.high); });
  }
  return out + "}";
}

Json machine_facts() {
  const std::string load = find_line("/proc/loadavg", "");
  Json facts{{"name", machine()}, {"threads", ThreadPool::count_of(0)}};
  facts["load"] = std::strtod(load.c_str(), nullptr);
  const MachineMemory memory = machine_memory();
  facts["memory_bytes"] = memory.total;
  facts["available_bytes"] = memory.available;
  return facts;
}

std::vector<std::string> pages_of(const LiveRun& run) {
  std::vector<std::string> names;
  for (const char* name : page_names) {
    try {
      if (run.open(name).valid()) names.emplace_back(name);
    } catch (const Error&) {  // the page is a link or not a regular file
    }
  }
  return names;
}

HttpResponse page_of(const LiveRun& run, const std::string& name) {
  if (std::ranges::find(page_names, name) == page_names.end()) {
    return refused_answer(404, "there is no such page");
  }
  const FileDescriptor file = run.open(name);
  if (!file.valid()) return refused_answer(404, "there is no such page");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || std::cmp_greater(status.st_size, largest_page)) {
    return refused_answer(413, "the page is too large to be shown here");
  }
  return {.type = "text/html; charset=utf-8",
          .body = read_text(file, (run.path / name).string(), largest_page),
          .policy = apart};
}

}  // namespace

LivePage::LivePage(std::vector<fs::path> folders, std::string token)
    : runs_(folders), token_(std::move(token)) {
  for (const fs::path& folder : folders) {
    folder_ += (folder_.empty() ? "" : ", ") + fs::absolute(folder).lexically_normal().string();
  }
}

HttpResponse LivePage::answer(const HttpRequest& request) {
  runs_.refresh();
  try {
    return request.method == "GET" ? get(request) : post(request);
  } catch (const Error& error) {
    return refused_answer(400, error.what());
  }
}

HttpResponse LivePage::get(const HttpRequest& request) {
  for (const PageFile& file : page_files()) {
    if (request.path == file.path) {
      return {.type = std::string(file.type), .body = std::string(file.text)};
    }
  }
  if (request.path == "/api/runs") return list_runs();
  if (request.path == "/api/series") return series(request);
  if (request.path == "/api/run") return describe(runs_.at(parameter(request, "run")));
  if (request.path == "/page") {
    return page_of(runs_.at(parameter(request, "run")), parameter(request, "name"));
  }
  return refused_answer(404, "there is no such address");
}

HttpResponse LivePage::post(const HttpRequest& request) {
  if (!is_token(request, token_)) {
    return refused_answer(403, "open the page by the address that `longhand serve` printed");
  }
  LiveRun& run = runs_.at(parameter(request, "run"));
  if (request.path == "/api/stop") {
    LiveRuns::stop(run);
  } else if (request.path == "/api/resume") {
    LONGHAND_CHECK(!LiveRuns::writer(run), run.name, ": expected a run that is not being trained");
    LiveRuns::start(run, {"train", "--resume", run.path.string()});
  } else if (request.path == "/api/look") {
    LiveRuns::start(run, {"inspect", run.path.string(), "--threads", "1"});
  } else {
    return refused_answer(404, "there is no such address");
  }
  return json_answer({{"done", true}});
}

Json LivePage::row_of(int number, LiveRun& run, Clock::time_point until) {
  const bool whole = run.read_curves(until);
  const auto writer = LiveRuns::writer(run);
  const auto setting = [&](const char* key) {
    const Json* const value = run.settings.find(key);
    return value ? *value : Json();
  };
  const auto known = [&](const std::string& name) { return run.curves.last(name).has_value(); };
  const auto found = std::ranges::find_if(run.ranking, known);
  const std::string score = found != run.ranking.end() ? *found
                            : run.ranking.empty()      ? std::string()
                                                       : run.ranking.front();
  Json row{{"run", number},
           {"name", run.name},
           {"task", setting("task.name")},
           {"heads", setting("model.heads")},
           {"layers", setting("model.layers")},
           {"width", setting("model.width")},
           {"step", run.curves.step()},
           {"steps", run.steps},
           {"loss", optional(run.curves.last("loss"))},
           {"metric", score},
           {"score", optional(run.curves.last(score))},
           {"tokens_per_second", optional(run.curves.last("tokens_per_second"))},
           {"step_seconds", optional(run.curves.last("seconds"))},
           {"seconds", run.curves.seconds()},
           {"figures", run.curves.figures()},
           {"whole", whole}};
  const bool finished = run.curves.step() >= run.steps && run.complete;
  const std::string state = writer ? "training" : finished ? "finished" : run.idle;
  const std::string& error = run.error.empty() ? run.unread : run.error;
  row["state"] = error.empty() ? state : "unreadable";
  row["here"] = writer && writer->process != 0;
  if (writer && writer->process != 0) {
    row["processor_seconds"] = writer->seconds;
    row["resident_bytes"] = writer->resident_bytes;
  }
  if (run.child != 0) row["doing"] = run.doing;
  if (!error.empty()) row["error"] = error;
  if (!run.trouble.empty()) row["trouble"] = run.trouble;
  return row;
}

HttpResponse LivePage::list_runs() {
  const auto until = Clock::now() + patience;
  Json rows = Json::array();
  for (auto& [number, run] : runs_.all()) rows.push_back(row_of(number, run, until));
  return json_answer({{"folder", folder_},
                      {"machine", machine_facts()},
                      {"runs", std::move(rows)},
                      {"skipped", Json(runs_.skipped())}});
}

HttpResponse LivePage::series(const HttpRequest& request) {
  const std::vector<std::string> numbers = list_in(request, "runs");
  const std::vector<std::string> figures = list_in(request, "figures");
  LONGHAND_CHECK(numbers.size() <= most_runs_at_once && figures.size() <= most_figures_at_once,
                 "/api/series: expected at most ", most_runs_at_once, " runs and ",
                 most_figures_at_once, " curves per run");
  const std::int64_t from = number_in(request, "from", 0);
  const std::int64_t to = number_in(request, "to", std::int64_t{1} << 53);
  const std::size_t courses = std::max<std::size_t>(1, numbers.size() * figures.size());
  const std::int64_t asked = number_in(request, "points", 400);
  const std::size_t points = std::clamp<std::size_t>(
      static_cast<std::size_t>(std::max<std::int64_t>(asked, 2)), 2,
      std::min(most_points, std::max<std::size_t>(8, most_values_at_once / courses)));
  const auto until = Clock::now() + patience;
  bool whole = true;
  std::string body = "{\"runs\":{";
  for (const std::string& number : numbers) {
    LiveRun& run = runs_.at(number);
    whole = run.read_curves(until) && whole;
    body += text(body.back() == '{' ? "" : ",", '"', number, "\":{");
    const auto found = run.curves_between(figures, from, to, points, until);
    for (std::size_t i = 0; i < figures.size(); ++i) {
      if (found[i].empty()) continue;
      body += (body.back() == '{' ? "" : ",") + json_string(figures[i]) + ":" + course_of(found[i]);
    }
    body += '}';
  }
  body += text("},\"whole\":", whole ? "true" : "false", "}\n");
  return {.type = "application/json", .body = std::move(body)};
}

HttpResponse LivePage::describe(LiveRun& run) {
  run.read_curves(Clock::now() + patience);
  Json facts{{"name", run.name}, {"path", fs::absolute(run.path).lexically_normal().string()}};
  facts["settings"] = run.settings;
  facts["evaluation"] = run.curves.evaluation() ? *run.curves.evaluation() : Json();
  facts["samples"] = run.curves.samples();
  facts["pages"] = pages_of(run);
  return json_answer(facts);
}

}  // namespace longhand::app
