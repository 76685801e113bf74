#include <functional>
#include <map>
#include "tests/check.h"

#include "apps/run/verification.h"
#include "core/rng.h"
#include "core/safetensors.h"
#include "nn/training/fingerprints.h"
#include "tests/program.h"
#include "tests/transcript.h"

BOOST_AUTO_TEST_SUITE(forgeries_test)

using namespace longhand;

namespace {

namespace fs = std::filesystem;

/// A run and its forged copy.
struct Forgery {
  fs::path run, other;  // run: the forged copy; other: a run with another seed
  Rng& rng;

  std::size_t below(std::size_t bound) { return rng.below(static_cast<std::uint32_t>(bound)); }
  template <class List>
  auto& any(List& list) {
    return list[below(list.size())];
  }
  fs::path checkpoint(int step) const {
    return run / "checkpoints" / ("step-" + std::to_string(step));
  }

  /// Changes lines of the transcript. Then each line gets the hash of the new line before it, so
  /// that the chain of hashes is valid.
  void edit(const std::function<void(std::vector<Json>&)>& change) {
    std::vector<Json> lines = read_transcript(run);
    change(lines);
    write_chained(run, lines);
  }

  /// Flips a random bit of a tensor in a checkpoint, and writes the file again with correct
  /// checksums. Returns the checkpoint's step.
  int flip_bit() {
    const int step = 5 * (1 + static_cast<int>(below(4)));
    const fs::path path =
        checkpoint(step) / (below(2) ? "model.safetensors" : "optimizer.safetensors");
    const std::string bytes = contents(path);
    const SafetensorsFile file =
        SafetensorsFile::parse(std::as_bytes(std::span<const char>(bytes)), path.string());
    std::vector<SafetensorsItem> items;
    const std::size_t chosen = below(file.entries().size());
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<std::byte> values(entry.bytes.begin(), entry.bytes.end());
      if (items.size() == chosen) any(values) ^= static_cast<std::byte>(1u << below(8));
      items.push_back({entry.name, entry.dtype.value(), entry.shape,
                       [values](const SafetensorsItem::Give& give) { give(values); }});
    }
    write_safetensors(path, items, file.metadata());
    return step;
  }

  /// Changes a setting in config.ini. If `in_header` is true, also corrects the hash of config.ini
  /// and the seed in the first line of the transcript.
  void configure(const std::string& setting, const std::string& value, bool in_header) {
    std::string ini = contents(run / "config.ini");
    const std::size_t begin = ini.find("\n" + setting + " = ");
    LONGHAND_CHECK(begin != std::string::npos, setting, ": not in config.ini");
    const std::size_t end = ini.find('\n', begin + 1);
    ini.replace(begin, end - begin, "\n" + setting + " = " + value);
    std::ofstream(run / "config.ini", std::ios::binary) << ini;
    if (!in_header) return;
    edit([&](std::vector<Json>& lines) {
      lines.front()["config"] = sha256(ini);
      if (setting == "seed") lines.front()["seed"] = std::stoi(value);
    });
  }
};

std::string with_other_digit(std::string digits, Forgery& f) {
  char& digit = f.any(digits);
  digit = digit == '0' ? '1' : '0';
  return digits;
}

bool is_state(const Json& line) { return line.contains("parameters"); }

/// Replaces the hashes that the transcript has for a step by those of the step's checkpoint, so
/// that they agree.
void hash_again(Forgery& f, int step) {
  const nn::StateHashes hashes = nn::hash_checkpoint(f.checkpoint(step));
  f.edit([&](std::vector<Json>& lines) {
    for (Json& line : lines) {
      if (!is_state(line) || line["step"].integer() != step) continue;
      for (const auto& [name, tensors] :
           {std::pair{"parameters", hashes.parameters}, std::pair{"optimizer", hashes.optimizer}}) {
        line[name]["hash"] = nn::root_of(tensors);
        for (const auto& [tensor, hash] : tensors) line[name]["tensors"][tensor] = hash;
      }
    }
  });
}

using Forge = std::function<void(Forgery&)>;
const std::vector<std::pair<std::string, Forge>> kinds{
    {"a bit of a checkpoint", [](Forgery& f) { f.flip_bit(); }},
    {"a bit of a checkpoint and its hash in the transcript",
     [](Forgery& f) { hash_again(f, f.flip_bit()); }},
    {"a checkpoint of another run",
     [](Forgery& f) {
       const int step = 5 * (1 + static_cast<int>(f.below(4)));
       const fs::path from = f.other / "checkpoints" / f.checkpoint(step).filename();
       fs::copy(from, f.checkpoint(step),
                fs::copy_options::recursive | fs::copy_options::overwrite_existing);
       if (f.below(2)) hash_again(f, step);
     }},
    {"a digit of a step",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         Json* line = &f.any(lines);
         while (!line->contains("loss")) line = &f.any(lines);
         const std::vector<std::string> names{"batches", "loss", "gradient_norm"};
         Json& value = (*line)[f.any(names)];
         value = with_other_digit(value.string(), f);
       });
     }},
    {"a hash of a state",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         Json* line = &f.any(lines);
         while (!is_state(*line)) line = &f.any(lines);
         Json& part = (*line)[f.below(2) ? "parameters" : "optimizer"];
         nn::TensorHashes tensors;
         const std::size_t chosen = f.below(part["tensors"].size());
         for (const auto& [name, hash] : part["tensors"].members()) {
           const bool change = tensors.size() == chosen;
           tensors[name] = change ? with_other_digit(hash.string(), f) : hash.string();
         }
         for (const auto& [name, hash] : tensors) part["tensors"][name] = hash;
         part["hash"] = nn::root_of(tensors);
       });
     }},
    {"a digit without a new chain",
     [](Forgery& f) {
       std::string text = contents(f.run / "transcript.jsonl");
       char* digit = &f.any(text);
       while (*digit < '0' || *digit > '8') digit = &f.any(text);
       ++*digit;
       std::ofstream(f.run / "transcript.jsonl", std::ios::binary) << text;
     }},
    {"the seed",
     [](Forgery& f) { f.configure("seed", std::to_string(2 + f.below(99)), f.below(2)); }},
    {"a line of config.ini",
     [](Forgery& f) {
       const std::vector<std::pair<std::string, std::string>> settings{
           {"rate", "0.002"},  {"beta1", "0.8"},     {"warm_up", "10"}, {"batch", "8"},
           {"clip", "0.5"},    {"deviation", "0.1"}, {"width", "32"},   {"instructions", "16"},
           {"heads", "fal:2"}, {"steps", "30"}};
       const auto& [name, value] = f.any(settings);
       f.configure(name, value, f.below(2));
     }},
    {"two lines in another order",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         const std::size_t i = f.below(lines.size() - 1);
         std::swap(lines[i], lines[i + 1]);
       });
     }},
    {"a line less",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(f.below(lines.size())));
       });
     }},
    {"a line twice",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         const auto at = lines.begin() + static_cast<std::ptrdiff_t>(f.below(lines.size()));
         lines.insert(at, Json(*at));
       });
     }},
    {"a loss in the metrics", [](Forgery& f) {
       std::string text = contents(f.run / "metrics.jsonl");
       std::size_t digit = text.find("\"loss\":", f.below(text.size() / 2)) + 10;
       text[digit] = text[digit] == '1' ? '2' : '1';
       std::ofstream(f.run / "metrics.jsonl", std::ios::binary) << text;
     }}};

}  // namespace

BOOST_AUTO_TEST_CASE(every_one_of_a_hundred_forgeries_of_a_run_is_reported) {
  const Program longhand;
  const std::string settings =
      "train --task flip-flop --task.instructions 8 --width 16 --layers 1 --heads "
      "softmax:1,fal:1 --batch 4 --steps 20 --checkpoint_every 5 --keep 9 --evaluate_samples 4 "
      "--threads 1 --transcript --quiet ";
  BOOST_REQUIRE(longhand(settings + "--out run").status == 0);
  BOOST_REQUIRE(longhand(settings + "--seed 2 --out other").status == 0);
  Rng rng(1, Purpose::test);
  Forgery forgery{longhand.folder / "forged", longhand.folder / "other", rng};
  const auto verify_copy = [&] {
    return refusal([&] { app::verify(forgery.run, {.all = true}, {}, {}); });
  };
  const auto copy = [&] {
    fs::remove_all(forgery.run);
    fs::copy(longhand.folder / "run", forgery.run, fs::copy_options::recursive);
  };
  copy();
  BOOST_TEST(verify_copy() == "accepted");
  std::map<std::string, std::string> reports;
  for (std::size_t i = 0; i < 100; ++i) {
    copy();
    const auto& [name, forge] = kinds[i % kinds.size()];
    forge(forgery);
    const std::string report = verify_copy();
    BOOST_TEST(report != "accepted", name << " is not reported, forgery " << i);
    BOOST_TEST(report.find('\n') == report.npos, report);
    reports[name] = report;
  }
  for (const auto& [name, report] : reports) BOOST_TEST_MESSAGE(name << ": " << report);
}

BOOST_AUTO_TEST_SUITE_END()
