#include <iostream>

#include "apps/run/run_folder.h"
#include "core/contract/elementwise.h"
#include "core/quote.h"

namespace longhand::app::quantize_command {
namespace {

namespace fs = std::filesystem;

/// The same model without LoRA matrices, which must have been merged into the other matrices.
std::unique_ptr<nn::Decoder> without_adapters(const nn::Decoder& model, const Config& config,
                                              const tasks::Task& task) {
  const nn::Parameters& from = model.parameters();
  auto plain = std::make_unique<nn::Decoder>(from.backend(), config.model(task), 0,
                                             nn::Storage{.initial = false, .deferred = true});
  for (const nn::Parameter& to : plain->parameters().all()) {
    const nn::Parameter& own = *from.find(to.name());
    if (own.blocks()) {
      to.put(own.blocks());
      continue;
    }
    if (!to.var()) to.allocate(own.value().dtype());
    from.backend()(Copy{.x = own.value(), .y = to.value()});
  }
  return plain;
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected one run folder");
  const fs::path from = arguments.plain()[0], to = arguments.word("out");
  const std::string name = arguments.word("type");
  const WeightForm form{.blocks = written_gguf_type(name)};
  if (!form.blocks || form.blocks->block == 1) {
    wrong_usage("--type: expected ", written_block_types(), ", got ", quote(name));
  }
  LONGHAND_CHECK(!fs::exists(to / "config.ini"), to.string(), ": the folder already holds a run");
  LoadOptions options{.weights = {.matrices = DType::f32}};
  if (arguments.given("step")) options.step = arguments.integer("step", 0, longest_training);
  LoadedRun loaded = load_run(from, options);
  loaded.model->merge_adapters();
  put_in_blocks(*loaded.model, form, from.string());
  // Training decodes the blocks unless --weights file is given.
  loaded.config.set("training.weights", "f32");
  loaded.config.set("model.lora", "0");
  const auto model = without_adapters(*loaded.model, loaded.config, *loaded.task);
  const nn::Parameters& parameters = model->parameters();
  std::int64_t matrices = 0;
  std::size_t bytes = 0;
  for (const nn::Parameter& p : parameters.all()) {
    bytes += p.bytes();
    if (p.blocks()) ++matrices;
  }
  RunFolder folder = RunFolder::create(to, loaded.config);
  folder.open(&parameters);
  folder.write_origin("quantized");
  folder.open_logs(0);
  Report report({{"run", "run"},
                 {"type", "type"},
                 {"matrices", "matrices"},
                 {"parameters", "parameters"},
                 {"bytes", "bytes"}});
  report.add({{"run", to.string()},
              {"type", small_name(*form.blocks)},
              {"matrices", matrices},
              {"parameters", parameters.count()},
              {"bytes", static_cast<std::int64_t>(bytes)}});
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "quantize",
     .summary = "writes a new run with matrices rounded to blocks of 4 or 8 bits per number",
     .usage = {"RUN --type TYPE --out NEW [--step N]"},
     .options = join({{"type", "TYPE", text("type of the blocks: ", written_block_types())},
                      {"out", "NEW", "run folder to write"},
                      {"step", "N",
                       "step of the checkpoint; default: the best, or the latest if none is marked "
                       "as best"}},
                     {json_option()}),
     .examples = {"quantize runs/book --type q8_0 --out runs/book-8",
                  "generate runs/book-8 --prompt \"Once upon\""},
     .notes =
         "A block stores 32 numbers (256 in q4_k) as small integers and a factor. The matrices\n"
         "need about a quarter (q8_0) or a seventh (q4_0, q4_k) of the memory of f32.\n"
         "LoRA matrices are merged first. Matrices whose rows are not whole blocks stay f32.\n"
         "To train the new run, `train` decodes the blocks. Only train --from NEW\n"
         "--weights file --lora RANK keeps the blocks, and trains LoRA matrices.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::quantize_command
