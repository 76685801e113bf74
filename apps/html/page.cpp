#include "apps/html/page.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/html/hover.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app::html {
namespace {

constexpr std::string_view colours = R"(
:root { --ground: #fff; --text: #1d2129; --faint: #667; --rule: #d8dbe2; --panel: #f6f7f9;
  --c0: #1f6fb4; --c1: #d1642a; --c2: #2e8b57; --c3: #a0459b; --c4: #8a6d1d; --c5: #555; --hot: 31,111,180; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14171c; --text: #e4e7ec; --faint: #98a0ad; --rule: #343a44; --panel: #1c2027;
    --c0: #6db3f2; --c1: #f2955f; --c2: #66c28e; --c3: #d48fd0; --c4: #d9b75c; --c5: #b5bac4; --hot: 109,179,242; } }
)";

constexpr std::string_view style = R"(
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; background: var(--ground);
  color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .2rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--rule); padding-bottom: .2rem; }
.subtitle, figcaption { color: var(--faint); }
figure { margin: 1rem 0; } figcaption { font-size: .9rem; }
svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .95rem; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
p { overflow-wrap: anywhere; }
a { color: var(--c0); }
.tip { position: absolute; pointer-events: none; padding: .3rem .55rem; border: 1px solid var(--rule); border-radius: 5px;
  background: var(--ground); font-size: .85rem; font-variant-numeric: tabular-nums; box-shadow: 0 2px 8px rgba(0, 0, 0, .2); }
.tip div { display: flex; gap: 1rem; justify-content: space-between; }
pre { background: var(--panel); padding: .8rem; overflow-x: auto; border-radius: 4px; font-size: .85rem; }
@media (max-width: 32rem) {  /* a phone: what shrinks to half its size has larger letters */
  table { font-size: .85rem; } th, td { padding: .3rem .25rem; white-space: normal; }
  .shrinks text { font-size: 17px; }
}
)";

}  // namespace

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string unescaped(std::string_view text) {
  constexpr std::pair<std::string_view, char> entities[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}};
  std::string plain;
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(
        entities, [&](const auto& entity) { return text.starts_with(entity.first); });
    const bool is_entity = found != std::end(entities);
    plain += is_entity ? found->second : text.front();
    text.remove_prefix(is_entity ? found->first.size() : 1);
  }
  return plain;
}

std::string table(const std::vector<std::string>& header,
                  const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : header) html += "<th>" + cell + "</th>";
  html += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + cell + "</td>";
    html += "</tr>";
  }
  return html + "</tbody></table></div>\n";
}

std::string figure(const std::string& svg, std::string_view caption) {
  return "<figure><div class=\"scroll\">" + svg + "</div><figcaption>" + escape(caption) +
         "</figcaption></figure>\n";
}

std::string_view page_colours() { return colours; }

std::string paragraph(std::string_view text) { return "<p>" + escape(text) + "</p>\n"; }

std::string code(std::string_view text) { return "<pre>" + escape(text) + "</pre>\n"; }

std::string link(std::string_view text, std::string_view file) {
  std::string address = "./";
  for (const char c : file) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-_.~/").find(c) != std::string_view::npos;
    if (plain) {
      address += c;
      continue;
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    address += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return "<a href=\"" + address + "\">" + escape(text) + "</a>";
}

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::add(std::string_view heading, std::string content) {
  sections_.push_back({std::string(heading), std::move(content)});
}

std::string Page::render() const {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escape(title_) + "</title>\n<style>" + std::string(colours) + std::string(style) +
      "</style></head>\n<body>\n<h1>" + escape(title_) + "</h1>\n<div class=\"subtitle\">" +
      escape(subtitle_) + "</div>\n";
  for (const Section& section : sections_) {
    html += "<h2>" + escape(section.heading) + "</h2>\n" + section.content;
  }
  if (html.find("data-values=") != std::string::npos) {
    html += text("<script>\n", hover_script, "</script>\n");
  }
  return html + "</body></html>\n";
}

}  // namespace longhand::app::html
