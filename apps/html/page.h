#pragma once

#include <string>
#include <string_view>
#include <vector>

/// HTML reports. A report is a single file that works on small screens and in dark mode.
namespace longhand::app::html {

/// Escapes text for use in elements and attribute values.
std::string escape(std::string_view text);
/// The inverse of escape().
std::string unescaped(std::string_view text);

/// A table. The first column contains the names of the rows. Cells are HTML.
std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows);

/// A picture with its caption below.
std::string figure(const std::string& svg, std::string_view caption);
std::string paragraph(std::string_view text);
std::string code(std::string_view text);
/// A link to a file in or below the page's folder.
std::string link(std::string_view text, std::string_view file);

/// The style sheet that defines the colours of pictures, for light and dark mode.
std::string_view page_colours();

class Page {
 public:
  Page(std::string title, std::string subtitle);
  /// Adds a section. `content` is HTML, and the heading is plain text.
  void add(std::string_view heading, std::string content);
  std::string render() const;

 private:
  struct Section {
    std::string heading, content;
  };
  std::string title_, subtitle_;
  std::vector<Section> sections_;
};

}  // namespace longhand::app::html
