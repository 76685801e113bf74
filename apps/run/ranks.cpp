#include "apps/run/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "apps/command.h"
#include "apps/version.h"
#include "core/cpu/isa.h"
#include "core/crc32c.h"
#include "core/exception_message.h"
#include "core/mapped_file.h"
#include "core/parallel.h"
#include "nn/ranks/mpi.h"
#include "nn/ranks/watch.h"

namespace longhand::app {
namespace {

constexpr std::int64_t usual_parts = 8;

/// The launcher ends all ranks as soon as one rank has failed. A rank without a message of its own
/// waits, so that the rank with the message can print it first.
void let_others_speak() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

/// A time in which every rank notices that another rank was lost.
constexpr std::chrono::seconds until_all_saw{1};

/// Reports the lost ranks and ends this process, because the main thread is blocked in MPI and
/// cannot be interrupted. Before it ends the process, the function waits until the other ranks have
/// noticed the same lost ranks. Otherwise they would report this rank as lost too.
void end_without(const std::string& ranks, bool first) {
  if (first) {
    std::fprintf(
        stderr,
        "longhand: %s: lost, so all ranks end; --resume continues with any number of ranks\n",
        ranks.c_str());
  }
  std::this_thread::sleep_for(first ? until_all_saw : 3 * until_all_saw);
  std::_Exit(1);
}

std::string machine_name() {
  char host[65] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "?";
}

/// Number of all cores of the machine.
int all_cores() { return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)); }

}  // namespace

void on_ranks(const std::function<void(nn::Communicator&)>& work) {
  if (!nn::ranks_asked_for()) return work(nn::single_rank());
  std::unique_ptr<nn::Transport> transport = nn::connect_mpi();
  const int rank = transport->rank();
  if (const int size = transport->size(); (size & (size - 1)) != 0) {
    const std::string message =
        text("ranks: expected 1, 2, 4, 8 or another power of two, got ", size);
    if (rank == 0) throw UsageError(message);
    let_others_speak();
    throw nn::FailedElsewhere(message);
  }
  auto ranks = std::make_unique<nn::Communicator>(std::move(transport));
  auto watch = std::make_unique<nn::RankWatch>(*ranks, end_without);
  const auto named = [&](const char* message) {
    return rank == 0 ? std::string(message) : text("rank ", rank, ": ", message);
  };
  // If this rank throws, the other ranks are blocked in MPI. Do not wait for them, because the
  // launcher ends them.
  const auto leave = [&] {
    if (ranks->failed_together()) {
      watch.reset();
      ranks.reset();
    } else {
      ranks.release();  // NOLINT: the destructor would wait for the other ranks
    }
  };
  try {
    work(*ranks);
  } catch (const nn::FailedElsewhere&) {
    leave();
    let_others_speak();
    throw;
  } catch (const nn::RankLost& error) {
    // MPI may report a lost rank before `watch` does. Wait for `watch`, which names the lost rank
    // and then ends this process.
    std::this_thread::sleep_for(3 * until_all_saw);
    leave();
    throw Error(named(error.what()));
  } catch (const UsageError& error) {
    leave();
    throw UsageError(named(error.what()));
  } catch (const std::exception& error) {
    leave();
    throw Error(named(message_of(error).c_str()));
  }
  // All ranks leave together, so that no rank is reported as lost.
  ranks->meet();
  watch->stop();
  ranks->meet();
}

RankFacts program_facts(Math math) {
  const MappedFile program("/proc/self/exe");
  RankFacts facts{{"version", std::string(version)},
                  {"commit", std::string(commit)},
                  {"program file (checksum)", std::to_string(crc32c(program.bytes()))}};
  if (math != Math::portable) {
    facts.emplace_back("instruction set", cpu::name_of(cpu::choose_isa()));
  }
  return facts;
}

void require_same(nn::Communicator& ranks, const RankFacts& facts) {
  if (ranks.size() == 1) return;
  std::string mine;
  for (const auto& [name, value] : facts) mine += name + '\0' + value + '\0';
  const auto all = ranks.gather(std::string_view(mine));
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    ranks.fail_together();
    if (ranks.rank() > 0) throw nn::FailedElsewhere("rank 0 prints the difference");
    // Print the first fact that differs. The text all[r] contains the facts of rank r: names and
    // values, each ending with a 0 byte. Facts about the program come first. If the programs are
    // equal, they list the other facts in the same order.
    std::size_t at = 0;
    const auto next = [&] {
      const std::size_t end = std::min(all[r].find('\0', at), all[r].size());
      const std::string word = all[r].substr(at, end - at);
      at = std::min(end + 1, all[r].size());
      return word;
    };
    for (const auto& [name, value] : facts) {
      const std::string its_name = next(), its_value = next();
      if (its_name == name && its_value == value) continue;
      fail("rank ", r, ": differs from rank 0: ", name, " is ",
           its_name == name ? its_value : "missing", " on this rank and ", value, " on rank 0");
    }
    fail("rank ", r, ": has settings or files that rank 0 does not have");
  }
}

std::int64_t default_parts(const Config& config) {
  const TrainingSettings settings = config.training();
  const std::int64_t whole = settings.batch_tokens > 0 ? settings.batch_tokens : settings.batch;
  std::int64_t parts = usual_parts;
  while (parts > 1 && whole % (parts * settings.accumulation) != 0) parts /= 2;
  return parts;
}

int threads_of_rank(nn::Communicator& ranks, int threads) {
  if (ranks.size() == 1 || threads != 0) return threads;
  const auto machines = ranks.gather(std::string_view(machine_name()));
  const auto here = std::ranges::count(machines, machine_name());
  if (usable_cores() < all_cores()) return 0;  // the launcher has assigned cores to each rank
  return std::max(1, usable_cores() / static_cast<int>(here));
}

}  // namespace longhand::app
