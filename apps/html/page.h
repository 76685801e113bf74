#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Reports: one HTML file that needs nothing else, readable on a phone and in the dark.
namespace longhand::app::html {

/// Text made safe inside elements and attribute values.
std::string escape(std::string_view text);
/// What escape() makes as it was; other text stays.
std::string unescaped(std::string_view text);

/// A table; the first column is a row's name. Cells are HTML already.
std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows);

/// A picture with its caption below.
std::string figure(const std::string& svg, std::string_view caption);
std::string paragraph(std::string_view text);
std::string code(std::string_view text);
/// A link to a file below the page's folder.
std::string link(std::string_view text, std::string_view file);

/// The colours that pictures name, as a style sheet; they follow the reader's light or dark
/// setting.
std::string_view page_colours();

class Page {
 public:
  Page(std::string title, std::string subtitle);
  /// Content is HTML; the heading is plain text.
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
