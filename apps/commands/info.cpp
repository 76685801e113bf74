#include <sys/sysinfo.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "apps/command.h"
#include "apps/machine.h"
#include "apps/report.h"
#include "apps/version.h"
#include "core/backend.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"
#include "nn/ranks/mpi.h"
#include "nn/ranks/nccl.h"

namespace longhand::app::info_command {
namespace {

/// The name, types and devices of a backend, or the reason why it is not available.
Json backend_facts(const char* name) {
  try {
    const auto backend = make_backend(name, {.threads = 1});  // no other thread is started
    std::vector<std::string> types;
    for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
      try {
        backend->require_dtype(type);
        types.emplace_back(name_of(type));
      } catch (const Error&) {  // the call only tests whether the type is supported
      }
    }
    Json facts{{"name", name}, {"available", true}, {"types", types}};
    if (const auto devices = backend->devices(); !devices.empty()) facts["devices"] = devices;
    return facts;
  } catch (const Error& error) {
    std::string reason = error.what();
    if (const std::string subject = text(name, ": "); reason.starts_with(subject)) {
      reason.erase(0, subject.size());
    }
    return {{"name", name}, {"available", false}, {"reason", reason}};
  }
}

Json instruction_sets() {
  Json sets = Json::array();
  for (const cpu::Isa isa : cpu::isas_of_this_processor()) {
    std::string_view reason;
    const bool available = cpu::supports(isa, &reason);
    Json facts{{"name", cpu::name_of(isa)}, {"available", available}};
    if (!available) facts["reason"] = reason;
    sets.push_back(facts);
  }
  return sets;
}

/// The reason why no stronger instruction set is used.
std::string why_not_stronger(cpu::Isa used) {
  if (used != cpu::supported_isas().back()) return "selected by LONGHAND_CPU";
  const auto all = cpu::isas_of_this_processor();
  if (used == all.back()) return "the strongest instruction set of this program";
  const cpu::Isa next = *std::next(std::ranges::find(all, used));
  std::string_view reason;
  cpu::supports(next, &reason);
  return text("no ", cpu::name_of(next), ": ", reason);
}

Json gather() {
  struct sysinfo memory {};
  LONGHAND_CHECK(sysinfo(&memory) == 0, "the system does not report its memory");
  const std::string available = find_line("/proc/meminfo", "MemAvailable");
  const std::string limit = find_line("/sys/fs/cgroup/memory.max", "");
  const cpu::Isa used = cpu::choose_isa();

  Json facts;
  facts["version"] = version;
  facts["commit"] = commit;
  facts["compiler"] = compiler;
  facts["build"] = build;
  const std::string processor = find_line("/proc/cpuinfo", "model name");
  facts["processor"] = processor.empty() ? "unknown" : processor;
  facts["threads"] = ThreadPool::count_of(0);
  facts["threads_by"] = std::string(ThreadPool::implementation());
  facts["memory"] = {
      {"total_bytes", std::uint64_t{memory.totalram} * memory.mem_unit},
      {"available_bytes", available.empty() ? Json() : Json(1024 * std::stoull(available))},
      {"limit_bytes",
       limit.empty() || limit.starts_with("max") ? Json() : Json(std::stoull(limit))}};
  facts["backends"] = Json::array();
  for (const char* name : {"reference", "cpu", "cuda"}) {
    facts["backends"].push_back(backend_facts(name));
  }
  const auto plugin = nn::find_mpi_plugin();
  facts["mpi"] = plugin ? Json(*plugin) : Json();
  const auto devices = nn::find_nccl_plugin();
  facts["nccl"] = devices ? Json(*devices) : Json();
  facts["instruction_sets"] = instruction_sets();
  facts["instruction_set"] = cpu::name_of(used);
  facts["instruction_set_reason"] = why_not_stronger(used);
  return facts;
}

std::string gibibytes(const Json& bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << bytes.number() / (1u << 30) << " GiB";
  return out.str();
}

void line(const std::string& title, const std::string& value) {
  std::cout << std::left << std::setw(18) << title << value << '\n';
}

void print(const Json& facts) {
  for (const char* key : {"version", "commit", "compiler", "build", "processor"}) {
    line(key, facts[key].string());
  }
  line("threads", facts["threads"].dump() + " (" + facts["threads_by"].string() + ")");
  const Json& memory = facts["memory"];
  std::string amount = gibibytes(memory["total_bytes"]);
  if (!memory["available_bytes"].is_null()) {
    amount += ", " + gibibytes(memory["available_bytes"]) + " available";
  }
  if (!memory["limit_bytes"].is_null()) {
    amount += ", limited to " + gibibytes(memory["limit_bytes"]);
  }
  line("memory", amount);
  for (const Json& backend : facts["backends"]) {
    std::string state;
    if (backend["available"].boolean()) {
      for (const Json& type : backend["types"]) {
        state += (state.empty() ? "" : ", ") + type.string();
      }
    } else {
      state = "not available: " + backend["reason"].string();
    }
    line("backend " + backend["name"].string(), state);
    if (const Json* const devices = backend.find("devices")) {
      for (const Json& device : *devices) line("  device", device.string());
    }
  }
  line("ranks",
       facts["mpi"].is_null() ? "one: built without MPI" : "by MPI: " + facts["mpi"].string());
  if (!facts["nccl"].is_null()) line("  on GPUs", "by NCCL: " + facts["nccl"].string());
  line("instruction set", facts["instruction_set"].string() + " in use (" +
                              facts["instruction_set_reason"].string() + ")");
  for (const Json& set : facts["instruction_sets"]) {
    line("  " + set["name"].string(),
         set["available"].boolean() ? "available" : "no: " + set["reason"].string());
  }
}

const Register info{
    {.name = "info",
     .summary = "prints the version, processor, memory, backends and instruction sets",
     .usage = {"[--json]"},
     .options = {json_option()},
     .examples = {"info", "info --json"},
     .notes = "The environment variable LONGHAND_CPU selects an instruction set: portable, neon,\n"
              "avx2, avx512, avx512bf16 or amx. If the program uses OpenMP, OMP_NUM_THREADS sets\n"
              "the default number of threads.",
     .run = [](const Arguments& arguments) {
       const Json facts = gather();
       if (arguments.json()) {
         std::cout << facts << '\n';
       } else {
         print(facts);
       }
     }}};

}  // namespace
}  // namespace longhand::app::info_command
