#pragma once

#include "core/json.h"
#include "nn/models/decoder.h"
#include "tasks/task.h"

namespace longhand::app {

/// What a model answers to the first few samples of an evaluation, all tokens seen as they are:
/// [{"prompt": ..., "expected": ..., "text": ...}]. The prompt is all up to the answer, or the
/// whole sample where answers stand among its tokens.
Json sample_answers(nn::Decoder& model, const tasks::Task& task, std::uint64_t seed);

}  // namespace longhand::app
