#pragma once

#include "core/atomic_file.h"
#include "tests/program.h"

namespace longhand {

/// Trains a byte-level model to memorize three answers: "meow" to "cat?", "woof woof" to "dog?" and
/// "moo" to "cow?". The name of the run is `run`. The model can read at most `longest` tokens.
inline void train_on_animals(const Program& program, const std::string& flags, int steps,
                             int longest) {
  std::string records;
  for (const char* record :
       {R"({"prompt": "cat?", "answer": "meow"})", R"({"prompt": "dog?", "answer": "woof woof"})",
        R"({"prompt": "cow?", "answer": "moo"})"}) {
    records += std::string(record) + "\n\n";
  }
  write_atomically(program.folder / "qa.jsonl", records);
  const Program::Outcome trained = program(
      text("train --task text --text qa.jsonl --text-validation qa.jsonl --task.length 32 ",
           "--width 32 --layers 2 --heads softmax:2 --batch 6 --rate 5e-3 --warm_up 10 --longest ",
           longest, " --quiet --out run --steps ", steps, ' ', flags));
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
}

}  // namespace longhand
