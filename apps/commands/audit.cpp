#include "apps/audit.h"

#include <algorithm>
#include <iostream>

#include "apps/compute.h"
#include "apps/report.h"
#include "apps/verify_script.h"
#include "core/atomic_file.h"
#include "core/npy.h"

namespace longhand::app::audit_command {
namespace {

using catalog::HostTensor;
using catalog::Operation;

/// Distance by which an input is moved in both directions for a difference quotient. The quotient
/// has a truncation error of about step^2 = 1e-10 and a rounding error of about 2^-53 / step =
/// 1e-11.
constexpr double step = 1e-5;

HostTensor moved(const HostTensor& x, const HostTensor& direction, double by) {
  HostTensor there = x;
  for (std::size_t i = 0; i < there.values.size(); ++i) {
    there.values[i] += by * direction.values[i];
  }
  return there;
}

/// Writes one test case of an operation: a file of arrays and its entry in audit.json.
class CaseWriter {
 public:
  CaseWriter(const Operation& operation, const catalog::Case& values, Rng rng)
      : operation_(operation), rng_(rng), reference_(make_reference_backend()) {
    file_.values = values;
    file_.type = DType::f64;
  }

  Json write(const std::filesystem::path& folder, const std::string& name) {
    for (const catalog::Argument& input : operation_.inputs) {
      const auto given = file_.values.inputs.find(input.name);
      if (given == file_.values.inputs.end()) continue;
      add(input.name, given->second, input.role == catalog::Role::index);
    }
    for (const NamedTensor& output : run(false)) {
      arrays_.push_back({stored(output.name), output.tensor});
    }
    Json gradients = Json::array(), seeded = Json::array();
    const bool has_gradient =
        std::ranges::any_of(operation_.inputs, &catalog::Argument::differentiable);
    if (has_gradient) {
      for (const std::string& output : differentiable_outputs(operation_)) {
        const Shape shape = find(stored(output)).shape();
        file_.output_gradients[output] = catalog::normals(rng_, shape);
        add("d" + stored(output), file_.output_gradients[output]);
        seeded.push_back(stored(output));
      }
      const std::vector<NamedTensor> all = run(true);
      for (std::size_t i = operation_.outputs.size(); i < all.size(); ++i) {
        arrays_.push_back(all[i]);
        const std::string input = all[i].name.substr(1);
        gradients.push_back(input);
        probe(input, seeded);
      }
    }
    save_numpy(folder / name, arrays_);
    Json outputs = Json::array();
    for (const std::string& output : operation_.outputs) outputs.push_back(stored(output));
    return {{"op", operation_.name},
            {"file", name},
            {"formula", operation_.formula},
            {"attributes", attributes()},
            {"outputs", std::move(outputs)},
            {"seeded", std::move(seeded)},
            {"gradients", std::move(gradients)}};
  }

 private:
  void add(const std::string& name, const HostTensor& host, bool index = false) {
    const std::vector<double>& values = host.values;
    if (index) {
      const std::vector<std::int32_t> whole(values.begin(), values.end());
      arrays_.push_back({name, Tensor::from(*reference_, host.shape, whole)});
    } else {
      arrays_.push_back({name, Tensor::from(*reference_, host.shape, DType::f64, values)});
    }
  }
  /// The name under which the file stores an output. If an input has the same name, for example w,
  /// the output is stored as "w.after".
  std::string stored(const std::string& output) const {
    const bool taken = std::ranges::find(operation_.inputs, output, &catalog::Argument::name) !=
                       operation_.inputs.end();
    return taken ? output + ".after" : output;
  }
  const Tensor& find(const std::string& name) const {
    return std::ranges::find(arrays_, name, &NamedTensor::name)->tensor;
  }
  std::vector<NamedTensor> run(bool gradients) const {
    return audit(operation_, file_, *reference_, DType::f64, gradients);
  }
  /// Moves one input along a random direction by `step` and by -`step`, and stores the outputs at
  /// both points.
  void probe(const std::string& input, const Json& seeded) {
    HostTensor& x = file_.values.inputs[input];
    const HostTensor at = x, direction = catalog::normals(rng_, at.shape);
    add(input + ".direction", direction);
    for (const auto& [side, by] : {std::pair{".plus.", step}, std::pair{".minus.", -step}}) {
      x = moved(at, direction, by);
      for (const NamedTensor& output : run(false)) {
        const std::string name = stored(output.name);
        // `seeded` contains the names of the outputs that have a gradient. Only these are stored.
        if (std::ranges::count(seeded.elements(), Json(name)) == 0) continue;
        arrays_.push_back({name + side + input, output.tensor});
      }
    }
    x = at;
  }
  /// All attributes of the operation as JSON; numeric attributes become numbers.
  Json attributes() const {
    Json all = Json::object();
    for (const catalog::Attribute& attribute : operation_.attributes) {
      const auto given = file_.values.attributes.find(attribute.name);
      const std::string& word =
          given == file_.values.attributes.end() ? attribute.otherwise : given->second;
      const std::optional<Json> number = Json::parse(word);
      all[attribute.name] = number && number->is_number() ? *number : Json(word);
    }
    return all;
  }

  const Operation& operation_;
  Rng rng_;
  std::shared_ptr<Backend> reference_;
  AuditFile file_;
  std::vector<NamedTensor> arrays_;
};

void run(const Arguments& arguments) {
  const std::filesystem::path folder = arguments.word("out");
  std::vector<const Operation*> operations;
  for (const std::string& name : arguments.plain()) {
    try {
      operations.push_back(&catalog::find(name));
    } catch (const Error& error) {
      wrong_usage(error.what());
    }
  }
  if (operations.empty()) {
    for (const Operation& operation : catalog::operations()) operations.push_back(&operation);
  }
  Folder::make(folder);
  const std::uint64_t seed = seed_from(arguments);
  Json cases = Json::array();
  Report report({{"op", "op"}, {"cases", "cases"}, {"gradients", "gradients"}});
  for (const Operation* operation : operations) {
    Rng rng(seed, Purpose::test);
    const std::vector<catalog::Case> all = operation->cases(rng);
    std::int64_t gradients = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      cases.push_back(CaseWriter(*operation, all[i], Rng(seed, Purpose::test, 1))
                          .write(folder, text(operation->name, '-', i + 1, ".npz")));
      gradients += std::ssize(cases[cases.size() - 1]["gradients"].elements());
    }
    report.add({{"op", operation->name}, {"cases", all.size()}, {"gradients", gradients}});
  }
  write_atomically(
      folder / "audit.json",
      Json{{"step", step}, {"seed", seed}, {"cases", std::move(cases)}}.dump(1) + "\n");
  write_atomically(folder / "verify.py", verify_script);
  write_atomically(folder / "formulas.py", verify_formulas);
  report.set("out", folder.string());
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "audit",
     .summary = "writes the inputs, outputs and gradients of ops, and a script that verifies them",
     .usage = {"[OP...] --out DIR"},
     .options = {{"out", "DIR", "output folder"},
                 {"seed", "N", "seed of the random numbers", "1"},
                 json_option()},
     .examples = {"audit --out audit", "audit attention fal chacal --out audit"},
     .notes = "Each test case of an op is written to a .npz file. If no OP is given, all ops\n"
              "are written. All values are f64 and are computed by the reference backend.\n"
              "audit.json lists the files. Each file contains the inputs of the op, its outputs,\n"
              "random output gradients and the resulting input gradients. For an input x and an\n"
              "output y, the gradients are named dx and dy. In addition, each input in turn is\n"
              "moved by a small step along a random direction, and by the same step against it.\n"
              "The file also contains the outputs at these two points.\n"
              "`python3 DIR/verify.py` verifies the files. The script needs NumPy and no part\n"
              "of longhand. It compares every gradient with a difference quotient. It also\n"
              "recomputes the outputs of common ops with the formulas in formulas.py.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::audit_command
