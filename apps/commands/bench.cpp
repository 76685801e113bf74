#include "apps/bench/bench.h"

#include <iostream>

#include "apps/compute.h"
#include "apps/version.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::app::bench_command {
namespace {

void list(bool json) {
  Report report({{"benchmark", "benchmark"}, {"sizes", "--size"}, {"summary", "times"}});
  for (const auto& [name, benchmark] : benchmarks()) {
    report.add({{"benchmark", name}, {"sizes", benchmark.sizes}, {"summary", benchmark.summary}});
  }
  report.print(std::cout, json);
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected \"list\" or the name of one benchmark");
  const std::string& name = arguments.plain().front();
  if (name == "list") return list(arguments.json());
  const auto found = benchmarks().find(name);
  if (found == benchmarks().end()) {
    wrong_usage("there is no benchmark '", name, "'; `longhand bench list` lists them");
  }
  const auto backend = compute_from(arguments).make();
  Report report(found->second.columns);
  report.set("benchmark", name);
  report.set("commit", commit);
  report.set("backend", arguments.word("backend"));
  report.set("instruction_set", cpu::name_of(cpu::choose_isa()));
  report.set("threads", ThreadPool::count_of(backend->options().threads));
  found->second.run(arguments, *backend, report);
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "bench",
     .summary = "times kernels and training steps",
     .usage = {"list [--json]", "NAME [--size N,N,...]... [--seconds S] [--json] ..."},
     .options = join(
         {{"size", "N,N,...", "problem size to time; `bench list` prints the format", {}, true},
          {"seconds", "S", "seconds per measurement; at least 3 calls are timed", "0.3"},
          {"mechanism",
           "NAME",
           "benchmark attention only: time just softmax and this mechanism",
           {},
           true},
          {"tokenizer", "PATH", "benchmark tokenize only: tokenizer.json or its folder", {}, true},
          {"text", "FILE", "benchmark tokenize only: file with the text to encode"},
          {"dtype", "TYPE", "type of the tensors: f32 or bf16", "f32"}},
         join(compute_options(), {json_option()})),
     .examples = {"bench gemm", "bench gemm --size 4096,4096,64 --math exact --threads 1",
                  "bench tokenwise --json", "bench training --size ffl-fal"},
     .notes = "Each measurement makes one warm-up call and then times calls until --seconds have\n"
              "passed. The benchmarks gemm and training measure three math modes: exact, fast\n"
              "and bf16. If --math is given, they measure only this mode.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::bench_command
