#include "apps/html/markdown.h"

#include <algorithm>
#include <charconv>

#include "apps/html/page.h"
#include "core/error.h"

namespace longhand::app::html {
namespace {

constexpr std::ptrdiff_t longest_listing = 40;  // maximum lines of a listing within a page
constexpr std::size_t most_columns = 1000;

/// The name of an HTML element: "table" for "table class=...", "/table" for an end tag.
std::string_view name_of(std::string_view tag) { return tag.substr(0, tag.find_first_of(" \n")); }

std::size_t columns_spanned(std::string_view tag) {
  constexpr std::string_view key = "colspan=\"";
  const std::size_t at = tag.find(key);
  std::size_t count = 1;
  if (at != std::string_view::npos) {
    const char* const digits = tag.data() + at + key.size();
    std::from_chars(digits, tag.data() + tag.size(), count);
  }
  return std::clamp<std::size_t>(count, 1, most_columns);
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \n") - begin + 1));
}

/// Turns an inline picture into a complete SVG file that includes the page's colours.
std::string picture_file(std::string_view svg) {
  const std::size_t inside = svg.find('>') + 1;
  return text(svg.substr(0, inside), "<style>", page_colours(), "</style>", svg.substr(inside));
}

class Converter {
 public:
  explicit Converter(const MarkdownFiles& files) : files_(files) {}

  Markdown convert(std::string_view rest) {
    while (!rest.empty()) {
      const std::size_t open = rest.find('<');
      words_ += unescaped(rest.substr(0, open));
      if (open == std::string_view::npos) break;
      rest.remove_prefix(open);
      const std::size_t close = rest.find('>');
      LONGHAND_CHECK(close != std::string_view::npos, "report: a tag has no closing '>'");
      const std::string_view tag = rest.substr(1, close - 1);
      if (name_of(tag) == "svg") {
        constexpr std::string_view end = "</svg>";
        const std::size_t length = rest.find(end);
        LONGHAND_CHECK(length != std::string_view::npos, "report: a picture has no closing </svg>");
        picture(rest.substr(0, length + end.size()));
        rest.remove_prefix(length + end.size());
        continue;
      }
      rest.remove_prefix(close + 1);
      element(tag);
    }
    paragraph();
    return std::move(result_);
  }

 private:
  void element(std::string_view tag) {
    const std::string_view name = name_of(tag);
    if (name == "th" || name == "td") {
      span_ = columns_spanned(tag);
      words_.clear();
      cell_.clear();
      in_cell_ = true;
    } else if (name == "/th" || name == "/td") {
      take_words();
      LONGHAND_CHECK(!rows_.empty(), "report: a table cell is outside of a row");
      LONGHAND_CHECK(rows_.back().size() + span_ <= most_columns,
                     "report: expected a table of at most ", most_columns, " columns, got more");
      rows_.back().insert(rows_.back().end(), span_, trimmed(cell_));
      in_cell_ = false;
    } else if (name == "tr") {
      rows_.emplace_back();
    } else if (name == "/thead") {
      join_headers();
    } else if (name == "table") {
      paragraph();
      rows_.clear();
    } else if (name == "/table") {
      words_.clear();
      result_.text += markdown_table(rows_) + "\n";
    } else if (name == "b" || name == "/b") {
      take_words();
      (in_cell_ ? cell_ : line_) += "**";
    } else if (name == "br") {
      take_words();
      (in_cell_ ? cell_ : line_) += "<br>";
    } else if (name == "/pre") {
      listing();
    } else if (name == "span" || name == "/span" || name == "small" || name == "/small") {
      take_words();
    } else if (!in_cell_) {
      paragraph();
    }
  }

  /// Merges two header rows, because a Markdown table has only one.
  void join_headers() {
    while (rows_.size() > 1) {
      std::vector<std::string>& below = rows_[1];
      for (std::size_t i = 0; i < std::min(rows_[0].size(), below.size()); ++i) {
        if (!rows_[0][i].empty())
          below[i] = rows_[0][i] + (below[i].empty() ? "" : ": ") + below[i];
      }
      rows_.erase(rows_.begin());
    }
  }

  void take_words() {
    (in_cell_ ? cell_ : line_) += markdown_escape(words_);
    words_.clear();
  }

  void paragraph() {
    take_words();
    const std::string whole = trimmed(line_);
    line_.clear();
    if (!whole.empty()) result_.text += whole + "\n\n";
  }

  void picture(std::string_view svg) {
    paragraph();
    result_.text += "![](" + files_.picture(result_.pictures.size()) + ")\n\n";
    result_.pictures.push_back(picture_file(svg));
  }

  void listing() {
    std::string lines = std::move(words_);
    words_.clear();
    if (std::ranges::count(lines, '\n') > longest_listing) {
      const std::string file = files_.listing(result_.listings.size());
      result_.text += "[" + file + "](" + file + ")\n\n";
      result_.listings.push_back(std::move(lines));
      return;
    }
    if (!lines.ends_with('\n')) lines += '\n';
    result_.text += "```\n" + lines + "```\n\n";
  }

  const MarkdownFiles& files_;
  Markdown result_;
  std::string words_;  // plain text since the last tag
  std::string line_, cell_;
  bool in_cell_ = false;
  std::size_t span_ = 1;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

Markdown markdown(std::string_view content, const MarkdownFiles& files) {
  return Converter(files).convert(content);
}

std::string markdown_escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<' || c == '&') {
      safe += c == '<' ? "&lt;" : "&amp;";
      continue;
    }
    if (std::string_view("\\*_`|[]#").find(c) != std::string_view::npos) safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return safe;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::string table;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    table += '|';
    for (const std::string& cell : rows[r]) table += " " + cell + " |";
    table += '\n';
    if (r > 0) continue;
    table += '|';
    for (std::size_t i = 0; i < rows[0].size(); ++i) table += "---|";
    table += '\n';
  }
  return table;
}

}  // namespace longhand::app::html
