#include "apps/book/markdown_page.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <span>

#include "apps/book/example.h"
#include "apps/book/exercise.h"
#include "apps/book/mathml.h"
#include "apps/html/heat_table.h"
#include "apps/html/page.h"
#include "core/error.h"

namespace longhand::app::book {
namespace {

// A formula with more characters than this may be wider than a phone.
constexpr std::size_t long_formula = 14;

/// Makes a formula scroll if it may be wider than a phone, because browsers do not break formulas.
std::string scrolling_formula(std::string_view latex, bool display) {
  const std::string math = mathml(latex, display);
  if (!display && latex.size() <= long_formula) return math;
  return text("<span class=\"", display ? "formula" : "long", "\">", math, "</span>");
}

bool is_blank(std::string_view line) { return line.find_first_not_of(' ') == line.npos; }

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

/// Length of the mark that begins a list item, such as "- " or "12. "; 0 if the line has no mark.
std::size_t item_mark(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ")) return 2;
  std::size_t digits = 0;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits]))) ++digits;
  return digits > 0 && line.substr(digits).starts_with(". ") ? digits + 2 : 0;
}

std::vector<std::string_view> lines_of(std::string_view all) {
  std::vector<std::string_view> lines;
  while (!all.empty()) {
    const std::size_t end = all.find('\n');
    lines.push_back(all.substr(0, end));
    all.remove_prefix(end == all.npos ? all.size() : end + 1);
  }
  return lines;
}

/// The cells of a row of a Markdown table, such as "| a | b |". A bar within code or after a
/// backslash does not separate cells.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false, formula = false;
  line = without_indent(line).substr(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|' && !formula) {
      cell += line[++i];
      continue;
    }
    if (line[i] == '`') code = !code;
    if (line[i] == '$' && !code) formula = !formula;
    if (line[i] == '|' && !code && !formula) {
      cells.push_back(cell);
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  if (!is_blank(cell)) cells.push_back(cell);
  for (std::string& one : cells) {
    const std::string_view inside = without_indent(one);
    one = std::string(inside.substr(0, inside.find_last_not_of(' ') + 1));
  }
  return cells;
}

/// Position of the "](" that closes the bracket opened at `open`. Returns npos if this bracket does
/// not begin a link.
std::size_t closing_bracket(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(i).starts_with("](") ? i : text.npos;
  }
  return text.npos;
}

class Converter {
 public:
  Converter(const std::function<std::string(const std::string&)>& link,
            const std::function<int(const std::string&)>& picture_width)
      : link_(link), picture_width_(picture_width) {}

  MarkdownPage convert(std::string_view markdown) {
    page_.html = blocks(lines_of(markdown), 0);
    return std::move(page_);
  }

 private:
  using Lines = std::vector<std::string_view>;
  static constexpr int deepest = 16;
  static constexpr std::string_view details_mark = "<details><summary>";

  std::string blocks(const Lines& lines, int depth) {
    LONGHAND_CHECK(depth < deepest, "a list is nested too deep");
    std::string html;
    std::size_t i = 0;
    while (i < lines.size()) {
      const std::string_view line = lines[i];
      if (is_blank(line)) {
        ++i;
      } else if (line.starts_with("```")) {
        html += code_block(lines, i);
      } else if (line.starts_with("#")) {
        html += heading(line);
        ++i;
      } else if (line.starts_with("<!--")) {
        while (i < lines.size() && lines[i].find("-->") == line.npos) ++i;
        ++i;
      } else if (line.starts_with(details_mark)) {
        html += details(lines, i, depth);
      } else if (line.starts_with("|")) {
        html += table(lines, i);
      } else if (line.starts_with("> ")) {
        html += quotation(lines, i, depth);
      } else if (item_mark(line) > 0) {
        html += list(lines, i, depth);
      } else {
        html += paragraph(lines, i);
      }
    }
    return html;
  }

  /// Text that is hidden until the reader opens it, between "<details><summary>TITLE</summary>" and
  /// "</details>" on lines of their own.
  std::string details(const Lines& lines, std::size_t& i, int depth) {
    const std::string_view title = lines[i].substr(details_mark.size());
    Lines inside;
    for (++i; i < lines.size() && lines[i] != "</details>"; ++i) inside.push_back(lines[i]);
    LONGHAND_CHECK(i < lines.size(), "expected a line </details> after a line ", details_mark,
                   ", got none");
    ++i;
    return text(details_mark, inline_html(title.substr(0, title.find('<'))), "</summary>\n",
                blocks(inside, depth + 1), "</details>\n");
  }

  static std::string code_block(const Lines& lines, std::size_t& i) {
    const bool example = lines[i] == "```example", exercise = lines[i] == "```exercise";
    std::string code;
    for (++i; i < lines.size() && !lines[i].starts_with("```"); ++i) code += text(lines[i], '\n');
    ++i;
    if (example) return example_html(parse_example(code));
    return exercise ? exercise_html(parse_exercise(code)) : html::code(code);
  }

  std::string heading(std::string_view line) {
    const std::size_t marks = std::min({line.find_first_not_of('#'), line.size(), std::size_t{6}});
    const int level = static_cast<int>(marks);
    const std::string_view words = without_indent(line.substr(marks));
    std::string plain, id;
    for (const char c : words) {
      if (c != '`' && c != '*' && c != '$') plain += c;
    }
    for (const char c : plain) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte)) id += static_cast<char>(std::tolower(byte));
      if (c == ' ' && !id.empty() && id.back() != '-') id += '-';
    }
    if (level == 1 && page_.title.empty()) page_.title = plain;
    page_.plain += plain + "\n";
    if (level > 1) page_.headings.push_back({id, plain, level});
    return text("<h", level, " id=\"", html::escape(id), "\">", inline_html(words), "</h", level,
                ">\n");
  }

  std::string table(const Lines& lines, std::size_t& i) {
    std::vector<std::vector<std::string>> rows, plain;
    for (; i < lines.size() && lines[i].starts_with("|"); ++i) {
      if (rows.size() == 1 && lines[i].find_first_not_of("|-: ") == lines[i].npos) continue;
      std::vector<std::string> cells = cells_of(lines[i]);
      plain.push_back(cells);
      for (std::string& cell : cells) cell = inline_html(cell);
      rows.push_back(std::move(cells));
      page_.plain += "\n";
    }
    const bool named = !plain.front().empty() && !plain.back().empty();
    if (named && plain.back().front() == "guessing") return html::heat_table(heat(plain));
    const std::vector<std::string> header = rows.front();
    rows.erase(rows.begin());
    return html::table(header, rows);
  }

  /// Converts a table of percentages as apps/recipes/matrix.cpp writes it. The last row contains
  /// the percentages that guessing reaches. Columns are named "GROUP: COLUMN". A cell is "NUMBER"
  /// or "NUMBER<br>SMALL TEXT", and its colour shows how far the number exceeds that of guessing.
  static html::HeatTable heat(const std::vector<std::vector<std::string>>& lines) {
    html::HeatTable table;
    for (const std::string& title : std::span(lines.front()).subspan(1)) {
      const std::size_t colon = title.find(": ");
      const std::string group = colon == title.npos ? "" : title.substr(0, colon);
      if (table.groups.empty() || table.groups.back().name != group) {
        table.groups.push_back({group, {}});
      }
      table.groups.back().columns.push_back(colon == title.npos ? title : title.substr(colon + 2));
    }
    const std::vector<std::string>& guessing = lines.back();
    for (const std::vector<std::string>& line : std::span(lines).subspan(1)) {
      html::HeatTable::Row& row = table.rows.emplace_back();
      if (!line.empty()) row.name = line.front();
      for (std::size_t i = 1; i < std::min(line.size(), lines.front().size()); ++i) {
        const std::size_t end = std::min(line[i].find("<br>"), line[i].size());
        html::HeatTable::Cell& cell = row.cells.emplace_back();
        cell.text = line[i].substr(0, end);
        cell.small = line[i].substr(std::min(end + 4, line[i].size()));
        const double guess = i < guessing.size() ? std::strtod(guessing[i].c_str(), nullptr) : 100;
        if (guess < 100)
          cell.share = (std::strtod(cell.text.c_str(), nullptr) - guess) / (100 - guess);
      }
    }
    return table;
  }

  std::string quotation(const Lines& lines, std::size_t& i, int depth) {
    Lines inside;
    for (; i < lines.size() && lines[i].starts_with(">"); ++i) {
      inside.push_back(lines[i].substr(std::min<std::size_t>(2, lines[i].size())));
    }
    return text("<blockquote>\n", blocks(inside, depth + 1), "</blockquote>\n");
  }

  std::string list(const Lines& lines, std::size_t& i, int depth) {
    const auto is_number = [](std::string_view line) {
      return std::isdigit(static_cast<unsigned char>(line.front())) != 0;
    };
    const bool numbered = is_number(lines[i]);
    const auto goes_on_with = [&](std::string_view line) {
      return item_mark(line) > 0 && is_number(line) == numbered;
    };
    std::string items;
    while (i < lines.size() && goes_on_with(lines[i])) {
      const std::size_t indent = item_mark(lines[i]);
      Lines inside{lines[i].substr(indent)};
      for (++i; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        if (is_blank(line)) {
          const bool goes_on = i + 1 < lines.size() && lines[i + 1].starts_with("  ");
          if (!goes_on) break;
          inside.push_back("");
          continue;
        }
        if (!line.starts_with(" ")) {
          if (item_mark(line) > 0 || is_blank(lines[i - 1]) || line.starts_with("#")) break;
          inside.push_back(line);  // a continuation line without indentation
          continue;
        }
        inside.push_back(line.substr(std::min(line.find_first_not_of(' '), indent)));
      }
      const bool simple =
          std::ranges::none_of(inside, is_blank) &&
          std::none_of(inside.begin() + 1, inside.end(), [](std::string_view line) {
            return item_mark(line) > 0 || line.starts_with("|") || line.starts_with("```");
          });
      items +=
          "<li>" + (simple ? inline_html(joined(inside)) : blocks(inside, depth + 1)) + "</li>\n";
      page_.plain += "\n";
      while (i < lines.size() && is_blank(lines[i]) && i + 1 < lines.size() &&
             goes_on_with(lines[i + 1])) {
        ++i;
      }
    }
    return numbered ? "<ol>\n" + items + "</ol>\n" : "<ul>\n" + items + "</ul>\n";
  }

  std::string paragraph(const Lines& lines, std::size_t& i) {
    Lines inside;
    // True within a formula between double dollars. A line of a formula that begins with "- " or
    // "|" does not begin a list or a table.
    bool formula = false;
    for (; i < lines.size() && !is_blank(lines[i]); ++i) {
      const std::string_view line = lines[i];
      const bool begins_block = line.starts_with("```") || line.starts_with("#") ||
                                line.starts_with("|") || line.starts_with("- ") ||
                                line.starts_with("<!--");
      if (!inside.empty() && !formula && begins_block) break;
      inside.push_back(line);
      for (std::size_t at = line.find("$$"); at != line.npos; at = line.find("$$", at + 2)) {
        formula = !formula;
      }
    }
    page_.plain += "\n";
    return "<p>" + inline_html(joined(inside)) + "</p>\n";
  }

  static std::string joined(const Lines& lines) {
    std::string all;
    for (const std::string_view line : lines) {
      if (!all.empty()) all += '\n';
      all += line;
    }
    return all;
  }

  /// Returns the text between `mark` at the beginning of `rest` and the next `mark`. Returns an
  /// empty text if `rest` does not begin with `mark` or contains no second one.
  static std::string_view between(std::string_view rest, std::string_view mark) {
    if (!rest.starts_with(mark)) return {};
    const std::size_t end = rest.find(mark, mark.size());
    return end == rest.npos ? std::string_view() : rest.substr(mark.size(), end - mark.size());
  }

  // The functions take_... each convert one kind of element: formula, code or link. If `rest`
  // begins with such an element, they remove it from `rest`, add its HTML and return true.

  static bool take_formula(std::string_view& rest, std::string& html) {
    const std::string_view mark = rest.starts_with("$$") ? "$$" : "$";
    const std::string_view inside = between(rest, mark);
    if (inside.empty()) return false;
    html += scrolling_formula(inside, mark == "$$");
    rest.remove_prefix(inside.size() + 2 * mark.size());
    return true;
  }

  bool take_code(std::string_view& rest, std::string& html) {
    const std::string_view inside = between(rest, "`");
    if (inside.empty()) return false;
    html += "<code>" + html::escape(inside) + "</code>";
    page_.plain += inside;
    rest.remove_prefix(inside.size() + 2);
    return true;
  }

  bool take_link(std::string_view& rest, std::string& html, int depth) {
    const bool picture = rest.starts_with("![");
    if (!picture && !rest.starts_with("[")) return false;
    const std::size_t middle = closing_bracket(rest, picture ? 1 : 0);
    const std::size_t end = middle == rest.npos ? middle : rest.find(')', middle);
    if (end == rest.npos || rest.find('\n', middle) <= end) return false;
    const std::string target(rest.substr(middle + 2, end - middle - 2));
    page_.links.push_back(target);
    const std::string place = html::escape(link_(target));
    if (picture) {
      const int width = picture_width_ ? picture_width_(target) : 0;
      html += text("<img alt=\"", html::escape(rest.substr(2, middle - 2)), "\"",
                   width > 0 ? text(" width=\"", width, "\"") : "", " src=\"", place, "\">");
    } else {
      html += text("<a href=\"", place, "\">", inline_html(rest.substr(1, middle - 1), depth + 1),
                   "</a>");
    }
    rest.remove_prefix(end + 1);
    return true;
  }

  /// Converts text with formulas, code, links and emphasis.
  std::string inline_html(std::string_view rest, int depth = 0) {
    LONGHAND_CHECK(depth < deepest, "a link is nested too deep");
    std::string html;
    bool bold = false, slanted = false;
    while (!rest.empty()) {
      if (take_formula(rest, html) || take_code(rest, html) || take_link(rest, html, depth)) {
        continue;
      }
      if (rest.starts_with("**")) {
        html += bold ? "</strong>" : "<strong>";
        bold = !bold;
        rest.remove_prefix(2);
        continue;
      }
      if (rest.starts_with("*") && (slanted || (rest.size() > 1 && rest[1] != ' '))) {
        html += slanted ? "</em>" : "<em>";
        slanted = !slanted;
        rest.remove_prefix(1);
        continue;
      }
      if (rest.starts_with("<br>")) {
        html += "<br>";
        rest.remove_prefix(4);
        continue;
      }
      if (rest.front() == '\\' && rest.size() > 1 &&
          std::ispunct(static_cast<unsigned char>(rest[1]))) {
        rest.remove_prefix(1);
      }
      const std::size_t length = std::min(rest.find_first_of("$`[!*\\<", 1), rest.size());
      const std::string words = html::unescaped(rest.substr(0, length));
      html += html::escape(words);
      page_.plain += words;
      rest.remove_prefix(length);
    }
    if (slanted) html += "</em>";
    if (bold) html += "</strong>";
    return html;
  }

  const std::function<std::string(const std::string&)>& link_;
  const std::function<int(const std::string&)>& picture_width_;
  MarkdownPage page_;
};

}  // namespace

MarkdownPage markdown_page(std::string_view markdown,
                           const std::function<std::string(const std::string&)>& link,
                           const std::function<int(const std::string&)>& picture_width) {
  return Converter(link, picture_width).convert(markdown);
}

std::string with_formulas(std::string_view html) {
  std::string result;
  while (true) {
    const std::size_t begin = html.find('$');
    result += html.substr(0, begin);
    if (begin == html.npos) return result;
    const std::string_view mark = html.substr(begin, 2) == "$$" ? "$$" : "$";
    const std::size_t first = begin + mark.size(), end = html.find(mark, first);
    LONGHAND_CHECK(end != html.npos, "expected ", mark, " at the end of a formula");
    result += scrolling_formula(html.substr(first, end - first), mark.size() == 2);
    html.remove_prefix(end + mark.size());
  }
}

std::vector<std::string> blocks_of(std::string_view markdown, std::string_view kind) {
  std::vector<std::string> blocks;
  bool inside = false, wanted = false;
  for (const std::string_view line : lines_of(markdown)) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line.substr(3) == kind;
      if (wanted) blocks.emplace_back();
    } else if (wanted) {
      blocks.back() += text(line, '\n');
    }
  }
  return blocks;
}

}  // namespace longhand::app::book
