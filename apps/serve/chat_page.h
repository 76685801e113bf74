#pragma once

#include <string_view>

namespace longhand::app {

/// The page for chats, which the program contains: chat_page.html and chat_script.js.
extern const std::string_view chat_html, chat_script;

}  // namespace longhand::app
