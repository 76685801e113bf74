#include <cstring>
#include <sstream>

#include "apps/command.h"
#include "apps/terminal.h"
#include "autograd/catalog/catalog.h"
#include "core/tensor_file.h"
#include "tests/program.h"
#include "tests/refusal.h"

namespace program_test {

using namespace longhand;
namespace fs = std::filesystem;

struct Door : Program {
  struct Values {
    std::string name;
    Shape shape;
    std::vector<float> values;
  };
  void write(const std::string& name, const std::vector<Values>& tensors) const {
    std::vector<SafetensorsItem> items;
    for (const Values& t : tensors) {
      items.push_back({t.name, DType::f32, t.shape, [&t](const SafetensorsItem::Give& give) {
                         give(std::as_bytes(std::span(t.values)));
                       }});
    }
    write_safetensors(path(name), items);
  }
  std::vector<float> read(const std::string& name, const std::string& tensor) const {
    const SafetensorsFile file = SafetensorsFile::open(path(name));
    const SafetensorsEntry& entry = file.at(tensor);
    BOOST_REQUIRE(entry.dtype == DType::f32);
    std::vector<float> values(entry.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
    return values;
  }
};

void equal(const std::vector<float>& got, const std::vector<float>& expected) {
  BOOST_TEST(got == expected, boost::test_tools::per_element());
}

std::vector<std::string> command_names(const Program& program) {
  std::vector<std::string> names;
  std::istringstream lines(program("help").out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

}  // namespace program_test

BOOST_FIXTURE_TEST_SUITE(program_test, Door)

BOOST_AUTO_TEST_CASE(every_command_has_help_with_an_example) {
  const std::vector<std::string> names = command_names(*this);
  BOOST_TEST(names.size() >= 3);
  for (const std::string& name : names) {
    const Outcome outcome = (*this)(name + " --help");
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(outcome.status == 0);
      BOOST_TEST(outcome.err == "");
      const std::size_t examples = outcome.out.find("\nexample");
      BOOST_REQUIRE(examples != std::string::npos);
      BOOST_TEST(outcome.out.find("  longhand " + name, examples) != std::string::npos);
      BOOST_TEST((*this)("help " + name).out == outcome.out);
    }
    refuses(2, name + " --no-such-flag", "--no-such-flag");
  }
}

BOOST_AUTO_TEST_CASE(help_shows_common_options_those_of_a_task_or_all) {
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::string often = (*this)("train --help").out, all = (*this)("train --help all").out;
  BOOST_TEST(lines(often) <= 56);
  BOOST_TEST(often.find("--rate X") != std::string::npos);
  BOOST_TEST(often.find("--epsilon") == std::string::npos);
  BOOST_TEST(often.find("--task.hint") == std::string::npos);
  BOOST_TEST(all.find("--epsilon X") != std::string::npos);
  BOOST_TEST(all.find("--task.hint X") != std::string::npos);
  BOOST_TEST(all.find("--task.group X") != std::string::npos);
  const std::string sorting = (*this)("train --task sorting --help").out;
  BOOST_TEST(sorting.find("helper tasks: none, successor") != std::string::npos);
  BOOST_TEST(sorting.find("--task.group") == std::string::npos);
  // The help shows flags, such as --steps, and not the names in config.ini, such as training.steps.
  for (const char* section : {"training.", "model.", "compute."}) {
    BOOST_TEST(all.find(section) == std::string::npos, section);
  }
  for (const std::string& text : {often, all, sorting}) {
    std::istringstream each(text.substr(0, text.find("\nexamples")));
    for (std::string line; std::getline(each, line);) BOOST_TEST(line.size() <= 84u, line);
  }
}

BOOST_AUTO_TEST_CASE(names_that_other_programs_use_are_accepted) {
  const Outcome trained = (*this)(
      "train --task reversal --layers 1 --heads softmax:2 --width 8 --lr 2e-3 --batch-size=2 "
      "--warmup_steps 3 --weight-decay 0.5 --steps 2 --evaluate-samples 2 --quiet --output run");
  BOOST_REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const std::string ini = contents(path("run/config.ini"));
  for (const char* setting : {"rate = 2e-3\n", "batch = 2\n", "warm_up = 3\n", "decay = 0.5\n"}) {
    BOOST_TEST(contains(ini, setting));
  }
  const std::string likeliest = (*this)("generate run --prompt abc=").out;
  BOOST_TEST((*this)("generate run --prompt abc= --temp 0 --max-new-tokens 32").out == likeliest);
  refuses(2, "train --lr 1 --rate 2", "--rate: expected one value, got 2");
  refuses(2, "train --task words --lr much", "--rate: ");
  refuses(2, "train --task words --heads 4", "; for 4 softmax heads, write softmax:4");
  refuses(2, "info --lr 1", "there is no option --lr");
  BOOST_TEST(contains((*this)("train --help all").out, "same as --rate"));
  BOOST_TEST(contains((*this)("man train").out, "same as \\-\\-rate"));

  // No alias has the name of an option of the same command. Each alias refers to an existing
  // option.
  std::map<std::string, int> meanings;
  for (const auto& entry : app::commands()) {
    const auto& name = entry.first;
    const auto& command = entry.second;
    const auto has = [&](const std::string& wanted) {
      return std::ranges::any_of(command.options, [&](const app::CliFlag& option) {
        return app::shown_flag(option.name) == app::shown_flag(wanted);
      });
    };
    for (const auto& [alias, option] : command.aliases()) {
      BOOST_TEST((!has(alias) && has(option)), name << " --" << alias);
      ++meanings[alias];
    }
  }
  BOOST_TEST(meanings.size() == 14u);
}

BOOST_AUTO_TEST_CASE(tables_fit_the_width_of_the_terminal) {
  const auto widest = [](const std::string& table) {
    std::size_t width = 0;
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) width = std::max(width, line.size());
    return width;
  };
  BOOST_TEST(widest((*this)("op list").out) > 120u);  // output to a file has no maximum width
  for (const std::size_t columns : {60u, 80u, 100u, 120u}) {
    const std::string width = text("COLUMNS=", columns);
    const Outcome list = (*this)("op list", width);
    BOOST_TEST(list.status == 0);
    BOOST_TEST(widest(list.out) <= columns);
    BOOST_TEST(widest((*this)("op describe attention", width).out) <= columns);
    BOOST_TEST(widest((*this)("help", width).out) <= columns);
    for (const auto& entry : app::commands()) {
      // Usage and examples are not wrapped, because they can be copied to a shell.
      const std::string help = (*this)(entry.first + " --help", width).out;
      const std::size_t options = help.find("\noptions\n");
      BOOST_TEST(widest(help.substr(options, help.find("\nexample") - options)) <= columns,
                 entry.first);
    }
    for (const auto& operation : catalog::operations()) {
      BOOST_TEST(contains(list.out, operation.name + " "));
    }
  }
  // A word that is longer than a line is divided, after a comma if possible.
  std::ostringstream divided;
  app::write_wrapped(divided, "x = aa,bbb,cccccccccccc d", 0, 2, 8);
  BOOST_TEST(divided.str() == "x =\n  aa,\n  bbb,\n  cccccc\n  cccccc\n  d\n");
  // The lines before the first step fit the terminal. Lines of steps are short only on a terminal.
  const std::string begun =
      (*this)(
          "train --task reversal --layers 1 --heads softmax:2 --width 8 --steps 1 --batch 2 "
          "--evaluate-samples 2 --threads 1 --out run",
          "COLUMNS=60")
          .err;
  BOOST_TEST(begun.starts_with("# run, "));
  BOOST_TEST(widest(begun.substr(0, begun.find("\nstep"))) <= 60u);
  for (const char* none : {"COLUMNS=0", "COLUMNS=", "COLUMNS=wide"}) {
    BOOST_TEST((*this)("op list", none).out == (*this)("op list").out, none);
  }
}

BOOST_AUTO_TEST_CASE(a_recipe_describes_its_runs) {
  const Json paper = json("repro fal/table1 --scale paper --list-runs --json");
  // The recipe has six runs: two models of Cycle Tracing and, on Flip-Flop, three seeds of GPT and
  // one of FAL.
  BOOST_REQUIRE(paper["rows"].size() == 6u);
  double all = 0;
  for (const Json& run : paper["rows"]) {
    // Training takes six operations per parameter and token, plus the operations of attention.
    // Sequences have at most 1025 tokens.
    const double tokens = run["operations"].number() / 6 / run["parameters"].number();
    BOOST_TEST(tokens > 0.5 * run["steps"].number() * 32);
    BOOST_TEST(tokens < 4.0 * run["steps"].number() * 128 * 1025);
    all += run["operations"].number();
  }
  BOOST_TEST(paper["operations"].number() == all, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(wrong_usage_is_one_line_and_status_2) {
  refuses(2, "", "command");
  refuses(2, "nosuch", "nosuch");
  refuses(2, "help nosuch", "nosuch");
  refuses(2, "trian", "did you mean train?");
  refuses(2, "train", "--task NAME");
  refuses(2, "train --stesp 3", "did you mean --steps?");
  refuses(2, "train --task words --batch 0", "train: --batch: expected an integer from 1 to ");
  refuses(2, "train --task words --task.max 0", "train: --task.max: expected a whole number");
  refuses(2, "train --task sortign", "did you mean sorting?");
  refuses(2, "repro fal/tabel1", "did you mean fal/table1?");
  refuses(2, "info more", "more");
  refuses(2, "info --jso", "--jso");  // abbreviations are not accepted
  refuses(2, "gradcheck nosuch", "nosuch");
  refuses(2, "gradcheck scale --threads many", "many");
  refuses(2, "gradcheck scale --threads -1", "-1");
  refuses(2, "gradcheck scale --seed 1 --seed 2", "--seed: expected one value, got 2");
  refuses(2, "gradcheck scale --backend tpu", "tpu");
  refuses(2, "gradcheck scale --math sloppy", "sloppy");
  refuses(2, "gradcheck \"$(printf 'two\\nlines')\"", "two");
  refuses(2, "op", "list");
  refuses(2, "op nosuch --in a --out b", "nosuch");
  refuses(2, "op gelu --in a --out b", "use the op activate with the attribute f=gelu");
  refuses(2, "op scale --out b", "--in");
  refuses(2, "op scale --in a --out b --attr alpha", "NAME=VALUE");
  refuses(2, "op scale --in a --out b --attr alpha=much", "much");
  refuses(2, "op scale --in a --out b --attr beta=1", "beta");
  refuses(2, "op softmax --in a --out b --attr causal=maybe", "maybe");
  refuses(2, "op scale --in a --out b --dtype i32", "i32");
  refuses(2, "op argmax --in a --out b --grad", "no gradient");
}

BOOST_AUTO_TEST_CASE(a_missing_backend_fails_with_the_reason) {
  const Json info = json("info --json");
  for (const Json& backend : info["backends"]) {
    if (backend["available"].boolean()) continue;
    refuses(1, "gradcheck scale --backend " + backend["name"].string(), backend["reason"].string());
  }
}

BOOST_AUTO_TEST_CASE(info_names_the_commit_and_the_instruction_set_in_use) {
  const Json info = json("info --json");
  const std::string& commit = info["commit"].string();
  BOOST_TEST((commit == "unknown" || commit.find_first_not_of("0123456789abcdef") >= 40));
  BOOST_TEST(info["threads"].integer() >= 1);
  if (info["threads_by"].string() == "OpenMP") {
    const std::string limited = (*this)("info --json", "OMP_NUM_THREADS=3").out;
    BOOST_TEST(Json::parse(limited).value()["threads"].integer() == 3);
  }
  BOOST_TEST(info["memory"]["total_bytes"].number() > 0);
  bool found = false;
  for (const Json& set : info["instruction_sets"]) {
    found = found || (set["name"] == info["instruction_set"] && set["available"].boolean());
    BOOST_TEST(set.contains("reason") == !set["available"].boolean());
  }
  BOOST_TEST(found);
}

BOOST_AUTO_TEST_CASE(longhand_cpu_forces_an_instruction_set) {
  const Outcome forced = (*this)("info --json", "LONGHAND_CPU=portable");
  BOOST_TEST(Json::parse(forced.out).value()["instruction_set"] == "portable");
  for (const std::string name : {"mmx", "fused"}) {
    const Outcome unknown = (*this)("info", "LONGHAND_CPU=" + name);
    BOOST_TEST(unknown.status == 1);
    BOOST_TEST(contains(unknown.err, "got '" + name + "'"));
  }
}

BOOST_AUTO_TEST_CASE(failed_writes_to_standard_output_are_errors) {
  const std::string line = std::string(built_program) + " op list >/dev/full 2>" + path("stderr");
  const int status = std::system(line.c_str());
  BOOST_TEST(WEXITSTATUS(status) == 1);
  BOOST_TEST(contains(contents(path("stderr")), "standard output"));
}

BOOST_AUTO_TEST_CASE(gradcheck_reports_each_named_op) {
  const Json report = json("gradcheck softmax scale argmax --json");
  BOOST_TEST(report["rows"].size() == 3);
  BOOST_TEST(report["rows"][0]["op"] == "softmax");
  BOOST_TEST(report["rows"][0]["error"].number() < 1e-6);
  BOOST_TEST(report["rows"][0]["derivatives"].integer() > 100);
  BOOST_TEST(report["rows"][0]["bound"].number() < 1);
  BOOST_TEST(report["rows"][2]["error"].is_null());
}

BOOST_AUTO_TEST_CASE(gradcheck_prints_errors_on_long_sequences_with_their_share_of_the_bound) {
  const Json report = json("gradcheck tra_attention --backend cpu --math bf16 --length 70 --json");
  BOOST_REQUIRE(report["rows"].size() == 3);  // rows: no gates, gates of 0.5, gates of 0.97
  for (const Json& row : report["rows"]) {
    BOOST_TEST(row["tokens"] == 70);
    BOOST_TEST(row["dq"].number() > 0);
    BOOST_TEST(row["dq"].number() < 0x1p-8);
    BOOST_TEST(row["bound"].number() > 0);
    BOOST_TEST(row["bound"].number() < 1);
  }
}

BOOST_AUTO_TEST_CASE(gradcheck_compares_other_backends_with_the_reference) {
  for (const char* math : {"exact", "bf16"}) {
    const Json report =
        json(std::string("gradcheck softmax matmul argmax --backend cpu --json --math ") + math);
    BOOST_TEST(report["rows"].size() == 3);
    BOOST_TEST(report["rows"][1]["bound"].number() > 0);
    BOOST_TEST(report["rows"][1]["bound"].number() < 1);
    BOOST_TEST(report["rows"][1]["derivatives"].integer() > 100);
    BOOST_TEST(report["rows"][2]["derivatives"].integer() == 0);
  }
}

BOOST_AUTO_TEST_CASE(op_list_names_every_op_and_op_describe_describes_each) {
  const Json list = json("op list --json");
  BOOST_TEST(list["rows"].size() == catalog::operations().size());
  for (const Json& row : list["rows"]) {
    const Json facts = json("op describe " + row["op"].string() + " --json");
    BOOST_TEST(facts["formula"] == row["formula"]);
    BOOST_TEST(!facts["inputs"].empty());
    BOOST_TEST(facts["gradients_read"].empty() == facts["gradients_written"].empty());
  }
}

BOOST_AUTO_TEST_CASE(op_writes_outputs_and_gradients) {
  // y = relu(a b + bias) + residual, where b exchanges the two columns.
  write("x", {{"a", {2, 2}, {1, 2, 3, -4}},
              {"b", {2, 2}, {0, 1, 1, 0}},
              {"bias", {2}, {10, 20}},
              {"residual", {2, 2}, {0, 0, 100, 0}},
              {"dy", {2, 2}, {1, 2, 3, 4}}});
  for (const std::string backend : {"reference", "cpu"}) {
    const Json report = json(
        "op matmul --in x --out y --grad --attr f=relu --math exact --json "
        "--backend " +
        backend);
    BOOST_TEST(report["backend"] == backend);
    BOOST_TEST(report["type"] == "f32");
    BOOST_TEST(report["rows"].size() == 5);
    equal(read("y", "y"), {12, 21, 106, 23});
    equal(read("y", "da"), {2, 1, 4, 3});        // da = dy b^T
    equal(read("y", "db"), {10, 14, -10, -12});  // db = a^T dy
    equal(read("y", "dbias"), {4, 6});
    equal(read("y", "dresidual"), {1, 2, 3, 4});
  }
}

BOOST_AUTO_TEST_CASE(every_op_gives_the_same_result_as_command_and_as_library_call) {
  const auto reference = make_reference_backend();
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(7, Purpose::test);
    const catalog::Case values = operation.cases(rng).back();
    const catalog::Call call = prepare(operation, values, *reference, DType::f32, false);
    std::vector<NamedTensor> tensors;
    for (const catalog::Argument& input : operation.inputs) {
      const Var x = call.maybe(input.name);
      if (!x) continue;
      tensors.push_back({input.name, x.value()});
    }
    save_tensors(path("x"), tensors);
    std::string words = "op " + operation.name + " --in x --out y --backend reference --json";
    for (const auto& [name, value] : values.attributes) words += " --attr " + name + "=" + value;
    const Json report = json(words);
    const std::vector<catalog::Output> outputs = operation.run(call);
    BOOST_REQUIRE(report["rows"].size() == outputs.size());
    for (const catalog::Output& output : outputs) {
      const Tensor& y = output.value.value();
      const SafetensorsFile file = SafetensorsFile::open(path("y"));
      const SafetensorsEntry& entry = file.at(output.name, y.dtype(), y.shape());
      BOOST_TEST_CONTEXT(operation.name << ' ' << output.name) {
        BOOST_TEST(
            (y.bytes() == 0 || std::memcmp(entry.bytes.data(), y.address(), y.bytes()) == 0));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(benchmarks_report_every_row) {
  BOOST_TEST(json("bench list --json")["rows"].size() >= 2);
  const Json products = json("bench gemm --size 9,5,33 --seconds 0 --json");
  BOOST_TEST(products["rows"].size() == 9);  // three matrix layouts, each in three math modes
  for (const Json& row : products["rows"]) {
    BOOST_TEST(row["gflops"].number() > 0);
    BOOST_TEST(row["error"].number() < (row["math"] == "bf16" ? 0.01 : 1e-4));
  }
  BOOST_TEST(json("bench gemm --size 8,8,8 --seconds 0 --math exact --json")["rows"].size() == 3);
  const Json kernels = json("bench tokenwise --size 16,33 --seconds 0 --json");
  BOOST_TEST(kernels["rows"].size() > 10);
  for (const Json& row : kernels["rows"]) BOOST_TEST(row["share"].number() > 0);
  const Json memory =
      json("bench attention-memory --size 2,512,8 --size 2,2048,8 --threads 2 --json");
  BOOST_REQUIRE(memory["rows"].size() == 6);
  for (const std::size_t first : {0, 2, 4}) {
    const auto bytes = [&](std::size_t row) { return memory["rows"][row]["peak_bytes"].number(); };
    // The peak memory includes at least y, dq, dk and dv. A sequence of four times the length has
    // at most five times the peak.
    BOOST_TEST(bytes(first) >= 4 * 512 * 2 * 8 * 4);
    BOOST_TEST(bytes(first + 1) < 5 * bytes(first));
  }
  refuses(2, "bench attention-memory --size 1,2147483648,1", "--size");
  const Json steps = json("bench training --size smoke-fal --seconds 0 --math exact --json");
  BOOST_REQUIRE(steps["rows"].size() == 1);
  BOOST_TEST(steps["rows"][0]["rounds"] == 3);
  // Tokens after the last target are not counted.
  BOOST_TEST(steps["rows"][0]["tokens"].integer() <= 32 * 128);
  BOOST_TEST(steps["rows"][0]["tokens"].integer() > 32 * 100);
  BOOST_TEST(steps["rows"][0]["ms_by_operation"]["fal"].number() > 0);
  refuses(2, "bench training --size nosuch", "nosuch");
  refuses(2, "bench nosuch", "nosuch");
  refuses(2, "bench gemm --size 8,8", "--size");
  refuses(2, "bench gemm --size 8,8,0", "--size");
  refuses(2, "bench gemm --seconds soon", "--seconds");
}

BOOST_AUTO_TEST_CASE(op_accepts_lengths_of_zero) {
  write("x", {{"a", {0, 3}, {}}, {"b", {3, 2}, {1, 2, 3, 4, 5, 6}}, {"dy", {0, 2}, {}}});
  json("op matmul --in x --out y --grad --json");
  equal(read("y", "y"), {});
  equal(read("y", "da"), {});
  equal(read("y", "db"), {0, 0, 0, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(the_output_gradient_of_a_loss_defaults_to_one) {
  write("x", {{"logits", {2}, {0, 0}}, {"targets", {2}, {1, 0}}});
  write("x2", {{"logits", {2}, {0, 0}}, {"targets", {2}, {1, 0}}, {"dloss", {1}, {2}}});
  json("op binary_cross_entropy --in x --out y --grad --json");
  equal(read("y", "dlogits"), {-0.25f, 0.25f});
  json("op binary_cross_entropy --in x2 --out y --grad --json");
  equal(read("y", "dlogits"), {-0.5f, 0.5f});
}

BOOST_AUTO_TEST_CASE(op_refuses_inputs_that_do_not_fit_and_writes_nothing) {
  write("x", {{"x", {2, 2}, {1, 2, 3, 4}}});
  // The gradient of the output must be given, unless the output is a loss.
  refuses(1, "op scale --in x --out y --grad", "dy");
  refuses(1, "op softmax --in x --out y --attr causal=2", "causal");
  refuses(1, "op matmul --in x --out y", "\"x\"");
  refuses(1, "op scale --in absent --out y", "absent");
  refuses(1, "op scale --in . --out y", "");
  refuses(1, "op scale --in x --out absent/y", "absent/y");
  write("mismatch", {{"a", {2, 3}, std::vector<float>(6)}, {"b", {2, 3}, std::vector<float>(6)}});
  refuses(1, "op matmul --in mismatch --out y", "[2, 3]");
  write("few", {{"a", {1, 1}, {1}}});
  refuses(1, "op matmul --in few --out y", "'b'");
  write("dy", {{"x", {2}, {1, 2}}, {"dy", {3}, {1, 2, 3}}});
  refuses(1, "op scale --in dy --out y --grad", "[3]");
  write("ids", {{"table", {2, 1}, {1, 2}}, {"ids", {1}, {0}}});
  refuses(1, "op embedding --in ids --out y", "I32");
  BOOST_TEST(!fs::exists(path("y")));
}

BOOST_AUTO_TEST_CASE(broken_safetensors_files_are_refused_in_one_line) {
  write("good", {{"x", {2, 2}, {1, 2, 3, 4}}});
  const std::string good = contents(path("good"));
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path("bad"), std::ios::binary) << bytes;
    refuses(1, "op scale --in bad --out y", "bad");
  };
  for (std::size_t size = 0; size < good.size(); size += 7) refused(good.substr(0, size));
  refused(good + "x");
  refused(std::string(8, '\xff') + good.substr(8));
  refused(std::string(100, '\n'));
  BOOST_TEST(!fs::exists(path("y")));
}

BOOST_AUTO_TEST_SUITE_END()
