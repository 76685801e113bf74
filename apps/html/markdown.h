#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::html {

/// The content of a report as Markdown, for pages that are read in a repository.
struct Markdown {
  std::string text;
  std::vector<std::string> pictures;  // SVG files, each complete with its colours
  std::vector<std::string> listings;  // texts too long to stand in a page
};

/// Where the text refers to the i-th picture or listing, from 0.
struct MarkdownFiles {
  std::function<std::string(std::size_t)> picture, listing;
};

/// `content` is what table(), paragraph(), figure(), code() and heat_table() make. Of elements that
/// Markdown lacks the text is kept. A heading over several columns is put before each of theirs.
Markdown markdown(std::string_view content, const MarkdownFiles& files);

/// Plain text inside a paragraph or a cell.
std::string markdown_escape(std::string_view text);

/// The first row is the header.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace longhand::app::html
