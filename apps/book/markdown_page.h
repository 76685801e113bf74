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
  std::vector<std::string> links;  // link targets as written in the page
  std::string plain;               // plain text of the page, for searching
};

/// Converts a page. `link` maps a link of the page to its target in the book. `picture_width`
/// returns the width in pixels at which the picture of a link is shown, or 0 if the width is
/// unknown. Formulas become MathML. If a formula cannot be converted, throws an Error that quotes
/// the formula.
MarkdownPage markdown_page(std::string_view markdown,
                           const std::function<std::string(const std::string&)>& link,
                           const std::function<int(const std::string&)>& picture_width = {});

/// HTML in which $LATEX$ and $$LATEX$$ are replaced by formulas.
std::string with_formulas(std::string_view html);

/// The contents of all blocks of a page between ```KIND and ```.
std::vector<std::string> blocks_of(std::string_view markdown, std::string_view kind);

}  // namespace longhand::app::book
