#pragma once

#include "core/json.h"
#include "nn/models/decoder.h"
#include "tasks/task.h"

namespace longhand::app {

/// A model's answers to the first samples of an evaluation under teacher forcing: [{"prompt": ...,
/// "expected": ..., "text": ...}]. The prompt is the text before the answer, or the whole sample if
/// scored targets are spread over its tokens.
Json sample_answers(nn::Decoder& model, const tasks::Task& task, std::uint64_t seed);

}  // namespace longhand::app
