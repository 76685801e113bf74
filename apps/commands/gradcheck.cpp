#include "autograd/gradcheck.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <set>

#include "apps/compute.h"
#include "apps/derivative_check.h"
#include "apps/report.h"
#include "autograd/tolerance.h"
#include "core/quote.h"

namespace longhand::app::gradcheck_command {
namespace {

/// The operations with the given names. If no names are given, all operations that have a gradient.
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

/// Runs the check that the command line requests: it compares gradients with difference quotients,
/// or another backend with the reference backend.
class Checker {
 public:
  explicit Checker(const Arguments& arguments)
      : backend_(compute_from(arguments).make()), seed_(seed_from(arguments)) {
    if (arguments.word("backend") == "reference") return;
    reference_ = make_reference_backend();
    tf32_ = arguments.word("backend") == "cuda";
    activations_ = backend_->options().math == Math::bf16 ? DType::bf16 : DType::f32;
  }

  bool quotients() const { return !reference_; }
  GradcheckResult operator()(const catalog::Operation& operation) const {
    if (quotients()) return gradcheck(operation, *backend_, seed_);
    const double unit = tolerance::unit(operation, activations_, backend_->options().math, tf32_);
    return gradcheck_on(operation, *backend_, activations_, unit, *reference_, seed_);
  }

 private:
  std::shared_ptr<Backend> backend_, reference_;
  std::uint64_t seed_;
  bool tf32_ = false;
  DType activations_ = DType::f64;
};

/// Prints the relative errors of results and gradients on long sequences, and the ratio of each
/// error to its bound.
void print_errors(const Arguments& arguments) {
  if (arguments.word("backend") == "reference")
    wrong_usage("--length: needs --backend cpu or cuda");
  const auto backend = compute_from(arguments).make(), reference = make_reference_backend();
  const DType type = backend->options().math == Math::bf16 ? DType::bf16 : DType::f32;
  std::vector<Json> rows;
  std::set<std::string> names;
  int beyond = 0;
  for (const catalog::Operation* operation : chosen(arguments.plain())) {
    if (!operation->of_length) {
      if (arguments.plain().empty()) continue;
      wrong_usage("--length: the sizes of the test cases of ", operation->name, " are fixed");
    }
    for (const std::string& length : arguments.words("length")) {
      const std::int64_t tokens = parse_integer("--length", length, 1, 4096);
      for (const double gate : {0.0, 0.5, 0.97}) {
        Rng rng(seed_from(arguments), Purpose::test);
        const catalog::Case drawn = operation->of_length(rng, tokens, gate);
        const bool forgets = drawn.inputs.contains("gates") || drawn.inputs.contains("decay");
        if (gate > 0 && !forgets) continue;
        Json row{{"op", operation->name}, {"tokens", tokens}};
        row["gates"] = gate > 0 ? Json(gate) : Json();
        const auto compute = [&](const catalog::Case& values, const tolerance::Results& expected) {
          tolerance::Results got = tolerance::run(*operation, values, *backend, type);
          for (const auto& [name, error] : tolerance::relative_errors(expected, got)) {
            row[name] = error;
            names.insert(name);
          }
          return got;
        };
        const double unit = tolerance::unit(*operation, type, backend->options().math,
                                            arguments.word("backend") == "cuda");
        const double used =
            tolerance::Standard(*operation, {drawn}, *reference).compare(type, unit, compute).used;
        if (!(used <= 1)) ++beyond;
        row["bound"] = used;
        rows.push_back(std::move(row));
      }
    }
  }
  std::vector<Report::Column> columns{{"op", "op"},
                                      {"tokens", "tokens"},
                                      {"gates", "gates", "%.2f"},
                                      {"bound", "share of its bound", "%.3f"}};
  for (const std::string& name : names) columns.push_back({name, name, "%.1e"});
  Report report(columns);
  for (Json& row : rows) report.add(std::move(row));
  report.set("seed", seed_from(arguments));
  report.set("type", std::string(name_of(type)));
  report.print(std::cout, arguments.json());
  LONGHAND_CHECK(beyond == 0, beyond, " sequences exceed their error bounds");
}

/// Compares a derivative given on the command line with difference quotients.
void check_typed(const Arguments& arguments) {
  if (!arguments.plain().empty()) wrong_usage("--expression cannot be combined with names of ops");
  const auto parsed = [&](const char* flag) {
    const std::string& typed_text = arguments.word(flag);
    return as_usage(flag, [&] { return Expression(typed_text); });
  };
  const Expression f = parsed("expression"), typed = parsed("derivative");
  std::string by;
  if (arguments.given("by")) {
    by = arguments.word("by");
  } else if (f.variables().size() == 1) {
    by = *f.variables().begin();
  } else {
    wrong_usage("--by is missing: expected the name of a variable, because the expression has ",
                f.variables().size(), " variables");
  }
  if (!f.variables().contains(by)) {
    wrong_usage("--by: the expression has no variable ", quote(by));
  }
  for (const std::string& name : typed.variables()) {
    if (!f.variables().contains(name)) {
      wrong_usage("--derivative: the expression has no variable ", quote(name));
    }
  }
  const double low = arguments.number("from", -1e6, 1e6);
  const double high = arguments.number("to", -1e6, 1e6);
  if (!(low < high))
    wrong_usage("--to: expected a number above ", low, ", the value of --from, got ", high);
  const DerivativeCheck check = check_derivative(f, by, typed, low, high, seed_from(arguments));

  std::vector<Report::Column> columns;
  for (const auto& [name, value] : check.rows[0].at)
    columns.push_back({"at " + name, name, "%.4f"});
  columns.push_back({"typed", "typed", "%.10g"});
  columns.push_back({"quotient", "difference quotient", "%.10g"});
  columns.push_back({"error", "which may be off by", "%.1e"});
  columns.push_back({"verdict", ""});
  Report report(columns);
  int wrong = 0;
  for (const DerivativeCheck::Row& row : check.rows) {
    Json line{{"typed", row.typed},
              {"quotient", row.quotient.value},
              {"error", row.quotient.error},
              {"verdict", row.right ? "right" : "wrong"}};
    for (const auto& [name, value] : row.at) line["at " + name] = value;
    report.add(std::move(line));
    wrong += row.right ? 0 : 1;
  }
  report.set("expression", f.text());
  report.set("derivative", typed.text());
  report.set("by", by);
  report.set("right", check.right());
  report.set("points_without", check.without);
  if (!check.hint.empty()) report.set("hint", check.hint);
  report.print(std::cout, arguments.json());
  if (!arguments.json() && check.right()) {
    std::cout << "right: d(" << f.text() << ")/d" << by << " = " << typed.text() << '\n';
  }
  LONGHAND_CHECK(check.right(), "the derivative with respect to ", by, " is wrong at ", wrong,
                 " of ", check.rows.size(), " points", check.hint.empty() ? "" : "; ", check.hint);
}

void run(const Arguments& arguments) {
  if (arguments.given("expression")) return check_typed(arguments);
  for (const char* flag : {"derivative", "by"}) {
    if (arguments.given(flag)) wrong_usage("--", flag, ": needs --expression");
  }
  if (arguments.given("length")) return print_errors(arguments);
  const auto operations = chosen(arguments.plain());
  const Checker check(arguments);

  std::vector<Report::Column> columns{{"op", "op"}};
  if (check.quotients()) columns.push_back({"error", "worst relative error", "%.1e"});
  columns.push_back({"bound", "share of its bound", "%.3f"});
  columns.push_back({"cases", "cases"});
  columns.push_back({"derivatives", "derivatives"});
  columns.push_back({"where", "largest share at"});
  Report report(columns);
  const auto start = std::chrono::steady_clock::now();
  int beyond = 0;
  std::string worst_name;
  double worst = -1, largest = -1;
  for (const catalog::Operation* operation : operations) {
    const GradcheckResult result = check(*operation);
    // Operations such as argmax and adam have no gradient.
    const bool constant = result.entries == 0;
    const bool compared = !constant || !check.quotients();
    if (compared) {
      if (!(result.bound <= largest)) {
        largest = result.bound;
        worst_name = operation->name;
      }
      worst = std::max(worst, result.worst);
      if (!result.passed()) ++beyond;
    }
    Json row{{"op", operation->name}};
    if (check.quotients()) row["error"] = compared ? Json(result.worst) : Json();
    row["bound"] = compared ? Json(result.bound) : Json();
    row["cases"] = result.cases;
    row["derivatives"] = result.entries;
    row["where"] = compared ? result.where : "no gradient";
    report.add(row);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.set("seed", seed_from(arguments));
  if (check.quotients()) {
    report.set("allowed", GradcheckResult::allowed_worst);
    report.set("worst", worst < 0 ? Json() : Json(worst));
  }
  report.set("largest_share", largest < 0 ? Json() : Json(largest));
  report.set("seconds", seconds);
  report.print(std::cout, arguments.json());
  LONGHAND_CHECK(beyond == 0, beyond, " of ", operations.size(), " ops exceed their error bounds; ",
                 worst_name, " has the largest error, ", largest, " times its bound");
}

/// Splits a list of names into two lines of about equal length, for the help.
std::string broken_in_two(std::string words) {
  const std::size_t middle = words.find(' ', words.size() / 2);
  if (middle != std::string::npos) words[middle] = '\n';
  return words;
}

const Register command{
    {.name = "gradcheck",
     .summary =
         "checks derivatives by difference quotients, or a backend against the reference backend",
     .usage = {"[OP...] [--backend NAME] [--seed N] [--json]",
               "[OP...] --backend NAME --length N [--length N ...] [--json]",
               "--expression F --derivative D [--by VARIABLE] [--from X] [--to X]"},
     .options = join(
         compute_options("reference"),
         {{"length", "N", "print relative errors on sequences of N tokens; see below", {}, true},
          {"expression", "F", "function of one or more variables, such as x^2*sin(y)"},
          {"derivative", "D", "derivative to check, such as 2*x*sin(y)"},
          {"by", "VARIABLE", "variable of the derivative; default: the only variable"},
          {"from", "X", "smallest value of a variable at the random points", "-3"},
          {"to", "X", "largest value of a variable at the random points", "3"},
          json_option()}),
     .examples = {"gradcheck --expression 'x*sin(x)' --derivative 'sin(x) + x*cos(x)'", "gradcheck",
                  "gradcheck matmul layer_norm --seed 7",
                  "gradcheck attention --backend cpu --math bf16",
                  "gradcheck stick_attention --backend cpu --math bf16 --length 300"},
     .notes = "If no OP is given, all ops are checked.\n"
              "--backend reference: gradients are compared with difference quotients in f64, on\n"
              "small random cases of each op. The differentiated function is a scalar: the sum\n"
              "of all output entries times random factors. Each input entry is moved up and\n"
              "down by h = 1e-3 and by 2h, and the two quotients are extrapolated to step size\n"
              "0. The difference between derivative and quotient must be less than the\n"
              "estimated error of the quotient. It must also be less than 1e-6 times the\n"
              "largest derivative with respect to the same input tensor.\n"
              "--backend cpu or cuda: outputs and gradients are compared with those of the\n"
              "reference backend in f64. For each output and gradient, three kinds of errors\n"
              "have bounds: those of single entries, of norms and of averages. The bounds\n"
              "depend on --math. With --math bf16, the tensors are bf16 too.\n"
              "--length N: prints ||error|| / ||reference|| of each output and gradient, and\n"
              "the largest ratio of an error to its bound. This check needs --backend cpu or\n"
              "cuda, and includes only ops with attention heads. Their inputs are normal random\n"
              "numbers. Ops with forget gates also run with gates of 0.5 and 0.97.\n"
              "--expression F: compares D with central difference quotients at random points.\n"
              "The quotients are extrapolated to step size 0. F and D may contain the functions\n" +
              broken_in_two(Expression::functions()) +
              ".\n"
              "The exit status is 1 if an error exceeds its bound or D is wrong.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::gradcheck_command
