#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// A page of docs/ as HTML.
struct MarkdownPage {
  std::string title;  // the first heading, plain
  std::string html;
  struct Heading {
    std::string id, text;
    int level = 2;
  };
  std::vector<Heading> headings;
  std::vector<std::string> links;  // as the page writes them
  std::string plain;               // what a search looks through
};

/// `link` says where a link of the page leads in the book. Formulas become MathML; an Error names
/// the one that cannot.
MarkdownPage markdown_page(std::string_view markdown,
                           const std::function<std::string(const std::string&)>& link);

/// The texts of a page's blocks of this kind, between ```KIND and ```.
std::vector<std::string> blocks_of(std::string_view markdown, std::string_view kind);

}  // namespace longhand::app::book
