// Tests that numbers are written and read in the same way in any locale. In German, numbers have a
// decimal comma. In Turkish, the lower-case form of I is not i.
#include <cctype>
#include <clocale>
#include <locale>
#include "tests/check.h"

#include "apps/html/svg.h"
#include "apps/run/config.h"
#include "core/quote.h"
#include "core/safetensors.h"
#include "nn/training/schedule.h"
#include "tests/program.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(locale_test)

using namespace longhand;

namespace {

constexpr const char* languages[] = {"de_DE.UTF-8", "tr_TR.UTF-8"};

/// Sets the locale of the whole process, as a program that embeds the library may do.
class Language {
 public:
  explicit Language(const char* name) {
    BOOST_REQUIRE_MESSAGE(std::setlocale(LC_ALL, name), name << ": scripts/setup.sh installs it");
    before_ = std::locale::global(std::locale(name));
    char number[16];
    std::snprintf(number, sizeof number, "%.1f", 1.5);
    BOOST_REQUIRE(number == std::string("1,5"));
  }
  ~Language() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, "C");
  }
  Language(const Language&) = delete;
  Language& operator=(const Language&) = delete;

 private:
  std::locale before_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_are_written_and_read_the_same_in_every_locale) {
  for (const char* name : languages) {
    const Language language(name);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(text(1.5, ' ', 1234567, ' ', 2.5e-7) == "1.5 1234567 2.5e-07");
      const Json json{{"a", 1.5}, {"b", 1e300}, {"c", 1234567}, {"d", -2.5e-7}};
      BOOST_TEST(json.dump() == R"({"a":1.5,"b":1e+300,"c":1234567,"d":-2.5e-07})");
      BOOST_TEST((*Json::parse(json.dump()) == json));
      BOOST_TEST(!Json::parse("1,5"));

      app::Config config("flip-flop");
      config.set("training.rate", "2.5e-4");
      const app::Config again = app::Config::parse(config.ini(), "run.ini");
      BOOST_TEST(again.training().schedule.peak == 2.5e-4);
      config.set("training.rate", "0,5");
      BOOST_CHECK_THROW(config.training(), Error);
      BOOST_TEST(config.text("model.activation") == "gelu");
      BOOST_TEST(nn::schedule_from_name("linear").has_value());

      BOOST_TEST(app::html::number(1234.5) == "1234.5");
      BOOST_TEST(app::html::pixels(1234.56) == "1234.6");

      const TemporaryFolder folder;
      const std::vector<std::uint8_t> bytes(2'000'000);
      const std::vector<SafetensorsItem> items{
          {"I", DType::u8, {1000, 2000}, [&](const SafetensorsItem::Give& give) {
             give(std::as_bytes(std::span(bytes)));
           }}};
      write_safetensors(folder / "a.safetensors", items);
      BOOST_TEST(
          (SafetensorsFile::open(folder / "a.safetensors").at("I").shape == Shape{1000, 2000}));
    }
  }
}

BOOST_AUTO_TEST_CASE(files_and_figures_do_not_depend_on_the_locale) {
  const std::string settings =
      " --task flip-flop --task.instructions 8 --task.ignore 0.7 --width 16 --layers 1 "
      "--heads softmax:1,fal:1 --batch 4 --steps 3 --rate 2.5e-3 --evaluate_samples 5 --threads 1";
  const auto made_in = [&](const std::string& name) {
    const Program longhand;
    const std::string environment = "LC_ALL=" + name + " LANG=" + name;
    const Program::Outcome trained = longhand("train --out run" + settings, environment);
    BOOST_TEST(trained.status == 0, trained.err);
    std::string all = contents(longhand.path("run/config.ini"));
    for (const std::string& line : std::initializer_list<std::string>{
             "eval run --json --samples 5", "inspect run --json --samples 2",
             "data --count 2 --json" + settings}) {
      const Program::Outcome outcome = longhand(line, environment);
      BOOST_TEST(outcome.status == 0, outcome.err);
      const auto seconds = outcome.out.find("\"seconds\"");
      all += line + outcome.out.substr(0, seconds);
    }
    for (Json line : longhand.metrics("run")) {
      for (const char* timed : {"seconds", "waited"}) {
        if (line.contains(timed)) line[timed] = nullptr;
      }
      all += line.dump();
    }
    for (const char* file : {"run/report.html", "run/inspect.html"}) {
      std::string page = contents(longhand.path(file));
      BOOST_TEST(contains(page, "<svg"));
      // Removes the chart of tokens per second, which differs between runs.
      if (const auto speed = page.find("Tokens per second"); speed != page.npos) {
        const auto begin = page.rfind("<figure", speed);
        page.erase(begin, page.find("</figure>", speed) - begin);
      }
      all += page;
    }
    return all;
  };
  const std::string plain = made_in("C");
  for (const char* name : languages) BOOST_TEST((made_in(name) == plain), name);
}

BOOST_AUTO_TEST_CASE(tables_and_errors_use_decimal_points_in_every_locale) {
  for (const char* name : languages) {
    const Program longhand;
    const std::string environment = std::string("LC_ALL=") + name;
    const Program::Outcome refused = longhand("train --task flip-flop --rate 0,5", environment);
    BOOST_TEST(refused.status == 2);
    BOOST_TEST(contains(refused.err, "expected a number from 0 to 1000, got \"0,5\""));
    const Program::Outcome table = longhand("gradcheck layer_norm", environment);
    BOOST_TEST(table.status == 0);
    const auto comma_within_a_number = [&](std::size_t i) {
      const auto digit = [&](std::size_t at) { return std::isdigit(table.out[at]) != 0; };
      return table.out[i] == ',' && digit(i - 1) && digit(i + 1);
    };
    for (std::size_t i = 1; i + 1 < table.out.size(); ++i) {
      BOOST_TEST(!comma_within_a_number(i), table.out);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
