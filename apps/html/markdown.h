#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::html {

/// The content of a report as Markdown, for pages in a Git repository.
struct Markdown {
  std::string text;
  std::vector<std::string> pictures;  // SVG files, complete with their colours
  std::vector<std::string> listings;  // texts that are too long to be shown within the page
};

/// These functions return the file name of picture or listing i, counted from 0.
struct MarkdownFiles {
  std::function<std::string(std::size_t)> picture, listing;
};

/// Converts a report to Markdown. `content` is the output of table(), paragraph(), figure(), code()
/// and heat_table(). Elements without an equivalent in Markdown are reduced to their text. A
/// heading over several columns is prefixed to the heading of each column.
Markdown markdown(std::string_view content, const MarkdownFiles& files);

/// Escapes plain text for a paragraph or a cell.
std::string markdown_escape(std::string_view text);

/// Formats a table. The first row is the header.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace longhand::app::html
