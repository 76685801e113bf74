#include "nn/training/checkpoint_store.h"

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <vector>
#include "tests/check.h"

#include "core/contract/elementwise.h"
#include "core/error.h"
#include "tests/contents.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

BOOST_AUTO_TEST_SUITE(checkpoint_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  TemporaryFolder folder;

  Parameters make(const Shape& shape, std::uint64_t seed, DType type = DType::f32,
                  const char* name = "w") const {
    Parameters parameters(*backend, {type}, seed);
    parameters.add("first", {2}, normal(1), false);
    parameters.add(name, shape, normal(1), true);
    return parameters;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_saved_checkpoint_is_loaded_bit_for_bit, Fixture) {
  for (const DType type : {DType::f32, DType::f64}) {
    const Parameters saved = make({3, 5}, 1, type), loaded = make({3, 5}, 2, type);
    const AdamOptimizer adam(saved, {}), other(loaded, {});
    (*backend)(Fill{.value = 0.1, .y = adam.state()[3].tensor});
    save_checkpoint(folder / "a", {.step = 12, .score = 0.1, .more = {{"k", "v"}}}, saved, &adam);
    const CheckpointInfo info = load_checkpoint(folder / "a", loaded, &other);
    BOOST_TEST(info.step == 12);
    BOOST_TEST(info.score.value() == 0.1);
    BOOST_TEST(info.more.at("k") == "v");
    for (std::size_t i = 0; i < 2; ++i) {
      BOOST_TEST(saved.all()[i].value().to_doubles() == loaded.all()[i].value().to_doubles());
    }
    for (std::size_t i = 0; i < 4; ++i) {
      BOOST_TEST(adam.state()[i].tensor.to_doubles() == other.state()[i].tensor.to_doubles());
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_of_another_model_is_refused_naming_the_tensor, Fixture) {
  const Parameters saved = make({3, 5}, 1);
  save_checkpoint(folder / "a", {.step = 1}, saved, nullptr);
  const auto load_into = [&](const Parameters& parameters) {
    const auto before = parameters.all()[0].value().to_doubles();
    const auto load = [&] { load_checkpoint(folder / "a", parameters); };
    return std::pair(std::function<void()>(load), before);
  };
  const Parameters wider = make({3, 6}, 2), wide = make({3, 5}, 2, DType::f64),
                   renamed = make({3, 5}, 2, DType::f32, "v");
  expect_refusal(load_into(wider).first, "\"w\"");
  expect_refusal(load_into(wider).first, "expected F32 [3, 6], got F32 [3, 5]");
  expect_refusal(load_into(wide).first, "\"first\"");
  expect_refusal(load_into(renamed).first, "\"v\"");
  Parameters fewer(*backend, {DType::f32}, 3);
  fewer.add("first", {2}, normal(1), false);
  const auto before = fewer.all()[0].value().to_doubles();
  expect_refusal(load_into(fewer).first,
                 "tensor \"w\": expected no tensor of this name, because the model has no such "
                 "parameter, got [3, 5] F32");
  BOOST_TEST(fewer.all()[0].value().to_doubles() == before);
  // This checkpoint was saved without the state of the optimizer, so the state cannot be loaded.
  const AdamOptimizer adam(saved, {});
  expect_refusal([&] { load_checkpoint(folder / "a", saved, &adam); }, "optimizer.safetensors");
  expect_refusal([&] { load_checkpoint(folder / "none", saved); }, "model.safetensors");
}

BOOST_FIXTURE_TEST_CASE(matrices_are_loaded_as_bf16_from_files_of_any_float_type, Fixture) {
  const auto cpu = make_cpu_backend({.threads = 1});
  const auto make_in = [&](std::optional<DType> matrices, std::uint64_t seed) {
    Parameters parameters(*cpu, {.matrices = matrices}, seed);
    parameters.add("matrix", {700, 3}, normal(1), true);
    parameters.add("gain", {5}, normal(1), false);
    return parameters;
  };
  const auto numbers = [](const Parameters& p, int i) {
    return p.all()[static_cast<std::size_t>(i)].value().to_doubles();
  };
  const Parameters full = make_in({}, 1), half = make_in(DType::bf16, 2), again = make_in({}, 3);
  BOOST_TEST(half.all()[0].frozen());
  BOOST_TEST(!half.all()[1].frozen());
  save_checkpoint(folder / "full", {.step = 1}, full);
  BOOST_TEST(!has_bf16_matrices(folder / "full"));
  load_checkpoint(folder / "full", half);
  const auto exact = numbers(full, 0), rounded = numbers(half, 0);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    BOOST_TEST(rounded[i] ==
               static_cast<double>(static_cast<float>(bf16(static_cast<float>(exact[i])))));
  }
  BOOST_TEST(rounded != exact);
  BOOST_TEST(numbers(half, 1) == numbers(full, 1));

  save_checkpoint(folder / "half", {.step = 2}, half);
  BOOST_TEST(has_bf16_matrices(folder / "half"));
  load_checkpoint(folder / "half", again);
  BOOST_TEST(numbers(again, 0) == rounded);
  BOOST_TEST(numbers(again, 1) == numbers(full, 1));

  // Two invalid types of matrices: bf16 on the reference backend, which does not support it, and
  // f64 in a model of f32.
  expect_refusal([&] { Parameters(*backend, {.matrices = DType::bf16}, 1); }, "bf16");
  expect_refusal([&] { Parameters(*cpu, {.type = DType::f32, .matrices = DType::f64}, 1); },
                 "expected matrices of f32 (or bf16 in an f32 model), got f64");
  const Parameters wide = [&] {
    Parameters parameters(*backend, {DType::f64}, 1);
    parameters.add("matrix", {700, 3}, normal(1), true);
    parameters.add("gain", {5}, normal(1), false);
    return parameters;
  }();
  expect_refusal([&] { load_checkpoint(folder / "half", wide); }, "\"matrix\"");
}

BOOST_FIXTURE_TEST_CASE(an_existing_folder_is_replaced_as_a_whole, Fixture) {
  const Parameters one = make({3, 5}, 1), two = make({3, 5}, 2);
  const AdamOptimizer adam(one, {});
  save_checkpoint(folder / "a", {.step = 1}, one, &adam);
  save_checkpoint(folder / "a", {.step = 2}, two, nullptr);
  BOOST_TEST(read_checkpoint_info(folder / "a").step == 2);
  BOOST_TEST(!fs::exists(folder / "a" / "optimizer.safetensors"));
  BOOST_TEST(folder.count() == 1);
}

BOOST_FIXTURE_TEST_CASE(leftovers_of_an_interrupted_save_are_removed_and_never_loaded, Fixture) {
  CheckpointStore store(folder.path(), 1);
  fs::create_directories(folder / ".unfinished-1-step-9");
  std::ofstream(folder / ".unfinished-1-step-9" / "model.safetensors") << "half";
  fs::create_directories(folder / "step-x");
  fs::create_directories(folder / "step-999");  // an empty checkpoint folder
  std::ofstream(folder / "step-999" / ".longhand-1-2.tmp") << "half a score";
  BOOST_TEST(!store.latest());
  store.open();
  BOOST_TEST(!fs::exists(folder / ".unfinished-1-step-9"));
  BOOST_TEST(fs::is_empty(folder / "step-999"));
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_cannot_be_written_is_reported, Fixture) {
  std::ofstream(folder / "file") << "x";
  const Parameters one = make({1, 1}, 1);
  expect_refusal([&] { save_checkpoint(folder / "file" / "a", {.step = 1}, one, nullptr); },
                 "cannot be created");
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_in_parts_is_loaded_bit_for_bit, Fixture) {
  const auto make_many = [&](std::uint64_t seed) {
    Parameters parameters(*backend, {DType::f32}, seed);
    for (int i = 0; i < 20; ++i) parameters.add(text("w", i), {10, 1 + i}, normal(1), true);
    return parameters;
  };
  const Parameters saved = make_many(1), loaded = make_many(2);
  const AdamOptimizer adam(saved, {}), other(loaded, {});
  (*backend)(Fill{.value = 0.1, .y = adam.state()[3].tensor});
  CheckpointStore store(folder.path(), 1, 2000);
  store.save({.step = 12, .score = -1.25e-300}, saved, &adam);
  int files = 0;
  for (const auto& entry : fs::directory_iterator(store.path(12))) {
    if (entry.path().extension() == ".safetensors") {
      BOOST_TEST(entry.file_size() <= 2000u);
      ++files;
    }
  }
  BOOST_TEST(files >= 10);
  BOOST_TEST(read_checkpoint_info(store.path(12)).score.value() == -1.25e-300);
  BOOST_TEST(load_checkpoint(store.path(12), loaded, &other).step == 12);
  for (std::size_t i = 0; i < 20; ++i) {
    BOOST_TEST(saved.all()[i].value().to_doubles() == loaded.all()[i].value().to_doubles());
  }
  for (std::size_t i = 0; i < 40; ++i) {
    BOOST_TEST(adam.state()[i].tensor.to_doubles() == other.state()[i].tensor.to_doubles());
  }

  // Replaces one part of the checkpoint by the same part of another step's checkpoint, whose
  // tensors have the same names and shapes.
  save_checkpoint(folder / "b", {.step = 13}, saved, &adam, 2000);
  const auto part = [&](const fs::path& of, const std::string& name) {
    for (const auto& entry : fs::directory_iterator(of)) {
      if (entry.path().filename().string().starts_with(name)) return entry.path();
    }
    return fs::path();
  };
  const fs::path mixed = part(folder / "b", "model-00002");
  BOOST_REQUIRE(!mixed.empty());
  fs::copy_file(mixed, part(store.path(12), "model-00002"), fs::copy_options::overwrite_existing);
  const auto before = loaded.all()[0].value().to_doubles();
  expect_refusal([&] { load_checkpoint(store.path(12), loaded, &other); },
                 "parts of two checkpoints");
  BOOST_TEST(loaded.all()[0].value().to_doubles() == before);
  fs::remove(part(folder / "b", "optimizer-00003"));
  expect_refusal([&] { load_checkpoint(folder / "b", loaded, &other); }, "optimizer-00003-of-");
  BOOST_TEST(load_checkpoint(folder / "b", loaded).step == 13);
}

BOOST_FIXTURE_TEST_CASE(a_tensor_too_large_for_any_file_is_refused_before_saving, Fixture) {
  const Parameters large = make({30, 50}, 1);
  const AdamOptimizer adam(large, {});
  check_file_size(large, adam, {}, 0);
  check_file_size(large, adam, {}, 7000);
  expect_refusal([&] { check_file_size(large, adam, {}, 6000); },
                 "model.safetensors: tensor \"w\": expected at most 6000 bytes");
  // Finds the smallest limit of the file size that check_file_size() accepts. With this limit,
  // saving must succeed even with the longest possible metadata.
  for (std::uint64_t most = 6000; most < 7000; ++most) {
    try {
      check_file_size(large, adam, {{"k", "v"}}, most);
    } catch (const Error&) {
      continue;
    }
    save_checkpoint(
        folder / "a",
        {.step = std::int64_t{1} << 60, .score = -1.2345678901234567e-300, .more = {{"k", "v"}}},
        large, &adam, most);
    break;
  }
  BOOST_TEST(fs::exists(folder / "a"));
}

BOOST_FIXTURE_TEST_CASE(every_flipped_bit_is_detected, Fixture) {
  Parameters saved(*backend, {DType::f32}, 1), loaded(*backend, {DType::f32}, 2);
  for (Parameters* p : {&saved, &loaded}) {
    p->add("first", {3, 5}, normal(1), false);
    p->add("empty", {0}, normal(1), false);
    p->add("last", {2}, normal(1), true);
  }
  const AdamOptimizer adam(saved, {}), other(loaded, {});
  (*backend)(Fill{.value = 0.1, .y = adam.state()[1].tensor});
  const auto load = [&](const fs::path& from) { load_checkpoint(from, loaded, &other); };
  for (const std::uint64_t most : {0, 700}) {
    const fs::path at = folder / ("of" + std::to_string(most));
    save_checkpoint(at, {.step = 12, .more = {{"k", "v"}}}, saved, &adam, most);
    BOOST_TEST(check_checkpoint(at).checksums);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(at)) {
      if (entry.path().extension() != ".safetensors") continue;
      ++files;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      const auto size = static_cast<std::int64_t>(entry.file_size());
      for (std::int64_t bit = 0; bit < 8 * size; bit += most == 0 ? 1 : 7) {
        const auto put = [&](char byte) {
          file.seekp(bit / 8);
          file.put(byte).flush();
        };
        file.seekg(bit / 8);
        const char byte = static_cast<char>(file.get());
        put(static_cast<char>(byte ^ (1 << (bit % 8))));
        BOOST_TEST_CONTEXT(entry.path() << ", bit " << bit % 8 << " of byte " << bit / 8) {
          BOOST_CHECK_THROW(check_checkpoint(at), Error);
          if (bit % 5 == 0) BOOST_CHECK_THROW(load(at), Error);
        }
        put(byte);
      }
    }
    BOOST_TEST(files == (most == 0 ? 2 : 5));
    load(at);
  }
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_written_without_checksums_is_loaded, Fixture) {
  const Parameters saved = make({3, 5}, 1), loaded = make({3, 5}, 2);
  save_checkpoint(folder / "a", {.step = 12}, saved, nullptr);
  // Converts the checkpoint to the format of earlier versions, which stored no checksums, but
  // stored the score in the metadata.
  const fs::path path = folder / "a" / "model.safetensors";
  const std::string bytes = contents(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::string header = bytes.substr(8, length);
  const std::size_t begin = header.find("\"crc32c\""), end = header.find("\"step\"");
  BOOST_REQUIRE((begin != std::string::npos && end != std::string::npos && begin < end));
  header.replace(begin, end - begin, "\"score\":\"0.25\",");
  header.resize(length, ' ');
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 8) + header + bytes.substr(8 + length);
  const CheckpointInfo info = load_checkpoint(folder / "a", loaded);
  BOOST_TEST(info.score.value() == 0.25);
  BOOST_TEST(info.more.empty());
  BOOST_TEST(!check_checkpoint(folder / "a").checksums);
  BOOST_TEST(saved.all()[1].value().to_doubles() == loaded.all()[1].value().to_doubles());
}

BOOST_FIXTURE_TEST_CASE(a_folder_named_after_another_step_is_refused, Fixture) {
  const Parameters saved = make({3, 5}, 1), loaded = make({3, 5}, 2);
  const AdamOptimizer adam(saved, {}), other(loaded, {});
  CheckpointStore(folder.path(), 1).save({.step = 4000}, saved, &adam);
  fs::rename(folder / "step-4000", folder / "step-3900");
  const fs::path renamed = folder / "step-3900";
  for (const auto& look : std::vector<std::function<void()>>{
           [&] { check_checkpoint(renamed); }, [&] { read_checkpoint_info(renamed); },
           [&] { load_values(renamed, loaded); },
           [&] { load_checkpoint(renamed, loaded, &other); }}) {
    expect_refusal(look, "step: expected 3900, the step in the folder's name, got 4000");
  }
  BOOST_TEST(saved.all()[1].value().to_doubles() != loaded.all()[1].value().to_doubles());
  // In a folder with another name than step-N, a checkpoint of any step is accepted.
  fs::rename(renamed, folder / "kept");
  BOOST_TEST(load_checkpoint(folder / "kept", loaded, &other).step == 4000);
}

BOOST_FIXTURE_TEST_CASE(a_score_that_is_not_a_number_is_reported_as_damage, Fixture) {
  const Parameters saved = make({3, 5}, 1);
  save_checkpoint(folder / "a", {.step = 1, .score = 0.5}, saved, nullptr);
  for (const char* score : {"nan", "-nan", "NAN\n", "x", "0.5.5"}) {
    std::ofstream(folder / "a" / "score") << score;
    expect_refusal([&] { check_checkpoint(folder / "a"); }, "a/score: ");
  }
  std::ofstream(folder / "a" / "score") << "-inf\n";  // -inf is a valid score
  BOOST_TEST(read_checkpoint_info(folder / "a").score.value() < 0);
}

BOOST_FIXTURE_TEST_CASE(values_that_are_not_finite_are_refused_even_with_valid_checksums, Fixture) {
  for (const DType type : {DType::f32, DType::f64}) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
      const Parameters saved = make({3, 5}, 1, type), loaded = make({3, 5}, 2, type);
      const AdamOptimizer adam(saved, {}), other(loaded, {});
      const auto refused = [&](const std::string& tensor) {
        save_checkpoint(folder / "a", {.step = 1}, saved, &adam);
        const std::string what =
            "tensor \"" + tensor + "\": damaged: expected finite numbers, got ";
        expect_refusal([&] { check_checkpoint(folder / "a"); }, what);
        expect_refusal([&] { load_checkpoint(folder / "a", loaded, &other); }, what);
      };
      const Tensor value = saved.all()[1].value(), moment = adam.state()[3].tensor;
      (*backend)(Fill{.value = bad, .y = moment.slice(1, 1)});
      refused("w.v");
      (*backend)(Fill{.value = 0, .y = moment});
      (*backend)(Fill{.value = bad, .y = value.slice(2, 1)});
      refused("w");
      expect_refusal([&] { load_values(folder / "a", loaded); },
                     "got 5 infinities or NaNs, the first at index 10");
    }
  }
}

BOOST_FIXTURE_TEST_CASE(the_file_best_names_the_best_checkpoint_or_is_refused, Fixture) {
  const Parameters parameters = make({3, 5}, 1);
  const AdamOptimizer adam(parameters, {});
  CheckpointStore store(folder.path(), 9);
  BOOST_TEST(!store.best());
  for (const int step : {1, 2, 3, 4}) {
    store.save({.step = step, .score = step == 2 ? 0.9 : 0.1 * step}, parameters, &adam);
  }
  store.mark_best(2);
  BOOST_TEST(store.best().value() == 2);
  BOOST_TEST(store.best_up_to(4).value() == 2);
  BOOST_TEST(store.best_up_to(1).value() == 1);
  BOOST_TEST(!store.best_up_to(0));
  for (const char* damage :
       {"", "step-", "step-2x\n", "2\n", "step-7\n", "step-99999999999999999999"}) {
    std::ofstream(folder / "best") << damage;
    BOOST_TEST(contains(refusal([&] { store.best(); }), "/best: "));
    // This call must remove no checkpoint.
    store.save({.step = 4, .score = 0.4}, parameters, &adam);
    BOOST_TEST(store.steps().size() == 4u);
  }
  // If set_aside_after() removes the best checkpoint from the list, the best of the others takes
  // its place.
  store.mark_best(2);
  CheckpointStore(folder.path(), 1).set_aside_after(1);
  BOOST_TEST(store.best().value() == 1);
  BOOST_TEST(store.steps() == (std::vector<std::int64_t>{1}));
}

BOOST_FIXTURE_TEST_CASE(a_moved_run_folder_gets_its_checkpoint_and_an_error, Fixture) {
  const Parameters parameters = make({3, 5}, 1);
  const AdamOptimizer adam(parameters, {});
  CheckpointStore store(folder / "run", 1);
  store.open();
  fs::rename(folder / "run", folder / "moved");
  expect_refusal([&] { store.save({.step = 1}, parameters, &adam); }, "moved or replaced");
  BOOST_TEST(!fs::exists(folder / "run"));
  BOOST_TEST(check_checkpoint(folder / "moved" / "step-1").optimizer);
  fs::remove_all(folder / "moved");
  expect_refusal([&] { store.save({.step = 2}, parameters, &adam); },
                 "run: the folder was removed");
  BOOST_TEST(!fs::exists(folder / "run"));
}

BOOST_AUTO_TEST_SUITE_END()
