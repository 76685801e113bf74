#pragma once

#include <filesystem>
#include <memory>

#include "apps/command.h"
#include "apps/run/run_folder.h"
#include "core/gguf_file.h"
#include "nn/models/hugging_face.h"

/// Models in published formats: folders in Hugging Face's format, and GGUF files.
namespace longhand::app {

/// A published model. Its weights have not been read yet.
struct PublishedModel {
  std::filesystem::path path;
  nn::ForeignConfig foreign;
  std::unique_ptr<nn::Weights> weights;
  std::shared_ptr<const GgufFile> gguf;  // null if the model is a folder in Hugging Face's format
};
PublishedModel open_published(const std::filesystem::path& path);

/// The settings of a run of the model. Settings of the model come from its file, and all others
/// from defaults and flags. `arguments` may be null. The task is `text` if the model has a
/// tokenizer, otherwise `tokens`. The tokenizer of a GGUF file is written to `folder`, the folder
/// of the run.
Config config_of(const PublishedModel& published, const std::filesystem::path& folder,
                 const Arguments* arguments);

/// Makes a decoder with the model's weights. Parameters that the published model does not contain,
/// such as those of LoRA, are initialized.
std::unique_ptr<nn::Decoder> read_published(const PublishedModel& published, const Config& config,
                                            Backend& backend, const WeightForm& form = {});

/// Loads a model for prompts, from a run folder or directly from a published model.
LoadedRun load_for_prompts(const std::filesystem::path& path, const LoadOptions& options);

}  // namespace longhand::app
