#include <cmath>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include "tests/check.h"

#include "apps/run/transcript.h"
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

// The run has `stretches` stretches of `stretch` steps each, and a checkpoint after each stretch.
constexpr int stretch = 5, stretches = 4;
const std::string data =
    "the mouse in the house met a cat and hid; the cat sat on a mat and waited. ";

/// A run and its forged copy.
struct Forgery {
  const Program& longhand;
  fs::path run, other, text;  // the forged copy, a run with another seed, and the training text
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

  int any_checkpoint() { return stretch * (1 + static_cast<int>(below(stretches))); }

  /// Flips a random bit of a tensor in a file of a checkpoint, and writes the file again with
  /// correct checksums. `bits` is the number of low bits of a value among which the bit is chosen.
  void flip_bit(int step, const std::string& name, std::size_t bits) {
    const fs::path path = checkpoint(step) / name;
    const std::string bytes = contents(path);
    const SafetensorsFile file =
        SafetensorsFile::parse(std::as_bytes(std::span<const char>(bytes)), path.string());
    std::vector<SafetensorsItem> items;
    const std::size_t chosen = below(file.entries().size());
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<std::byte> values(entry.bytes.begin(), entry.bytes.end());
      if (items.size() == chosen) {
        const std::size_t bit = below(bits), value = 4 * below(values.size() / 4);
        values[value + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      }
      items.push_back({entry.name, entry.dtype.value(), entry.shape,
                       [values](const SafetensorsItem::Give& give) { give(values); }});
    }
    write_safetensors(path, items, file.metadata());
  }
  /// Flips a random bit of a random checkpoint. Returns the checkpoint's step.
  int flip_any_bit() {
    const int step = any_checkpoint();
    flip_bit(step, below(2) ? "model.safetensors" : "optimizer.safetensors", 32);
    return step;
  }

  /// Changes a letter in the middle of the training text, where every training reads it.
  void change_text() {
    std::string changed = data;
    changed[20 + below(30)] = 'x';
    std::ofstream(text, std::ios::binary) << changed;
  }

  /// A random step line of a transcript.
  Json& any_step(std::vector<Json>& lines) {
    Json* line = &any(lines);
    while (!line->contains("loss")) line = &any(lines);
    return *line;
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
    {"a bit of a checkpoint", [](Forgery& f) { f.flip_any_bit(); }},
    {"a bit of a weight and its hash",
     [](Forgery& f) {
       const int step = f.any_checkpoint();
       f.flip_bit(step, "model.safetensors", 32);
       hash_again(f, step);
     }},
    {"a bit of a moment and its hash",
     [](Forgery& f) {
       const int step = f.any_checkpoint();
       f.flip_bit(step, "optimizer.safetensors", 32);
       hash_again(f, step);
     }},
    {"a bit of a weight, and training continued",
     [](Forgery& f) {
       // The flipped bit is one of the 20 low bits of a weight, so it is not in the exponent. With
       // another exponent, the loss could become infinite, and training would fail.
       const int step = f.any_checkpoint();
       f.flip_bit(step, "model.safetensors", 20);
       hash_again(f, step);
       const auto resumed =
           f.longhand("train --resume forged --from-step " + std::to_string(step) + " --quiet");
       LONGHAND_CHECK(resumed.status == 0, resumed.err);
     }},
    {"a checkpoint of another run",
     [](Forgery& f) {
       const int step = f.any_checkpoint();
       const fs::path from = f.other / "checkpoints" / f.checkpoint(step).filename();
       fs::copy(from, f.checkpoint(step),
                fs::copy_options::recursive | fs::copy_options::overwrite_existing);
       if (f.below(2)) hash_again(f, step);
     }},
    {"a digit of a step",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         const std::vector<std::string> names{"batches", "loss", "gradient_norm"};
         Json& value = f.any_step(lines)[f.any(names)];
         value = with_other_digit(value.string(), f);
       });
     }},
    {"a loss, also in the metrics",
     [](Forgery& f) {
       f.edit([&](std::vector<Json>& lines) {
         Json& line = f.any_step(lines);
         const double loss = app::from_bits(line["loss"].string());
         const std::string before = "\"loss\":" + Json(loss).dump();
         const std::string after = "\"loss\":" + Json(0.5 * loss).dump();
         line["loss"] = app::bits_of(0.5 * loss);
         std::string text = contents(f.run / "metrics.jsonl");
         text.replace(text.find(before), before.size(), after);
         std::ofstream(f.run / "metrics.jsonl", std::ios::binary) << text;
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
    {"a byte of the text", [](Forgery& f) { f.change_text(); }},
    {"a byte of the text and its hash",
     [](Forgery& f) {
       f.change_text();
       f.edit([&](std::vector<Json>& lines) {
         lines.front()["data"][0]["hash"] = app::file_hash(f.text);
       });
     }},
    {"the seed",
     [](Forgery& f) { f.configure("seed", std::to_string(2 + f.below(99)), f.below(2)); }},
    {"a line of config.ini",
     [](Forgery& f) {
       const std::vector<std::pair<std::string, std::string>> settings{
           {"rate", "0.002"},  {"beta1", "0.8"},     {"warm_up", "10"}, {"batch", "8"},
           {"clip", "0.5"},    {"deviation", "0.1"}, {"width", "32"},   {"length", "16"},
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

/// A run consists of `stretches` stretches (the steps from one checkpoint to the next). In `wrong`
/// of them, verification finds the forgery. Returns the probability that `sampled` stretches,
/// chosen without replacement, include at least one of these `wrong` stretches:
///   1 - C(stretches - wrong, sampled) / C(stretches, sampled).
double probability(int wrong, int sampled) {
  double none = 1;
  for (int i = 0; i < sampled; ++i)
    none *= std::max(0, stretches - wrong - i) / (stretches - i + 0.);
  return 1 - none;
}

/// The number of forgeries of a kind that were found, and the number that chance predicts.
struct Row {
  int forgeries = 0, all = 0, without_steps = 0;
  struct Sampled {
    int found = 0;
    double expected = 0, variance = 0;
    void add(bool reported, double p) {
      found += reported;
      expected += p;
      variance += p * (1 - p);
    }
  } one = {}, two = {};  // results of `verify --sample 1` and of `verify --sample 2`
};

/// True if the number of forgeries found is within four standard deviations of the expected number.
bool as_expected(const Row::Sampled& sampled) {
  return std::abs(sampled.found - sampled.expected) <= 4 * std::sqrt(sampled.variance) + 1e-9;
}

}  // namespace

// The environment variable LONGHAND_FORGERIES is the number of forgeries; the default is 100.
BOOST_AUTO_TEST_CASE(every_forgery_is_reported_and_samples_report_as_many_as_probability_says) {
  const char* const number = std::getenv("LONGHAND_FORGERIES");
  const int forgeries = number ? std::stoi(number) : 100;
  const Program longhand;
  Rng rng(1, Purpose::test);
  Forgery forgery{longhand, longhand.folder / "forged", longhand.folder / "other",
                  longhand.folder / "text.txt", rng};
  std::ofstream(forgery.text, std::ios::binary) << data;
  const std::string settings =
      "train --task text --text " + forgery.text.string() +
      " --task.length 12 --width 16 --layers 1 --heads "
      "softmax:1,fal:1 --batch 4 --steps 20 --checkpoint_every 5 --keep 9 --evaluate_samples 4 "
      "--threads 1 --transcript --quiet ";
  BOOST_REQUIRE(longhand(settings + "--out run").status == 0);
  BOOST_REQUIRE(longhand(settings + "--seed 2 --out other").status == 0);
  const auto verify_copy = [&](const app::StepsToVerify& steps) {
    return refusal([&] { app::verify(forgery.run, steps, {}, {}); });
  };
  const auto reported = [&](const app::StepsToVerify& steps) {
    return verify_copy(steps) != "accepted";
  };
  const auto copy = [&] {
    fs::remove_all(forgery.run);
    fs::copy(longhand.folder / "run", forgery.run, fs::copy_options::recursive);
    std::ofstream(forgery.text, std::ios::binary) << data;
  };
  copy();
  BOOST_TEST(verify_copy({.all = true}) == "accepted");
  std::vector<Row> rows(kinds.size());
  std::vector<std::string> reports(kinds.size());
  for (int i = 0; i < forgeries; ++i) {
    copy();
    const std::size_t kind = static_cast<std::size_t>(i) % kinds.size();
    const auto& [name, forge] = kinds[kind];
    forge(forgery);
    const std::string report = verify_copy({.all = true});
    BOOST_TEST(report != "accepted", name << " is not reported, forgery " << i);
    BOOST_TEST(report.find('\n') == report.npos, report);
    reports[kind] = report;
    Row& row = rows[kind];
    ++row.forgeries;
    row.all += report != "accepted";
    const bool without_steps = reported({});
    row.without_steps += without_steps;
    int wrong = without_steps ? stretches : 0;
    for (int k = 0; k < stretches && !without_steps; ++k) {
      wrong += reported({.range = std::pair{k * stretch + 1, (k + 1) * stretch}});
    }
    const auto seed = static_cast<std::uint64_t>(i);
    row.one.add(reported({.sample = 1, .seed = seed}), probability(wrong, 1));
    row.two.add(reported({.sample = 2, .seed = seed}), probability(wrong, 2));
  }
  Row sum;
  std::ostringstream table;
  table << std::fixed << std::setprecision(1)
        << "| forged | number | --all | without steps | --sample 1 | expected | --sample 2 | "
           "expected |\n|---|---|---|---|---|---|---|---|\n";
  const auto print = [&](const std::string& name, const Row& row) {
    table << "| " << name << " | " << row.forgeries << " | " << row.all << " | "
          << row.without_steps << " | " << row.one.found << " | " << row.one.expected << " | "
          << row.two.found << " | " << row.two.expected << " |\n";
  };
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const Row& row = rows[kind];
    BOOST_TEST(as_expected(row.one), kinds[kind].first);
    BOOST_TEST(as_expected(row.two), kinds[kind].first);
    print(kinds[kind].first, row);
    sum.forgeries += row.forgeries;
    sum.all += row.all;
    sum.without_steps += row.without_steps;
    for (const auto part : {&Row::one, &Row::two}) {
      (sum.*part).found += (row.*part).found;
      (sum.*part).expected += (row.*part).expected;
      (sum.*part).variance += (row.*part).variance;
    }
    BOOST_TEST_MESSAGE(kinds[kind].first << ": " << reports[kind]);
  }
  BOOST_TEST(as_expected(sum.one));
  BOOST_TEST(as_expected(sum.two));
  print("all", sum);
  BOOST_TEST_MESSAGE(table.str());
}

BOOST_AUTO_TEST_SUITE_END()
