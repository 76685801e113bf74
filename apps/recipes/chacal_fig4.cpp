#include "apps/recipes/chacal_boxes.h"
#include "core/error.h"
#include "tasks/tally.h"

/// ChaCAL, Figure 4: exact match during training on the advanced boxes.
namespace longhand::app {
namespace {

/// The run of chacal/table2 beside this recipe's folder when it is finished and of the same
/// configuration; else this recipe's own.
std::filesystem::path folder_of(const BoxesStudy& study, const BoxesModel& model, int run,
                                const RecipeOptions& options) {
  const Config config = boxes_config(study, model, run, options);
  const auto table =
      boxes_folder(study, model, run,
                   options.out.parent_path() / text("chacal-table2-", name_of(options.scale)));
  if (std::filesystem::exists(table / "config.ini")) {
    const RunFolder folder(table);
    const nn::CheckpointStore store(folder.checkpoints(), 1);
    const auto steps = config.integer("training.steps", 0, std::int64_t{1} << 40);
    if (folder.config().ini() == config.ini() && store.latest() == steps) return table;
  }
  return boxes_folder(study, model, run, options.out);
}

RecipeResult run(const RecipeOptions& options) {
  RecipeResult result;
  const BoxesStudy study = boxes_studies(options.scale).back();  // the advanced one
  for (const BoxesModel& model : study.models) {
    for (int r = 0; r < study.runs; ++r) {
      const auto path = folder_of(study, model, r, options);
      result.stopped = !train_boxes(path, boxes_config(study, model, r, options), options);
      if (result.stopped) return result;
    }
    // The means of the runs at every fourth of the training.
    const auto steps =
        boxes_config(study, model, 0, options).integer("training.steps", 0, std::int64_t{1} << 40);
    for (int fourth = 1; fourth <= 4; ++fourth) {
      double sum = 0;
      std::int64_t count = 0, samples = 0;
      for (int r = 0; r < study.runs; ++r) {
        const RunFolder folder(folder_of(study, model, r, options));
        for (const Json& line : folder.metrics()) {
          if (!line.contains("test/exact") || line.at("step") != steps * fourth / 4) continue;
          sum += line.at("test/exact").get<double>();
          ++count;
          samples += folder.config().integer("training.evaluate_samples", 1, 1 << 24);
        }
      }
      if (count == 0) continue;  // no evaluation at that step
      const double mean = sum / static_cast<double>(count);
      const auto n = static_cast<double>(samples);
      const auto interval = tasks::wilson(mean * n, n);
      result.rows.push_back({.row = model.name,
                             .column = text("step ", steps * fourth / 4),
                             .value = mean,
                             .low = interval.low,
                             .high = interval.high});
    }
  }
  result.sections.emplace_back("Figure 4", boxes_curves(study, [&](const BoxesModel& model, int r) {
                                 return folder_of(study, model, r, options);
                               }));
  result.sections.emplace_back(
      "What is counted",
      html::paragraph("The share of test samples whose answer is right with its end; during "
                      "training all tokens before are given, which is right for the same samples "
                      "as decoding is. The paper prints curves, no numbers."));
  return result;
}

const RegisterRecipe recipe{
    {.id = "chacal/fig4",
     .summary = "exact match on the advanced boxes during training, 2 to 5 layers against ChaCAL",
     .scales = {{Scale::smoke, "the runs of chacal/table2, trained if they are not there"},
                {Scale::laptop, "the same, at its laptop scale"},
                {Scale::paper, "the same at the paper's size; for a GPU"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app
