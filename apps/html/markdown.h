#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::html {

/// The content of a report as Markdown, for pages in a repository.
struct Markdown {
  std::string text;
  std::vector<std::string> pictures;  // SVG files, complete with their colours
  std::vector<std::string> listings;  // texts that are too long for the page
};

/// The names by which the text refers to picture or listing i, from 0.
struct MarkdownFiles {
  std::function<std::string(std::size_t)> picture, listing;
};

/// `content` is the output of table(), paragraph(), figure(), code() and heat_table(). Of elements
/// that Markdown lacks, the text is kept. A heading over several columns is prefixed to each of
/// them.
Markdown markdown(std::string_view content, const MarkdownFiles& files);

/// Plain text for a paragraph or a cell.
std::string markdown_escape(std::string_view text);

/// The first row is the header.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace longhand::app::html
