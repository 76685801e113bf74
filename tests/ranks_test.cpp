#include "nn/ranks/threads.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include "tests/check.h"

#include "core/rng.h"
#include "core/safetensors_parts.h"
#include "cuda/emulator/backend.h"
#include "nn/models/decoder.h"
#include "nn/ranks/tree.h"
#include "tests/contents.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"
#include "tests/training.h"

BOOST_AUTO_TEST_SUITE(ranks_test)

using namespace longhand;
using namespace longhand::nn;
namespace fs = std::filesystem;

namespace {

using Values = std::vector<std::vector<double>>;
using Numbers = std::vector<float>;

/// Calls rank(communicator) on each of `size` ranks and returns the results.
template <class F>
auto on_ranks(int size, F&& rank) {
  std::vector<decltype(rank(single_rank()))> all(static_cast<std::size_t>(size));
  run_ranks(size, [&](Communicator& ranks) {
    all[static_cast<std::size_t>(ranks.rank())] = rank(ranks);
  });
  return all;
}

constexpr std::int64_t rank_words = 11;

/// A batch of sequences with different lengths. Batch 5 of every step and batch 2 of every third
/// step have no scored target.
Batch ragged_batch(std::int64_t step, std::int64_t place) {
  Rng rng(7, Purpose::data, static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(place));
  Batch batch;
  const std::int64_t sequences = 1 + static_cast<std::int64_t>(rng.below(3));
  const bool counts = place != 5 && !(place == 2 && step % 3 == 0);
  for (std::int64_t s = 0; s < sequences; ++s) {
    const auto length = static_cast<std::int32_t>(2 + rng.below(14));
    batch.lengths.push_back(length);
    for (std::int32_t i = 0; i < length; ++i) {
      const auto token = static_cast<std::int32_t>(rng.below(rank_words));
      batch.tokens.push_back(token);
      batch.targets.push_back(counts && rng.chance(0.8) ? (5 * token + 2) % 11 : -1);
      batch.weights.push_back(0.1f * static_cast<float>(1 + rng.below(9)));
    }
  }
  return batch;
}

DecoderConfig softmax_fal() {
  return {.vocabulary = rank_words,
          .width = 32,
          .layers = 2,
          .mixers = parse_layers("softmax:3,fal:1", 32),
          .inner = 48};
}

DecoderConfig chacal() {
  return {.vocabulary = rank_words,
          .width = 32,
          .layers = 1,
          .mixers = parse_layers("chacal:2", 32),
          .inner = 48};
}

DecoderConfig llama_like() {
  return {.vocabulary = rank_words,
          .width = 32,
          .layers = 2,
          .norm = NormKind::rms,
          .order = Order::sequential,
          .mixers = parse_layers("softmax:4/2", 32),
          .inner = 40,
          .activation = Activation::silu,
          .gated = true,
          .tied = true};
}

TrainerOptions cut_in(std::int64_t parts, std::int64_t accumulation, std::int64_t steps) {
  return {.steps = steps,
          .parts = parts,
          .accumulation = accumulation,
          .schedule = {.peak = 1e-2, .warm_up = 2, .steps = 12},
          .optimizer = AdamOptions{.decay = 0.01, .clip = 0.5}};
}

struct RankRun {
  Values values;
  std::vector<double> losses, norms = {};
};

RankRun trained(const DecoderConfig& config, const TrainerOptions& options, Communicator& ranks,
                bool recompute = false) {
  const auto backend = make_cpu_backend({.threads = 1});
  Decoder model(*backend, config, 3);
  model.recompute = recompute;
  RankRun run;
  Trainer trainer(model, ragged_batch, options,
                  {.report = [&](const StepReport& r) { run.losses.push_back(r.loss); }}, ranks);
  trainer.resume_latest();
  trainer.run();
  run.values = values_of(model);
  return run;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_receives_all_messages_in_order) {
  for (const int size : {1, 2, 4, 8}) {
    const auto all = on_ranks(size, [](Communicator& ranks) {
      const std::vector<double> mine{1.0 * ranks.rank(), 0.5};
      return ranks.gather(std::span<const double>(mine));
    });
    std::vector<double> expected;
    for (int r = 0; r < size; ++r) expected.insert(expected.end(), {1.0 * r, 0.5});
    for (const auto& heard : all) BOOST_TEST(heard == expected);

    const auto words = on_ranks(size, [](Communicator& ranks) {
      return ranks.gather(std::string(static_cast<std::size_t>(ranks.rank()), 'x'));
    });
    for (const auto& heard : words) {
      BOOST_REQUIRE(heard.size() == static_cast<std::size_t>(size));
      for (std::size_t r = 0; r < heard.size(); ++r) BOOST_TEST(heard[r] == std::string(r, 'x'));
    }
  }
}

BOOST_AUTO_TEST_CASE(any_is_true_on_every_rank_if_it_is_true_on_one) {
  for (const int yes : {-1, 0, 3}) {
    const auto all =
        on_ranks(4, [&](Communicator& ranks) { return ranks.any(ranks.rank() == yes) ? 1 : 0; });
    BOOST_TEST(all == std::vector<int>(4, yes < 0 ? 0 : 1));
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_added_in_one_tree) {
  // The rounded sum of the random numbers in this test depends on the order of additions. The
  // lengths are odd, so the two halves of a message have different lengths. A tensor of 300,001
  // numbers is sent in several pieces.
  for (const std::int64_t length : {std::int64_t{1}, std::int64_t{5}, std::int64_t{300'001}}) {
    std::vector<std::vector<double>> parts(8);
    Rng rng(5, Purpose::test);
    for (auto& part : parts) {
      for (std::int64_t i = 0; i < length; ++i) {
        part.push_back(static_cast<float>(rng.normal() * std::exp(4 * rng.normal())));
      }
    }
    std::vector<double> expected;
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
      Tree<float, float (*)(float, float)> tree([](float a, float b) { return a + b; });
      for (const auto& part : parts) tree.push(static_cast<float>(part[i]));
      expected.push_back(tree.take());
    }
    for (const int size : {1, 2, 4, 8}) {
      const auto all = on_ranks(size, [&](Communicator& ranks) {
        const auto backend = make_cpu_backend({.threads = 1});
        Tree<Numbers, Numbers (*)(Numbers, Numbers)> own([](Numbers a, Numbers b) {
          for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
          return a;
        });
        const int each = 8 / size;
        for (int k = 0; k < each; ++k) {
          const auto& part = parts[static_cast<std::size_t>(each * ranks.rank() + k)];
          own.push(Numbers(part.begin(), part.end()));
        }
        const Numbers sum = own.take();
        const Tensor whole = Tensor::from(*backend, {length}, DType::f32,
                                          std::vector<double>(sum.begin(), sum.end()));
        // The values are summed as two tensors, of which the first may be empty.
        const std::int64_t half = length / 2;
        ranks.sum(std::vector<Tensor>{whole.slice(0, half), whole.slice(half, length - half)});
        return whole.to_doubles();
      });
      for (const auto& sum : all) BOOST_CHECK(sum == expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_rank_sends_twice_the_numbers_whatever_the_number_of_ranks) {
  for (const int size : {2, 4, 8}) {
    const auto all = on_ranks(size, [](Communicator& ranks) {
      const auto backend = make_cpu_backend({.threads = 1});
      const Tensor x = Tensor::zeros(*backend, {1 << 16}, DType::f32);
      ranks.sum(std::vector<Tensor>{x});
      return static_cast<double>(ranks.sent()) / static_cast<double>(x.bytes());
    });
    for (const double sent : all) BOOST_TEST(sent == 2.0 * (size - 1) / size);
  }
}

BOOST_AUTO_TEST_CASE(a_failing_rank_reports_and_the_others_end) {
  const auto outcomes = on_ranks(4, [](Communicator& ranks) -> std::string {
    try {
      ranks.together([&] {
        if (ranks.rank() >= 2) fail("disk full on ", ranks.rank());
      });
    } catch (const FailedElsewhere& error) {
      return text("elsewhere: ", error.what());
    } catch (const Error& error) {
      return error.what();
    }
    return "done";
  });
  BOOST_TEST(outcomes ==
             std::vector<std::string>({"elsewhere: rank 2 failed", "elsewhere: rank 2 failed",
                                       "disk full on 2", "elsewhere: rank 2 failed"}));
}

BOOST_AUTO_TEST_CASE(waiting_for_a_rank_that_left_ends_with_an_error) {
  const auto work = [](Communicator& ranks) {
    if (ranks.rank() == 1) fail("no more memory");
    ranks.meet();
  };
  expect_refusal([&] { run_ranks(2, work); }, "no more memory");
  const auto quiet = [](Communicator& ranks) {
    if (ranks.rank() == 1) return;
    ranks.meet();
  };
  expect_refusal([&] { run_ranks(2, quiet); }, "rank 1 has ended");
}

BOOST_AUTO_TEST_CASE(three_ranks_are_refused) {
  expect_refusal([] { run_ranks(3, [](Communicator&) {}); }, "power of two, got 3");
}

BOOST_AUTO_TEST_CASE(any_number_of_ranks_trains_to_the_same_bits) {
  for (const DecoderConfig& config : {softmax_fal(), chacal(), llama_like()}) {
    for (const std::int64_t accumulation : {1, 3}) {
      TrainerOptions options = cut_in(8, accumulation, 6);
      options.bucket_bytes = accumulation == 3 ? 2048 : GradientExchange::bucket_bytes;
      const RankRun one = trained(config, options, single_rank());
      BOOST_TEST(one.losses.size() == 6u);
      for (const int size : {2, 4, 8}) {
        const auto runs = on_ranks(size, [&](Communicator& ranks) {
          return trained(config, options, ranks, accumulation == 3);
        });
        for (const RankRun& run : runs) {
          BOOST_CHECK(run.values == one.values);
          BOOST_CHECK(run.losses == one.losses);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_rank_receives_the_tensors_of_each_owner) {
  // There are seven tensors of different sizes. Rank 1 owns no tensor, and the largest tensor is
  // sent in several pieces.
  const std::vector<int> owners{0, 2, 2, 3, 0, 3, 2};
  const std::vector<std::int64_t> sizes{3, 1, 2'000'000, 7, 0, 2, 5};
  const auto all = on_ranks(4, [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool own = owners[i] == ranks.rank();
      std::vector<double> values(static_cast<std::size_t>(sizes[i]), own ? 10.0 + owners[i] : -1);
      tensors.push_back(Tensor::from(*backend, {sizes[i]}, DType::f32, values));
    }
    ranks.share(tensors, owners);
    bool right = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (const double x : tensors[i].to_doubles()) right = right && x == 10.0 + owners[i];
    }
    return right ? 1 : 0;
  });
  BOOST_TEST(all == std::vector<int>(4, 1));
}

/// The contents of a checkpoint: all tensors of model and optimizer, by name.
std::map<std::string, std::vector<std::byte>> tensors_of(const fs::path& checkpoint) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const char* name : {"model", "optimizer"}) {
    const auto parts = SafetensorsParts::open(checkpoint, name);
    parts.check_exact();
    parts.check_sums();
    for (const SafetensorsFile& file : parts.files()) {
      for (const SafetensorsEntry& entry : file.entries()) {
        all[entry.name].assign(entry.bytes.begin(), entry.bytes.end());
      }
    }
  }
  return all;
}

BOOST_AUTO_TEST_CASE(sharing_state_changes_no_bit_and_checkpoints_load_on_any_number_of_ranks) {
  for (const DecoderConfig& config : {softmax_fal(), chacal(), llama_like()}) {
    const TemporaryFolder whole_folder;
    TrainerOptions options = cut_in(8, 1, 7);
    options.checkpoints.folder = whole_folder.path();
    const RankRun whole = trained(config, options, single_rank());
    for (const Sharing sharing : {Sharing::nothing, Sharing::moments, Sharing::gradients}) {
      const TemporaryFolder folder;
      options.sharing = sharing;
      options.checkpoints.folder = folder.path();
      options.bucket_bytes = 4096;
      const auto until = [&](std::int64_t steps, int size) {
        TrainerOptions some = options;
        some.steps = steps;
        return on_ranks(size, [&](Communicator& ranks) { return trained(config, some, ranks); });
      };
      until(2, 4);
      until(4, 2);
      until(5, 8);
      until(6, 1);
      for (const RankRun& run : until(7, 4)) BOOST_CHECK(run.values == whole.values);
      BOOST_CHECK(tensors_of(folder / "step-7") == tensors_of(whole_folder / "step-7"));
      BOOST_TEST(fs::exists(folder / "step-7/model.safetensors") == (sharing == Sharing::nothing));
      BOOST_TEST(check_checkpoint(folder / "step-7").optimizer);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_that_are_shared_take_less_memory) {
  // There are as many ranks as parts of a step, so each rank computes one part. A rank that shares
  // gradients then stores only its share of their sums and the data in transit.
  const DecoderConfig config{.vocabulary = rank_words,
                             .width = 64,
                             .layers = 8,
                             .mixers = parse_layers("softmax:4", 64),
                             .inner = 256};
  const auto peak = [&](Sharing sharing) {
    const auto peaks = on_ranks(4, [&](Communicator& ranks) {
      const auto backend = make_cpu_backend({.threads = 1});
      Decoder model(*backend, config, 3);
      TrainerOptions options = cut_in(4, 1, 2);
      options.sharing = sharing;
      options.bucket_bytes = 64 << 10;
      Trainer(model, ragged_batch, options, {}, ranks).run();
      return static_cast<double>(backend->memory().use().peak) /
             (4.0 * static_cast<double>(model.parameters().count()));
    });
    return std::ranges::max(peaks);  // peak memory / size of the parameters in f32
  };
  const double nothing = peak(Sharing::nothing), moments = peak(Sharing::moments),
               gradients = peak(Sharing::gradients);
  // Adam's moments have twice the size of the parameters. With sharing, each of the four ranks
  // stores only a quarter of them. This saves 1.5 times the size of the parameters.
  BOOST_TEST(moments < nothing - 1.2);
  // The gradients have the size of the parameters. With sharing, each of the four ranks stores only
  // a quarter of the gradients, which saves 0.75 times the size of the parameters. The rank also
  // stores data in transit, so the saving is smaller.
  BOOST_TEST(gradients < moments - 0.4);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_written_by_ranks_is_complete_or_absent) {
  // If one rank cannot write its part of a checkpoint, neither a folder with the checkpoint's name
  // nor temporary files may remain.
  const TemporaryFolder folder;
  const auto work = [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    Decoder model(*backend, softmax_fal(), 3);
    const AdamOptimizer optimizer(model.parameters(), {}, {}, &ranks);
    CheckpointStore store(folder.path(), 2, ranks.rank() == 2 ? 1000 : 0);
    store.save({.step = 3}, model.parameters(), optimizer, ranks);
  };
  expect_refusal([&] { run_ranks(4, work); }, "expected at most 1000 bytes");
  BOOST_TEST(fs::is_empty(folder.path()));
}

BOOST_AUTO_TEST_CASE(sums_in_the_background_have_the_same_bits) {
  for (const int size : {2, 4, 8}) {
    const auto right = on_ranks(size, [&](Communicator& ranks) {
      const auto backend = make_cpu_backend({.threads = 1});
      const std::int64_t n = 2'500'001;  // a tensor of this size is sent in several pieces
      std::vector<double> values(static_cast<std::size_t>(n));
      Rng rng(9, Purpose::test, 0, static_cast<std::uint32_t>(ranks.rank()));
      for (double& x : values) x = rng.normal() * std::exp(4 * rng.normal());
      const auto make = [&] { return Tensor::from(*backend, {n}, DType::f32, values); };
      const Tensor plain = make(), whole = make(), shared = make();
      ranks.sum({&plain, 1});
      std::vector<std::size_t> shares{0};  // boundaries of uneven shares; one share is empty
      for (int r = 1; r < size; ++r) {
        shares.push_back(r == 1 ? 0 : static_cast<std::size_t>(n / size * r + r));
      }
      shares.push_back(static_cast<std::size_t>(n));
      ranks.begin_sum(whole);
      const std::uint64_t last = ranks.begin_sum(shared, shares);
      ranks.finish();
      const auto expected = plain.to_doubles(), all = whole.to_doubles(), own = shared.to_doubles();
      const auto share = static_cast<std::size_t>(ranks.share_of(ranks.rank()));
      const auto first = static_cast<std::ptrdiff_t>(shares[share]),
                 end = static_cast<std::ptrdiff_t>(shares[share + 1]);
      return last == 2 && ranks.sums_done() == 2 && all == expected &&
                     std::equal(own.begin() + first, own.begin() + end, expected.begin() + first)
                 ? 1
                 : 0;
    });
    BOOST_TEST(right == std::vector<int>(static_cast<std::size_t>(size), 1));
  }
}

/// Data in transit between emulated devices, or between hosts. The thread that has locked the mutex
/// `devices` is the only one that may use a device.
struct Cables {
  std::mutex mutex, devices;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::vector<std::byte>> on_its_way;
};

/// Exchanges data between emulated CUDA devices, as NCCL does between real ones.
class EmulatedDevices final : public DeviceTransport {
 public:
  EmulatedDevices(Cables& cables, Backend& backend, int rank)
      : cables_(cables), backend_(backend), rank_(rank) {}
  void exchange(int peer, const void* send, std::size_t send_bytes, void* receive,
                std::size_t receive_bytes) override {
    std::vector<std::byte> bytes(send_bytes);
    backend_.download(bytes.data(), send, send_bytes);
    cables_.devices.unlock();
    std::unique_lock lock(cables_.mutex);
    cables_.changed.wait(lock, [&] { return !cables_.on_its_way.contains({rank_, peer}); });
    cables_.on_its_way[{rank_, peer}] = std::move(bytes);
    cables_.changed.notify_all();
    cables_.changed.wait(lock, [&] { return cables_.on_its_way.contains({peer, rank_}); });
    bytes = std::move(cables_.on_its_way.extract({peer, rank_}).mapped());
    cables_.changed.notify_all();
    lock.unlock();
    cables_.devices.lock();
    LONGHAND_CHECK(bytes.size() == receive_bytes, "expected ", receive_bytes, " bytes");
    backend_.upload(receive, bytes.data(), receive_bytes);
  }

 private:
  Cables& cables_;
  Backend& backend_;
  int rank_;
};

BOOST_AUTO_TEST_CASE(sums_on_devices_have_the_bits_of_the_hosts) {
  for (const int size : {2, 4}) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{3}, std::int64_t{1001}}) {
      Cables cables;
      const auto right = on_ranks(size, [&](Communicator& ranks) {
        std::vector<double> values(static_cast<std::size_t>(n));
        Rng rng(9, Purpose::test, 0, static_cast<std::uint32_t>(ranks.rank()));
        for (double& x : values) x = rng.normal() * std::exp(4 * rng.normal());
        const auto host = make_cpu_backend({.threads = 1});
        const Tensor on_host = Tensor::from(*host, {n}, DType::f32, values);
        ranks.sum({&on_host, 1});

        const std::lock_guard lock(cables.devices);
        const auto device = make_emulated_cuda_backend();
        ranks.reach_devices(std::make_unique<EmulatedDevices>(cables, *device, ranks.rank()));
        const Tensor on_device = Tensor::from(*device, {n}, DType::f32, values);
        const std::uint64_t before = ranks.sent();
        ranks.sum({&on_device, 1});
        return on_device.to_doubles() == on_host.to_doubles() && ranks.sent() > before ? 1 : 0;
      });
      BOOST_TEST(right == std::vector<int>(static_cast<std::size_t>(size), 1));
    }
  }
}

/// Exchanges messages between hosts. One lock guards all devices, so only one thread at a time uses
/// a device. An exchange unlocks them while it waits.
class CabledHosts final : public Transport {
 public:
  CabledHosts(Cables& cables, Cables& devices, int rank, int size)
      : cables_(cables), devices_(devices), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool serves_any_thread() const override { return false; }
  void exchange(int peer, std::span<const std::byte> send, std::span<std::byte> receive) override {
    devices_.devices.unlock();
    std::unique_lock lock(cables_.mutex);
    cables_.changed.wait(lock, [&] { return !cables_.on_its_way.contains({rank_, peer}); });
    cables_.on_its_way[{rank_, peer}].assign(send.begin(), send.end());
    cables_.changed.notify_all();
    cables_.changed.wait(lock, [&] { return cables_.on_its_way.contains({peer, rank_}); });
    const std::vector<std::byte> bytes =
        std::move(cables_.on_its_way.extract({peer, rank_}).mapped());
    cables_.changed.notify_all();
    lock.unlock();
    devices_.devices.lock();
    LONGHAND_CHECK(bytes.size() == receive.size(), "expected ", receive.size(), " bytes");
    std::ranges::copy(bytes, receive.begin());
  }

 private:
  Cables &cables_, &devices_;
  int rank_, size_;
};

/// A model in which one bias has 45 numbers. Ranks exchange gradients in buckets. Without padding,
/// the gradients that follow this bias in its bucket would not be aligned to 16 bytes.
DecoderConfig uneven() {
  DecoderConfig config = softmax_fal();
  config.layers = 1;
  config.inner = 45;
  return config;
}

/// Runs f on each rank. The devices of the ranks exchange data directly if `cabled`, otherwise
/// through their hosts.
template <class F>
auto on_devices(int size, bool cabled, F&& f) {
  Cables devices, hosts;
  return on_ranks(size, [&](Communicator& thread) {
    const std::lock_guard lock(devices.devices);
    Communicator ranks(std::make_unique<CabledHosts>(hosts, devices, thread.rank(), size));
    const auto backend = make_emulated_cuda_backend();
    if (cabled) {
      ranks.reach_devices(std::make_unique<EmulatedDevices>(devices, *backend, ranks.rank()));
    }
    return f(ranks, *backend);
  });
}

RankRun trained_on_device(Communicator& ranks, Backend& backend, const TrainerOptions& options) {
  Decoder model(backend, uneven(), 3);
  RankRun run;
  Trainer trainer(model, ragged_batch, options,
                  {.report =
                       [&](const StepReport& r) {
                         run.losses.push_back(r.loss);
                         run.norms.push_back(r.gradient_norm);
                       }},
                  ranks);
  trainer.resume_latest();
  trainer.run();
  run.values = values_of(model);
  return run;
}

BOOST_AUTO_TEST_CASE(ranks_on_devices_train_to_the_bits_of_one_device) {
  TrainerOptions options = cut_in(4, 1, 3);
  const auto backend = make_emulated_cuda_backend();
  const RankRun one = trained_on_device(single_rank(), *backend, options);
  BOOST_TEST(one.losses.size() == 3u);
  for (const Sharing sharing : {Sharing::nothing, Sharing::moments, Sharing::gradients}) {
    for (const int size : {2, 4}) {
      for (const bool cabled : {false, true}) {
        options.sharing = sharing;
        // The gradients are exchanged in several small buckets, or in a single large one.
        options.bucket_bytes = cabled ? 4096 : GradientExchange::bucket_bytes;
        const auto runs = on_devices(size, cabled, [&](Communicator& ranks, Backend& device) {
          return trained_on_device(ranks, device, options);
        });
        BOOST_TEST_CONTEXT("sharing " << static_cast<int>(sharing) << ", " << size << " ranks, "
                                      << (cabled ? "by cable" : "through hosts")) {
          for (const RankRun& run : runs) {
            BOOST_CHECK(run.values == one.values);
            BOOST_CHECK(run.losses == one.losses);
            BOOST_TEST(run.norms == one.norms);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(summed_gradients_lie_on_16_bytes_as_those_of_one_rank_do) {
  // On a CUDA device, square_sums adds the entries of a tensor in another order if the tensor is
  // not aligned to 16 bytes. Summed gradients must therefore be aligned as on one rank.
  const auto odd = on_ranks(2, [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    const Decoder model(*backend, uneven(), 3);
    GradientExchange exchange(ranks, model.parameters());
    const auto all = model.parameters().all();
    for (std::size_t i = all.size(); i-- > 0;) exchange.add(i, all[i].value());
    exchange.finish(Tensor::zeros(*backend, {1}, DType::f32));
    int count = 0;
    for (const Parameter& p : all) {
      if (reinterpret_cast<std::uintptr_t>(p.var().grad().address()) % 16 != 0) ++count;
    }
    return count;
  });
  BOOST_TEST(odd == std::vector<int>(2, 0));
}

BOOST_AUTO_TEST_CASE(a_run_on_devices_resumes_on_another_number_of_devices) {
  TrainerOptions options = cut_in(4, 1, 3);
  options.bucket_bytes = 4096;
  const auto backend = make_emulated_cuda_backend();
  const TemporaryFolder whole_folder;
  options.checkpoints.folder = whole_folder.path();
  const RankRun one = trained_on_device(single_rank(), *backend, options);
  for (const Sharing sharing : {Sharing::moments, Sharing::gradients}) {
    const TemporaryFolder folder;
    options.sharing = sharing;
    options.checkpoints.folder = folder.path();
    const auto until = [&](std::int64_t steps, int size) {
      TrainerOptions some = options;
      some.steps = steps;
      return on_devices(size, true, [&](Communicator& ranks, Backend& device) {
        return trained_on_device(ranks, device, some);
      });
    };
    until(1, 4);
    until(2, 1);
    for (const RankRun& run : until(3, 2)) BOOST_CHECK(run.values == one.values);
    BOOST_CHECK(tensors_of(folder / "step-3") == tensors_of(whole_folder / "step-3"));
  }
}

BOOST_AUTO_TEST_CASE(a_device_holds_only_its_share_of_gradients_and_buckets_in_flight) {
  DecoderConfig config = softmax_fal();
  config.layers = 6;
  for (const bool cabled : {false, true}) {
    const auto peaks = on_devices(4, cabled, [&](Communicator& ranks, Backend& device) {
      const Decoder model(device, config, 3);
      const AdamOptimizer optimizer(model.parameters(), {}, {}, &ranks);
      const Parameters& parameters = model.parameters();
      const auto peak = [&](std::vector<int> owners) {
        GradientExchange exchange(ranks, parameters, std::move(owners), 4096);
        const std::size_t before = device.memory().use().live;
        device.memory().reset_peak();
        for (std::size_t i = parameters.all().size(); i-- > 0;) {
          exchange.add(i, Tensor());
        }
        exchange.finish(Tensor::zeros(device, {1}, DType::f32));
        return static_cast<double>(device.memory().use().peak - before) /
               (4.0 * static_cast<double>(parameters.count()));
      };
      const double whole = peak({}), shared = peak(optimizer.owners());
      return std::pair(whole, shared);
    });
    for (const auto& [whole, shared] : peaks) {
      BOOST_TEST(whole > 1);
      BOOST_TEST(shared < 0.7);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_ends_amid_sums_does_not_hang_the_others) {
  const auto work = [](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    const Tensor x = Tensor::zeros(*backend, {1 << 12}, DType::f32);
    ranks.begin_sum(x);
    if (ranks.rank() == 1) fail("no more memory");
    ranks.begin_sum(x);
    ranks.finish();
  };
  expect_refusal([&] { run_ranks(4, work); }, "no more memory");
}

/// Connects rank 0 with a second rank, which answers late. All bytes of its answers are 1.
class LatePeer final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void exchange(int, std::span<const std::byte>, std::span<std::byte> receive) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ranges::fill(receive, std::byte{1});
  }
};

BOOST_AUTO_TEST_CASE(a_rank_that_ends_amid_a_sum_keeps_its_memory_until_the_sum_ends) {
  const auto backend = make_cpu_backend({.threads = 1});
  const Tensor x = Tensor::zeros(*backend, {1 << 12}, DType::f32);
  { Communicator(std::make_unique<LatePeer>()).begin_sum(x); }
  // Summing x over two ranks takes two exchanges. The first exchange adds the other rank's numbers
  // to one half of x. The second exchange replaces the other half of x by the other rank's numbers.
  const std::vector<double> sums = x.to_doubles();
  BOOST_TEST(sums.front() == sums[(1 << 11) - 1]);
  BOOST_TEST(sums.front() > 0);
  BOOST_TEST(sums.back() > 0);
}

BOOST_AUTO_TEST_CASE(ranks_that_share_moments_hold_a_share_each) {
  const auto live = [](bool share) {
    return on_ranks(4, [&](Communicator& ranks) {
      const auto backend = make_cpu_backend({.threads = 1});
      Decoder model(*backend, softmax_fal(), 3);
      const std::size_t before = backend->memory().use().live;
      const AdamOptimizer optimizer(model.parameters(), {}, {}, share ? &ranks : nullptr);
      return static_cast<double>(backend->memory().use().live - before);
    });
  };
  const auto whole = live(false), shared = live(true);
  double sum = 0;
  for (std::size_t r = 0; r < 4; ++r) {
    BOOST_TEST(shared[r] < 0.5 * whole[r]);
    sum += shared[r];
  }
  BOOST_TEST(sum < 1.2 * whole[0]);
}

BOOST_AUTO_TEST_CASE(the_division_of_a_step_into_parts_determines_the_bits) {
  // Dividing the same batches into other parts changes the order of additions and therefore the
  // bits. This shows that the tests of equal bits are able to fail.
  const RankRun eight = trained(softmax_fal(), cut_in(8, 1, 6), single_rank());
  const RankRun four = trained(softmax_fal(), cut_in(4, 2, 6), single_rank());
  BOOST_CHECK(eight.values != four.values);
  for (std::size_t i = 0; i < 6; ++i) {
    BOOST_TEST(eight.losses[i] == four.losses[i], boost::test_tools::tolerance(1e-4));
  }
}

BOOST_AUTO_TEST_CASE(a_run_resumes_on_another_number_of_ranks) {
  const RankRun whole = trained(softmax_fal(), cut_in(4, 1, 9), single_rank());
  const TemporaryFolder folder;
  TrainerOptions options = cut_in(4, 1, 9);
  options.checkpoints.folder = folder.path();
  const auto until = [&](std::int64_t steps, int size) {
    TrainerOptions some = options;
    some.steps = steps;
    return on_ranks(size, [&](Communicator& ranks) { return trained(softmax_fal(), some, ranks); });
  };
  until(2, 2);
  until(4, 4);
  until(7, 1);
  for (const RankRun& run : until(9, 2)) BOOST_CHECK(run.values == whole.values);
}

BOOST_AUTO_TEST_CASE(ranks_save_an_optimizer_without_state) {
  const TemporaryFolder folder;
  TrainerOptions options = cut_in(4, 1, 6);
  options.optimizer = Descent::make;
  const RankRun whole = trained(softmax_fal(), options, single_rank());
  options.sharing = Sharing::moments;
  options.checkpoints.folder = folder.path();
  const auto until = [&](std::int64_t steps, int size) {
    options.steps = steps;
    return on_ranks(size,
                    [&](Communicator& ranks) { return trained(softmax_fal(), options, ranks); });
  };
  until(2, 4);
  BOOST_TEST(check_checkpoint(folder / "step-2").optimizer);
  until(4, 1);
  for (const RankRun& run : until(6, 2)) BOOST_CHECK(run.values == whole.values);
}

BOOST_AUTO_TEST_CASE(all_ranks_stop_after_the_step_at_which_one_was_asked_to) {
  const TemporaryFolder folder;
  const auto steps = on_ranks(4, [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    Decoder model(*backend, softmax_fal(), 3);
    TrainerOptions options = cut_in(4, 1, 9);
    options.checkpoints.folder = folder.path();
    const Trainer* running = nullptr;
    Trainer trainer(model, ragged_batch, options,
                    {.stop = [&] { return ranks.rank() == 2 && running->step() == 5; }}, ranks);
    running = &trainer;
    return trainer.run() == Outcome::stopped ? trainer.step() : -1;
  });
  BOOST_TEST(steps == std::vector<std::int64_t>(4, 5));
  BOOST_TEST(CheckpointStore(folder.path(), 1).latest().value() == 5);
}

BOOST_AUTO_TEST_CASE(all_ranks_evaluate_and_the_score_is_rank_0s) {
  const TemporaryFolder folder;
  const auto scored = on_ranks(2, [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    Decoder model(*backend, softmax_fal(), 3);
    TrainerOptions options = cut_in(2, 1, 4);
    options.evaluate_every = 2;
    options.checkpoints.folder = folder.path();
    int count = 0;
    Trainer trainer(model, ragged_batch, options,
                    {.evaluate = [&](std::int64_t) -> std::optional<double> {
                      ++count;
                      if (ranks.rank() > 0) return std::nullopt;
                      return 1.0;
                    }},
                    ranks);
    trainer.run();
    return trainer.evaluated() ? count : -1;
  });
  BOOST_TEST(scored == std::vector<int>({2, 2}));
  BOOST_TEST(read_checkpoint_info(folder / "step-4").score.value() == 1.0);
}

BOOST_AUTO_TEST_CASE(a_non_finite_loss_ends_all_ranks_and_one_reports_it) {
  std::mutex mutex;
  std::vector<std::string> messages;
  const auto work = [&](Communicator& ranks) {
    const auto backend = make_cpu_backend({.threads = 1});
    Decoder model(*backend, softmax_fal(), 3);
    const auto source = [](std::int64_t step, std::int64_t place) {
      Batch batch = ragged_batch(step, place);
      if (step == 3 && place == 3) {
        batch.targets[0] = 1;
        batch.weights[0] = std::numeric_limits<float>::infinity();
      }
      return batch;
    };
    try {
      Trainer(model, source, cut_in(4, 1, 5), {}, ranks).run();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      messages.push_back(error.what());
      throw;
    }
  };
  expect_refusal([&] { run_ranks(4, work); }, "step 3");
  BOOST_TEST(messages.size() == 4u);
}

BOOST_AUTO_TEST_CASE(numbers_of_parts_and_ranks_that_do_not_fit_are_refused) {
  const auto backend = make_cpu_backend({.threads = 1});
  Decoder model(*backend, softmax_fal(), 3);
  expect_refusal([&] { Trainer(model, ragged_batch, cut_in(6, 1, 1)); }, "power of two, got 6");
  const auto work = [&](Communicator& ranks) {
    const auto own = make_cpu_backend({.threads = 1});
    Decoder mine(*own, softmax_fal(), 3);
    Trainer(mine, ragged_batch, cut_in(2, 1, 1), {}, ranks);
  };
  expect_refusal([&] { run_ranks(4, work); },
                 "at most 2 ranks, because the batch of a step is cut into 2 parts, got 4");
}

BOOST_AUTO_TEST_SUITE_END()
