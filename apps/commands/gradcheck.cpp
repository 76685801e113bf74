#include "autograd/gradcheck.h"

#include <chrono>
#include <iostream>

#include "apps/compute.h"
#include "apps/report.h"

namespace longhand::app {
namespace {

constexpr double allowed = 1e-6;

/// The operations the words name; all that have a gradient if there are none.
std::vector<const catalog::Operation*> chosen(const std::vector<std::string>& names) {
  std::vector<const catalog::Operation*> operations;
  for (const std::string& name : names) {
    try {
      operations.push_back(&catalog::find(name));
    } catch (const Error& error) {
      wrong_usage(error.what());
    }
  }
  if (names.empty()) {
    for (const catalog::Operation& operation : catalog::operations()) {
      operations.push_back(&operation);
    }
  }
  return operations;
}

void run(const Arguments& arguments) {
  const auto operations = chosen(arguments.plain());
  const auto backend = backend_from(arguments);
  backend->require_dtype(DType::f64);
  const std::uint64_t seed = seed_from(arguments);

  Report report({{"op", "op"},
                 {"error", "worst relative error", "%.1e"},
                 {"cases", "cases"},
                 {"derivatives", "derivatives"},
                 {"where", "seen at"}});
  const auto start = std::chrono::steady_clock::now();
  int beyond = 0;
  std::string worst_name;
  double worst = -1;
  for (const catalog::Operation* operation : operations) {
    const GradcheckResult result = gradcheck(*operation, *backend, seed);
    const bool constant = result.entries == 0;  // nothing to differentiate: argmax, adam
    if (!constant && !(result.worst <= worst)) {
      worst = result.worst;
      worst_name = operation->name;
    }
    if (!constant && !(result.worst < allowed)) ++beyond;
    report.add({{"op", operation->name},
                {"error", constant ? Json() : Json(result.worst)},
                {"cases", result.cases},
                {"derivatives", result.entries},
                {"where", constant ? "no gradient" : result.where}});
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.set("seed", seed);
  report.set("allowed", allowed);
  report.set("worst", worst < 0 ? Json() : Json(worst));
  report.set("seconds", seconds);
  report.print(std::cout, arguments.json());
  LONGHAND_CHECK(beyond == 0, beyond, " of ", operations.size(), " ops are off by ", allowed,
                 " or more, ", worst_name, " by ", worst);
}

const Register command{
    {.name = "gradcheck",
     .summary = "holds every derivative against difference quotients, in f64",
     .usage = {"[OP...] [--seed N] [--json]"},
     .options = join(compute_options("reference"), {json_option()}),
     .examples = {"gradcheck", "gradcheck matmul layer_norm --seed 7"},
     .notes =
         "Each op runs on small random cases; each entry of each input is moved by h, and\n"
         "(L(x + h) - L(x - h)) / 2h for a random projection L of the outputs is held against\n"
         "the op's own backward. Errors are relative to the input's largest derivative. The\n"
         "exit status is 1 if one reaches 1e-6. Only the reference backend has f64.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app
