#pragma once

#include "core/json.h"
#include "nn/models/decoder.h"
#include "tasks/task.h"

namespace longhand::app {

/// A model's answers, under teacher forcing, to the first samples of an evaluation: [{"prompt":
/// ..., "expected": ..., "text": ...}]. The prompt is the text before the answer. If scored targets
/// are spread over the sample, the prompt is the whole sample.
Json sample_answers(nn::Decoder& model, const tasks::Task& task, std::uint64_t seed);

}  // namespace longhand::app
