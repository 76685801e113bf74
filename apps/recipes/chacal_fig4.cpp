#include "apps/recipes/chacal_boxes.h"
#include "core/error.h"

/// ChaCAL, Figure 4: exact match during training on the advanced version of the boxes task.
namespace longhand::app::chacal_fig4 {
namespace {

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> all;
  const BoxesStudy study = boxes_studies(options).back();
  for (const BoxesModel& model : study.models) {
    for (GridRun& run : boxes_runs(study, model, options)) all.push_back(std::move(run));
  }
  return all;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  const BoxesStudy study = boxes_studies(options).back();
  const GridRun first = runs_of(options).front();
  const auto steps = static_cast<double>(first.last_step());
  for (const BoxesModel& model : study.models) {
    const auto paths = boxes_paths(study, model, options);
    for (int fourth = 1; fourth <= 4; ++fourth) {
      std::vector<double> shares;
      for (const auto& path : paths) {
        for (const Json& line : RunFolder(path).metrics()) {
          const Json* const exact = line.find("test/exact");
          const bool here = exact && line["step"] == steps * fourth / 4;
          if (here) shares.push_back(exact->number());
        }
      }
      if (shares.empty()) continue;  // no run was evaluated at that step
      add_row(result, model.name, text("step ", steps * fourth / 4), shares, {},
              first.evaluate_samples());
    }
  }
  result.sections.emplace_back("Figure 4", boxes_curves(study, options));
  result.sections.emplace_back(
      "What is counted",
      html::paragraph("The share of test samples with a completely right answer. During training "
                      "all earlier tokens are given (teacher forcing), which counts the same "
                      "samples as right as decoding does. The paper prints curves, no numbers."));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/fig4",
     .summary = "exact match on the advanced boxes during training, 2 to 5 layers against ChaCAL",
     .scales = {{Scale::smoke, "the runs of chacal/table2, trained if missing"},
                {Scale::laptop, "the same, at its laptop scale"},
                {Scale::paper, "the same at the paper's size; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = recipes_of_boxes()})};

}  // namespace
}  // namespace longhand::app::chacal_fig4
