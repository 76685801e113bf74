#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/audit.h"
#include "apps/compute.h"
#include "apps/report.h"
#include "apps/terminal.h"
#include "core/npy.h"

namespace longhand::app::op_command {
namespace {

using catalog::Argument;
using catalog::Attribute;
using catalog::Operation;
using catalog::Role;

const Operation& find_operation(const std::string& name) {
  try {
    return catalog::find(name);
  } catch (const Error& error) {
    wrong_usage(error.what());
  }
}

void list(bool json) {
  Report report({{"op", "op"}, {"formula", "formula"}, {"page", "docs/math"}});
  for (const Operation& operation : catalog::operations()) {
    report.add(
        {{"op", operation.name}, {"formula", operation.formula}, {"page", operation.page + ".md"}});
  }
  report.print(std::cout, json);
}

const char* role_name(Role role) {
  switch (role) {
    case Role::activation:
      return "activation";
    case Role::master:
    case Role::weight:
      return "master";
    default:
      return "index";
  }
}

Json describe(const Operation& operation) {
  Json facts{
      {"op", operation.name}, {"formula", operation.formula}, {"page", operation.page + ".md"}};
  facts["inputs"] = Json::array();
  for (const Argument& input : operation.inputs) {
    facts["inputs"].push_back({{"name", input.name},
                               {"shape", input.shape},
                               {"type", role_name(input.role)},
                               {"optional", input.optional},
                               {"differentiable", input.differentiable}});
  }
  facts["attributes"] = Json::array();
  for (const Attribute& attribute : operation.attributes) {
    facts["attributes"].push_back({{"name", attribute.name},
                                   {"default", attribute.otherwise},
                                   {"meaning", attribute.meaning}});
  }
  facts["outputs"] = operation.outputs;
  facts["gradients_read"] = Json::array();
  facts["gradients_written"] = Json::array();
  for (const std::string& output : differentiable_outputs(operation)) {
    facts["gradients_read"].push_back("d" + output);
  }
  for (const Argument& input : operation.inputs) {
    if (input.differentiable) facts["gradients_written"].push_back("d" + input.name);
  }
  return facts;
}

std::string joined(const Json& words) {
  std::string all;
  for (const Json& word : words) all += (all.empty() ? "" : ", ") + word.string();
  return all;
}

void print_description(const Json& facts) {
  const std::size_t terminal = table_columns(STDOUT_FILENO);
  const std::size_t columns = terminal == 0 ? 88 : terminal;
  const auto entry = [&](const std::string& name, const std::string& rest) {
    std::cout << "  " << std::left << std::setw(13) << name << ' ';
    write_wrapped(std::cout, rest, std::max<std::size_t>(name.size(), 13) + 3, 16, columns);
  };
  write_wrapped(std::cout, facts["op"].string() + ": " + facts["formula"].string(), 0, 2, columns);
  std::cout << "\ninputs, tensors of the --in file\n";
  for (const Json& input : facts["inputs"]) {
    entry(input["name"].string(), input["shape"].string() + "; " + input["type"].string() +
                                      (input["optional"].boolean() ? ", optional" : ""));
  }
  if (!facts["attributes"].empty()) std::cout << "\nattributes, --attr NAME=VALUE\n";
  for (const Json& attribute : facts["attributes"]) {
    entry(attribute["name"].string() + "=" + attribute["default"].string(),
          attribute["meaning"].string());
  }
  std::cout << "\noutputs, tensors of the --out file\n  " << joined(facts["outputs"]) << '\n';
  const Json& read = facts["gradients_read"];
  if (read.empty()) {
    std::cout << "\nno gradient\n";
  } else {
    std::cout << "\nwith --grad\n";
    entry("read", joined(read) + (read.size() == 1 && read[0] == "dloss" ? "; default: 1" : ""));
    entry("written", joined(facts["gradients_written"]) + ", for the inputs given");
  }
  std::cout << '\n';
  write_wrapped(
      std::cout,
      "Activations have the type that --dtype selects, by default the type of the first "
      "activation in the file. Inputs of type master are f64 if activations are f64, otherwise "
      "f32. Indices are integers. Tensors of other float types are converted.",
      0, 0, columns);
}

/// Parses attributes of an operation, each of the form NAME=VALUE. VALUE must be a number if the
/// default of the attribute is a number.
std::map<std::string, std::string> attributes(const Operation& operation,
                                              const std::vector<std::string>& words) {
  const auto is_number = [](const std::string& word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  };
  std::map<std::string, std::string> values;
  for (const std::string& word : words) {
    const std::size_t sign = word.find('=');
    if (sign == std::string::npos) wrong_usage("--attr: expected NAME=VALUE, got '", word, "'");
    const std::string name = word.substr(0, sign), value = word.substr(sign + 1);
    const auto known = std::ranges::find(operation.attributes, name, &Attribute::name);
    if (known == operation.attributes.end()) {
      wrong_usage(operation.name, " has no attribute '", name, "'; see `longhand op describe ",
                  operation.name, "`");
    }
    if (is_number(known->otherwise) && !is_number(value)) {
      wrong_usage("--attr ", name, ": expected a number, got '", value, "'");
    }
    if (!values.emplace(name, value).second) wrong_usage("--attr ", name, " is given twice");
  }
  return values;
}

/// The type given with --dtype, if any.
std::optional<DType> wanted_type(const Arguments& arguments) {
  if (!arguments.given("dtype")) return std::nullopt;
  const auto type = dtype_from_name(arguments.word("dtype"));
  if (!type || !is_float(*type)) {
    wrong_usage("--dtype: expected f64, f32 or bf16, got '", arguments.word("dtype"), "'");
  }
  return type;
}

/// The backend given with --backend. The default is the CPU, or the reference backend for f64.
std::shared_ptr<Backend> backend_for(DType type, const Arguments& arguments) {
  if (type != DType::f64 || arguments.word("backend") == "reference") {
    return compute_from(arguments).make();
  }
  if (arguments.given("backend")) {
    wrong_usage("--backend ", arguments.word("backend"),
                ": expected tensors of f32 or bf16, got f64; --dtype f32 converts them, --backend "
                "reference computes in f64");
  }
  return make_reference_backend(compute_from(arguments).options);
}

/// The Euclidean norm of a result. It is printed to show that not all entries are zero.
double norm(const Tensor& tensor) {
  double sum = 0;
  const auto add = [&](const auto& values) {
    for (const auto value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  };
  if (is_float(tensor.dtype())) {
    add(tensor.to_doubles());
  } else {
    add(tensor.to_ints());
  }
  return std::sqrt(sum);
}

void run_operation(const Operation& operation, const Arguments& arguments) {
  const std::string& in = arguments.word("in");
  const std::string& out = array_file_from(arguments, "out");
  auto attribute_values = attributes(operation, arguments.words("attr"));
  const bool gradients = arguments.flag("grad");
  if (gradients && std::ranges::none_of(operation.inputs, &Argument::differentiable)) {
    wrong_usage("--grad: ", operation.name, " has no gradient");
  }
  const std::optional<DType> wanted = wanted_type(arguments);
  AuditFile file = read_audit_file(in, operation);
  file.values.attributes = std::move(attribute_values);
  const DType type = wanted.value_or(file.type);
  const auto backend = backend_for(type, arguments);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<NamedTensor> results = audit(operation, file, *backend, type, gradients);
  backend->synchronize();
  const auto took = std::chrono::steady_clock::now() - start;
  save_arrays(out, results);

  Report report(
      {{"tensor", "tensor"}, {"type", "type"}, {"shape", "shape"}, {"norm", "norm", "%.9g"}});
  report.set("op", operation.name);
  report.set("backend", backend->name());
  report.set("math", arguments.word("math"));
  report.set("type", name_of(type));
  report.set("out", out);
  report.set("seconds", std::chrono::duration<double>(took).count());
  for (const NamedTensor& result : results) {
    report.add({{"tensor", result.name},
                {"type", name_of(result.tensor.dtype())},
                {"shape", text(result.tensor.shape())},
                {"norm", norm(result.tensor)}});
  }
  report.print(std::cout, arguments.json());
}

void run(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.plain();
  if (words.empty()) wrong_usage("expected \"list\", \"describe\" or the name of an op");
  const bool describing = words[0] == "describe";
  if (words.size() != (describing ? 2u : 1u)) wrong_usage("expected one op");
  if (words[0] == "list") {
    list(arguments.json());
  } else if (!describing) {
    run_operation(find_operation(words[0]), arguments);
  } else if (const Json facts = describe(find_operation(words[1])); arguments.json()) {
    std::cout << facts << '\n';
  } else {
    print_description(facts);
  }
}

const Register command{
    {.name = "op",
     .summary = "computes one op, and optionally its gradients, on tensors from a file",
     .usage = {"list [--json]", "describe NAME [--json]",
               "NAME --in FILE --out FILE [--attr NAME=VALUE]... [--grad] [--dtype TYPE] ..."},
     .options =
         join({{"in", "FILE", "input file: .safetensors, .npz, or .npy with only the first input"},
               {"out", "FILE", "output file: .safetensors, .npz, or .npy for a single result"},
               {"attr", "NAME=VALUE", "value of an attribute of the op; can be repeated", {}, true},
               {"grad", "", "also compute the gradients of the inputs"},
               {"dtype", "TYPE",
                "type of activations: f64, f32 or bf16; default: the type in the file"}},
              join(compute_options(), {json_option()})),
     .examples = {"op list", "op describe layer_norm",
                  "op layer_norm --in x.safetensors --attr epsilon=1e-6 --grad --out y.safetensors",
                  "op softmax --in x.npy --out y.npy",
                  "op matmul --in x.npz --out y.npz --backend reference --dtype f64"},
     .notes =
         "The input file contains the inputs under the names that `op describe` prints. The\n"
         "output file contains the outputs.\n"
         "--grad: the input file must also contain the gradient of each differentiable output\n"
         "y under the name \"dy\". The default gradient of an output named loss is 1; other\n"
         "output gradients have no default. The output file then also contains the gradient\n"
         "of each differentiable input x under the name \"dx\".\n"
         "--dtype f64 requires the reference backend, which is then the default backend.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::op_command
