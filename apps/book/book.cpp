#include "apps/book/book.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <map>
#include <set>

#include "apps/book/live_pages.h"
#include "apps/book/markdown_page.h"
#include "apps/book/mechanisms.h"
#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "apps/machine.h"
#include "apps/version.h"
#include "autograd/gradcheck.h"
#include "autograd/tape.h"
#include "autograd/tolerance.h"
#include "core/atomic_file.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace longhand::app::book {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t largest_document = 4U << 20, largest_module = 16U << 20;
constexpr std::string_view mark = "book.json";  // marks a folder as a book
constexpr double infinite = std::numeric_limits<double>::infinity();

/// The checks and timings of one operation on this machine.
struct Checked {
  const catalog::Operation* operation = nullptr;
  GradcheckResult derivative = {}, f32 = {}, bf16 = {};
  std::int64_t entries = 0;  // number of entries in the inputs of the timed test case
  double milliseconds = 0;
};

/// The width in pixels at which the book shows a picture, from its viewBox. Pictures are drawn for
/// reports with several pictures per row. The book shows them larger, up to the width of the page.
int shown_width(const std::string& svg) {
  constexpr std::string_view before = "viewBox=\"0 0 ";
  constexpr double magnified = 1.5;
  const std::size_t at = svg.find(before);
  if (at == svg.npos) return 0;
  double width = 0;
  std::from_chars(svg.data() + at + before.size(), svg.data() + svg.size(), width);
  return width > 0 && width < 1e5 ? static_cast<int>(magnified * width) : 0;
}

std::int64_t entries_of(const catalog::Case& example) {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : example.inputs) sum += std::ssize(tensor.values);
  return sum;
}

/// Stores in `checked` the minimum time of several forward and backward runs of the operation on
/// its largest test case.
void time(const catalog::Operation& operation, Backend& backend, std::uint64_t seed,
          Checked& checked) {
  Rng rng(seed, Purpose::test);
  const std::vector<catalog::Case> cases = catalog::all_cases(operation, rng);
  const auto largest = std::ranges::max_element(cases, {}, entries_of);
  const bool gradients = checked.derivative.entries > 0;
  checked.entries = entries_of(*largest);
  checked.milliseconds = infinite;
  for (int i = 0; i < 7; ++i) {
    const catalog::Call call =
        catalog::prepare(operation, *largest, backend, DType::f32, gradients);
    Tape tape;
    const auto start = std::chrono::steady_clock::now();
    std::vector<catalog::Output> outputs;
    {
      const Recording recording(tape);
      outputs = operation.run(call);
    }
    if (gradients) {
      for (catalog::Output& output : outputs) {
        if (output.value.wants_grad()) output.value.sink().add(output.value.value());
      }
      tape.backward({});
    }
    backend.synchronize();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    checked.milliseconds = std::min(checked.milliseconds, took.count());
  }
}

/// The value with two significant digits, such as 2.0e-11.
std::string power_text(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::scientific, 1).ptr;
  return {digits, end};
}

/// Writes all pages of the book. Collects the titles, source files and search texts that later
/// pages need.
class Book {
 public:
  explicit Book(const BookOptions& options) : options_(options) {}

  BookFacts write() {
    prepare_folder();
    if (options_.checks) check_operations();
    for (const char* part : {"course", "math"}) {
      chapters_[part] = reading_order(part);
      for (std::size_t i = 0; i < chapters_[part].size(); ++i) chapter(part, i);
    }
    mechanism_pages();
    for (const LivePage& one : live_pages()) live_page(one);
    for (const char* folder : {"docs", "docs/guide", "docs/results", "docs/results/studies"}) {
      documents(folder);
    }
    // The listings of source files are written last, because the links of the other pages determine
    // which listings are needed. A listing does not link to further listings.
    for (const std::string& file : sources_) source_page(file);
    contents();
    for (const char* file : {"book.css", "book.js", "math_font.css"}) {
      save(file, read(fs::path("apps/book") / file));
    }
    save("live/longhand.js", read("apps/wasm/longhand.js"));
    save("live/page.js", read("apps/book/live/page.js"));
    save("live/text_model.js", text_model_script(options_.source / "apps/book/live/writer"));
    if (!options_.module.empty()) {
      save("live/longhand.wasm.js", read_text(options_.module, largest_module));
    }
    save("colours.css", std::string(html::page_colours()));
    save("search.js", "const pages = " + Json(std::move(search_)).dump() + ";\n");
    facts_.sources = std::ssize(sources_);
    for (const auto& [chapter, checked] : checked_) facts_.operations += std::ssize(checked);
    save(mark, Json{{"commit", commit}, {"pages", facts_.pages}}.dump(1) + "\n");
    return facts_;
  }

 private:
  std::string read(const fs::path& file) const {
    return read_text(options_.source / file, largest_document);
  }

  void prepare_folder() {
    LONGHAND_CHECK(
        fs::exists(options_.source / "docs/math/README.md"), printable(options_.source.string()),
        ": expected a checkout of longhand, but the file docs/math/README.md is missing");
    const bool free =
        !fs::exists(options_.out) || fs::is_empty(options_.out) || fs::exists(options_.out / mark);
    LONGHAND_CHECK(free, printable(options_.out.string()),
                   ": expected a new folder, an empty folder, or a folder with an earlier book");
    fs::create_directories(options_.out);
  }

  void save(const fs::path& name, std::string_view content) {
    const fs::path file = options_.out / name;
    options_.doing(text("writing ", printable(name.string())));
    fs::create_directories(file.parent_path());
    write_atomically(file, content);
    options_.written(name.string());
  }

  void check_operations() {
    const auto start = std::chrono::steady_clock::now();
    const auto reference = make_reference_backend();
    const auto exact = make_cpu_backend({.math = Math::exact});
    const auto bf16 = make_cpu_backend({.math = Math::bf16});
    std::size_t number = 0;
    for (const catalog::Operation& operation : catalog::operations()) {
      options_.doing(text("checking operation ", ++number, " of ", catalog::operations().size(),
                          ": ", operation.name));
      Checked checked{.operation = &operation};
      checked.derivative = gradcheck(operation, *reference, options_.seed);
      const auto beside = [&](Backend& backend, DType type) {
        const double unit = tolerance::unit(operation, type, backend.options().math);
        return gradcheck_on(operation, backend, type, unit, *reference, options_.seed);
      };
      checked.f32 = beside(*exact, DType::f32);
      checked.bf16 = beside(*bf16, DType::bf16);
      time(operation, *exact, options_.seed, checked);
      checked_[operation.page].push_back(checked);
    }
    facts_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// The chapters of a part of the book, in the order in which the index of docs/PART lists them.
  std::vector<std::string> reading_order(const fs::path& part) {
    std::vector<std::string> order{"README"};
    const MarkdownPage index = markdown_page(read("docs" / part / "README.md"),
                                             [](const std::string& link) { return link; });
    for (const std::string& link : index.links) {
      if (!link.ends_with(".md") || link.find('/') != link.npos) continue;
      const std::string name = link.substr(0, link.size() - 3);
      if (std::ranges::count(order, name) == 0) order.push_back(name);
    }
    return order;
  }

  /// `link` is a link in the document `from` of the repository. Returns the link's target in the
  /// book, relative to the folder of `page`.
  std::string resolve(const std::string& link, const fs::path& from, const fs::path& page) {
    if (link.starts_with("http") || link.starts_with("#")) return link;
    const std::size_t hash = link.find('#');
    const std::string anchor = hash == link.npos ? "" : link.substr(hash);
    fs::path target = (from.parent_path() / link.substr(0, hash)).lexically_normal();
    if (!target.has_filename()) target = target.parent_path();
    const fs::path there = page_of(target);
    if (there.empty()) return link;
    return there.lexically_relative(page.parent_path()).generic_string() + anchor;
  }

  /// Converts a document of the repository to a page of the book, and saves the pictures of the
  /// page.
  MarkdownPage document_page(const fs::path& from, const fs::path& page) {
    const auto picture_of = [&](const std::string& link) {
      return (from.parent_path() / link).lexically_normal();
    };
    const MarkdownPage document = markdown_page(
        read(from), [&](const std::string& link) { return resolve(link, from, page); },
        [&](const std::string& link) {
          const fs::path picture = picture_of(link);
          return picture.extension() == ".svg" ? shown_width(read(picture)) : 0;
        });
    for (const std::string& link : document.links) {
      const fs::path picture = picture_of(link);
      if (picture.extension() == ".svg") save(page_of(picture), read(picture));
    }
    return document;
  }

  /// True for a folder of documents that are chapters of the book.
  static bool is_part(std::string_view folder) {
    return folder == "docs/course" || folder == "docs/math";
  }

  /// The book's page for a file of the repository; empty if the file has no page.
  fs::path page_of(const fs::path& file) {
    const std::string name = file.generic_string();
    if (is_part(name)) return name.substr(5) + "/README.html";
    if (name.starts_with("docs/") && file.extension() == ".md") {
      const std::string inside = name.substr(5, name.size() - 8) + ".html";
      return is_part(file.parent_path().generic_string()) ? inside : "more/" + inside;
    }
    if (file.extension() == ".svg" && name.starts_with("docs/")) return "more/" + name.substr(5);
    if (!fs::is_regular_file(options_.source / file)) return {};
    sources_.insert(name);
    return "source/" + name + ".html";
  }

  struct Place {
    // The title of a page, and the links to the previous and next page, relative to the page.
    std::string title, previous = {}, next = {};
  };

  void page(const fs::path& file, const Place& place, const std::string& content,
            const std::string& searched) {
    const auto depth = std::distance(file.begin(), file.end()) - 1;
    std::string top;
    for (std::ptrdiff_t i = 0; i < depth; ++i) top += "../";
    const auto turn = [](const std::string& link, std::string_view name) {
      return link.empty() ? std::string("<span></span>")
                          : text("<a href=\"", html::escape(link), "\">", name, "</a>");
    };
    const std::string turns = text("<nav class=\"turn\">", turn(place.previous, "← before"),
                                   turn(place.next, "next →"), "</nav>\n");
    const bool turned = !place.previous.empty() || !place.next.empty();
    const std::string title = html::escape(place.title);
    save(file,
         text("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
              title, "</title>\n<link rel=\"stylesheet\" href=\"", top,
              "colours.css\">\n<link rel=\"stylesheet\" href=\"", top,
              "math_font.css\">\n<link rel=\"stylesheet\" href=\"", top,
              "book.css\">\n</head>\n<body data-top=\"", top, "\"",
              options_.module.empty() ? "" : " data-module", ">\n<header><a href=\"", top,
              "index.html\">longhand: the book</a><label>search <input type=\"search\" "
              "id=\"search\" autocomplete=\"off\"></label></header>\n<div id=\"found\" "
              "hidden></div>\n"
              "<main>\n",
              content, turned ? turns : "", "</main>\n<script src=\"", top,
              "book.js\"></script>\n</body></html>\n"));
    ++facts_.pages;
    for (std::size_t at = content.find("<math"); at != content.npos;
         at = content.find("<math", at + 1)) {
      ++facts_.formulas;
    }
    if (searched.empty()) return;
    search_.push_back(
        Json{{"page", file.generic_string()}, {"title", place.title}, {"text", searched}});
  }

  void chapter(const fs::path& part, std::size_t number) {
    const std::vector<std::string>& names = chapters_.at(part.string());
    const std::string& name = names[number];
    const fs::path from = "docs" / part / (name + ".md"), file = part / (name + ".html");
    const MarkdownPage document = document_page(from, file);
    std::string content = document.html;
    const std::size_t heading = content.find("</h1>");
    if (heading != content.npos) {
      content.insert(heading + 5, "\n" + live_links(text(part.string(), '/', name)) +
                                      (part == "math" ? pictures(name) : ""));
    }
    if (part == "math") content += audit_section(name) + side_by_side(document, from, file);
    Place place{.title = document.title};
    if (number > 0) place.previous = names[number - 1] + ".html";
    if (number + 1 < names.size()) place.next = names[number + 1] + ".html";
    titles_[(part / name).generic_string()] = document.title;
    page(file, place, content, document.plain);
  }

  /// A section with this machine's measurements for the operations of a chapter.
  std::string audit_section(const std::string& chapter) const {
    const auto found = checked_.find(chapter);
    if (found == checked_.end()) return {};
    std::vector<std::vector<std::string>> rows;
    std::string commands;
    for (const Checked& checked : found->second) {
      const bool differentiable = checked.derivative.entries > 0;
      rows.push_back(
          {text("<code>", html::escape(checked.operation->name), "</code>"),
           differentiable ? power_text(checked.derivative.worst) : "no gradient",
           differentiable ? std::to_string(checked.derivative.entries) : "",
           html::decimals(checked.f32.bound, 2), html::decimals(checked.bf16.bound, 2),
           text(html::decimals(checked.milliseconds, 3), " ms, ", checked.entries, " numbers")});
      commands += text("longhand op describe ", checked.operation->name, '\n');
      if (differentiable) commands += text("longhand gradcheck ", checked.operation->name, '\n');
      commands +=
          text("longhand gradcheck ", checked.operation->name, " --backend cpu --math bf16\n");
    }
    return text(
        "<h2 id=\"audited-here\">Audited here</h2>\n",
        html::paragraph(text(
            "Made with this book, on ", machine(), ", seed ", options_.seed, ", commit ",
            commit.substr(0, 10),
            ". Derivatives: the largest error against difference quotients in f64, relative to the "
            "largest derivative of the input (allowed: 1e-6). Kernels: the largest part that an "
            "output or gradient takes of what rounding allows it, beside the reference loop "
            "(allowed: "
            "1). Time: forward and backward of the largest case of the tests in f32, the fastest "
            "of "
            "seven, all threads.")),
        html::table({"operation", "derivative off by", "derivatives", "f32 kernel, of its bound",
                     "bf16 kernel", "time"},
                    rows),
        html::paragraph("The same again, with other numbers by --seed:"), html::code(commands));
  }

  /// HTML with the source of the reference loop and of the autograd function of a page's operation,
  /// side by side.
  std::string side_by_side(const MarkdownPage& document, const fs::path& from,
                           const fs::path& file) {
    std::string columns;
    for (const char* folder : {"core/reference/", "autograd/"}) {
      for (const std::string& link : document.links) {
        const fs::path target = (from.parent_path() / link).lexically_normal();
        if (!target.generic_string().starts_with(folder) || target.extension() != ".cpp") continue;
        columns += text("<div><p><a href=\"", html::escape(resolve(link, from, file)), "\">",
                        target.generic_string(), "</a></p>",
                        numbered(read(target), resolve(link, from, file)), "</div>\n");
        break;
      }
    }
    if (columns.empty()) return {};
    return "<h2 id=\"as-code\">As code</h2>\n<div class=\"sources\">\n" + columns + "</div>\n" +
           kernel(document, from, file);
  }

  /// The source of the CPU kernel that computes what the first reference loop of a page computes,
  /// closed until the reader opens it. Empty if no kernel has the loop's name.
  std::string kernel(const MarkdownPage& document, const fs::path& from, const fs::path& file) {
    for (const std::string& link : document.links) {
      const fs::path loop = (from.parent_path() / link).lexically_normal();
      if (!loop.generic_string().starts_with("core/reference/")) continue;
      const std::string name = loop.stem().string(), folder = "core/cpu/";
      for (const std::string& kernel :
           {folder + name + ".op.cpp", folder + name + "/" + name + ".simd.cpp",
            folder + "attention/" + name + "_rows.h", folder + "attention/" + name + ".simd.cpp"}) {
        const std::string page = page_of(kernel).generic_string();
        if (page.empty()) continue;
        const std::string there =
            fs::path(page).lexically_relative(file.parent_path()).generic_string();
        return folded(text("The kernel: ", kernel), numbered(read(kernel), there));
      }
    }
    return {};
  }

  /// Pictures of the mechanisms that a chapter explains. The first is open.
  std::string pictures(const std::string& chapter) const {
    std::string html;
    for (std::size_t i = 0; i < mechanisms_.size(); ++i) {
      const Mechanism& one = mechanisms_[i];
      if (one.chapter != chapter) continue;
      html +=
          folded(text("Picture: ", html::escape(one.title)), steps_picture(one, i), html.empty());
    }
    return html;
  }

  /// HTML of code with numbered lines. The numbers are links to the same lines on page `link`. If
  /// `link` is empty, the numbers are the targets of such links from other pages.
  static std::string numbered(std::string_view code, const std::string& link) {
    std::string html = "<pre class=\"code\">";
    for (std::size_t line = 1; !code.empty(); ++line) {
      const std::size_t end = code.find('\n');
      html += link.empty() ? text("<a id=\"", line, "\" href=\"#", line, "\">", line, "</a>")
                           : text("<a href=\"", html::escape(link), "#", line, "\">", line, "</a>");
      html += html::escape(code.substr(0, end)) + "\n";
      code.remove_prefix(end == code.npos ? code.size() : end + 1);
    }
    return html + "</pre>\n";
  }

  void source_page(const std::string& name) {
    page("source/" + name + ".html", {.title = name},
         text("<h1>", html::escape(name), "</h1>\n", numbered(read(name), "")), {});
  }

  void mechanism_pages() {
    const std::vector<Mechanism>& all = mechanisms_;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Mechanism& one = all[i];
      Place place{.title = std::string(one.title)};
      if (i > 0) place.previous = text(all[i - 1].name, ".html");
      if (i + 1 < all.size()) place.next = text(all[i + 1].name, ".html");
      const std::string content = text(
          "<h1>", html::escape(one.title), "</h1>\n",
          html::paragraph("What each query reads of the tokens before it: twelve tokens, the same "
                          "queries and keys for every mechanism of this book. Choose a query."),
          steps_picture(one, i), "<p>The mathematics: <a href=\"../math/", one.chapter, ".html\">",
          html::escape(titles_[text("math/", one.chapter)]), "</a>. A model with such heads:</p>\n",
          html::code(
              text("longhand train --task flip-flop --heads ", one.heads, ":4 --steps 300")));
      page(text("mechanisms/", one.name, ".html"), place, content, text(one.title, "\n", one.says));
    }
  }

  void documents(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(options_.source / folder)) {
      if (entry.path().extension() == ".md") files.push_back(entry.path().filename());
    }
    std::ranges::sort(files);
    for (const fs::path& name : files) {
      const fs::path from = folder / name, file = page_of(from);
      const MarkdownPage document = document_page(from, file);
      page(file, {.title = document.title}, document.html, document.plain);
      documents_[folder.generic_string()].emplace_back(file.generic_string(), document.title);
    }
  }

  void live_page(const LivePage& one) {
    const std::string from = text("apps/book/live/", one.name);
    std::string content = with_formulas(read(from + ".html"));
    std::vector<std::string_view> scripts{"longhand", "page"};
    if (!options_.module.empty()) scripts.insert(scripts.begin(), "longhand.wasm");
    scripts.insert(scripts.end(), one.scripts.begin(), one.scripts.end());
    scripts.push_back(one.name);
    for (const std::string_view script : scripts) {
      content += text("<script src=\"", script, ".js\"></script>\n");
    }
    save(text("live/", one.name, ".js"), read(from + ".js"));
    page(text("live/", one.name, ".html"), {.title = std::string(one.title)}, content,
         text(one.title, '\n', one.summary));
  }

  /// Links from a chapter, "PART/CHAPTER", to the pages that compute what it explains.
  static std::string live_links(std::string_view chapter) {
    std::string links;
    for (const LivePage& one : live_pages()) {
      if (std::ranges::count(one.chapters, chapter) == 0) continue;
      links += text("<p class=\"try\">Try it: <a href=\"../live/", one.name, ".html\">", one.title,
                    "</a>. ", html::escape(one.summary), "</p>\n");
    }
    return links;
  }

  /// A part of a page that is closed until the reader opens it.
  static std::string folded(std::string_view title, const std::string& content, bool open = false) {
    return text("<details", open ? " open" : "", "><summary>", title, "</summary>\n", content,
                "</details>\n");
  }

  static std::string link_list(const std::vector<std::pair<std::string, std::string>>& links) {
    std::string html = "<ul>\n";
    for (const auto& [link, title] : links) {
      html += text("<li><a href=\"", html::escape(link), "\">", html::escape(title), "</a></li>\n");
    }
    return html + "</ul>\n";
  }

  /// The chapters of a part as an ordered list, each with the operations that it derives.
  std::string chapter_list(const std::string& part) const {
    std::string html = "<ol>\n";
    for (const std::string& name : chapters_.at(part)) {
      const std::string page = text(part, "/", name);
      html += text("<li><a href=\"", page, ".html\">", html::escape(titles_.at(page)), "</a>");
      const auto found = checked_.find(name);
      if (part == "math" && found != checked_.end()) {
        html += "<br><small class=\"subtitle\">";
        for (const Checked& checked : found->second) {
          html += "<code>" + html::escape(checked.operation->name) + "</code> ";
        }
        html += "</small>";
      }
      html += "</li>\n";
    }
    return html + "</ol>\n";
  }

  /// The sections of docs/README.md, the paths through the documents, side by side.
  std::string paths() {
    const fs::path from = "docs/README.md", file = "index.html";
    const MarkdownPage document = markdown_page(
        read(from), [&](const std::string& link) { return resolve(link, from, file); });
    std::string html = "<div class=\"cards paths\">\n";
    std::size_t begin = document.html.find("<h2");
    while (begin != document.html.npos) {
      const std::size_t end = document.html.find("<h2", begin + 1);
      html += text("<section>", document.html.substr(begin, end - begin), "</section>\n");
      begin = end;
    }
    return html + "</div>\n";
  }

  static std::string live_cards() {
    std::string html = "<div class=\"cards\">\n";
    for (const LivePage& one : live_pages()) {
      html += text("<a class=\"card\" href=\"live/", one.name, ".html\"><strong>", one.title,
                   "</strong> ", html::escape(one.summary), "</a>\n");
    }
    return html +
           "<a class=\"card\" href=\"more/exercises.html\"><strong>Exercises</strong> Type a "
           "derivative. The page finds the first point at which it is wrong.</a>\n</div>\n";
  }

  void contents() {
    std::string content =
        "<h1>longhand: the book</h1>\n" +
        html::paragraph(
            "At the end of this book you can compute by hand everything that a transformer does: "
            "each formula, its derivative, the loop that computes it and the kernel that computes "
            "it fast. You know why models fail on texts longer than those they were trained on, "
            "and which kinds of attention do not. Nothing has to be believed: each page shows what "
            "this machine found when it checked the formulas against difference quotients and the "
            "kernels against plain loops.") +
        "<h2>Try it in this browser</h2>\n" + live_cards() + "<h2>Four paths</h2>\n" + paths();
    content +=
        "<h2>A course for students</h2>\n" + chapter_list("course") + "<h2>The mathematics</h2>\n" +
        html::paragraph(
            "A page shows a picture if there is one, the formula, how its derivative follows, "
            "and an example with numbers. A problem, the results of the checks, the loop and "
            "the fast kernel follow.") +
        chapter_list("math");
    std::vector<std::pair<std::string, std::string>> links;
    for (const Mechanism& one : mechanisms_) {
      links.emplace_back(text("mechanisms/", one.name, ".html"), one.title);
    }
    content += "<h2>Further pages</h2>\n" +
               folded("Pictures: what a head sees, one query at a time", link_list(links)) +
               folded("Results: the claims of the papers, and our figures",
                      "<p><a href=\"more/papers.html\">What each paper claims</a></p>\n" +
                          link_list(documents_["docs/results"]) +
                          link_list(documents_["docs/results/studies"])) +
               folded("Guides: how to use the program", link_list(documents_["docs/guide"])) +
               folded("Design: how the program is built", link_list(documents_["docs"]));
    std::vector<std::vector<std::string>> rows;
    for (const catalog::Operation& operation : catalog::operations()) {
      rows.push_back({text("<a href=\"math/", operation.page, ".html\"><code>",
                           html::escape(operation.name), "</code></a>"),
                      html::escape(operation.formula)});
    }
    std::ranges::sort(rows);
    content += folded("Operations: every formula in one table",
                      text("<div class=\"wrap\">",
                           html::table({"operation", "what it computes"}, rows), "</div>"));
    page("index.html", {.title = "longhand: the book"}, content, {});
  }

  BookOptions options_;
  BookFacts facts_;
  std::map<std::string, std::vector<Checked>> checked_;       // key: chapter
  std::map<std::string, std::vector<std::string>> chapters_;  // key: part, "course" or "math"
  std::map<std::string, std::string> titles_;  // key: "PART/CHAPTER"; value: the chapter's title
  const std::vector<Mechanism> mechanisms_ = mechanisms();
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> documents_;
  std::set<std::string> sources_;
  Json::Array search_;
};

}  // namespace

BookFacts write_book(const BookOptions& options) { return Book(options).write(); }

}  // namespace longhand::app::book
