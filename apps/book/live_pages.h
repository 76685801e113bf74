#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace longhand::app::book {

/// A page that computes in the reader's browser. Its text and its script are
/// apps/book/live/NAME.html and NAME.js.
struct LivePage {
  std::string_view name, title;
  std::string_view summary;  // what the reader can do on the page
  /// The chapters that link to the page, as "PART/CHAPTER".
  std::vector<std::string_view> chapters;
  /// Names of further scripts of the page.
  std::vector<std::string_view> scripts = {};
};

std::span<const LivePage> live_pages();

/// A script that defines `textModel`, the model that a run of the task `text` has trained: its
/// member `ini` describes the model to the WebAssembly module, and `parameters` is the run's
/// model.safetensors in base64. The tokens of the run must be bytes.
std::string text_model_script(const std::filesystem::path& run);

}  // namespace longhand::app::book
