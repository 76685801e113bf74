#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// A page of docs/ converted to HTML.
struct MarkdownPage {
  std::string title;  // first heading, without formatting
  std::string html;
  struct Heading {
    std::string id, text;
    int level = 2;
  };
  std::vector<Heading> headings;
  std::vector<std::string> links;  // as written in the page
  std::string plain;               // text for searching
};

/// `link` maps a link of the page to its target in the book. Formulas become MathML; an Error names
/// one that cannot be converted.
MarkdownPage markdown_page(std::string_view markdown,
                           const std::function<std::string(const std::string&)>& link);

/// The contents of a page's blocks between ```KIND and ```.
std::vector<std::string> blocks_of(std::string_view markdown, std::string_view kind);

}  // namespace longhand::app::book
