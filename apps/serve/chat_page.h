#pragma once

#include <string_view>

namespace longhand::app {

/// The chat page and its script. The build embeds the files chat_page.html and chat_script.js in
/// the program.
extern const std::string_view chat_html, chat_script;

}  // namespace longhand::app
