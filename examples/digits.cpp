// Learns to read digits from a file of images and a file of labels in the IDX format of MNIST.
// Usage: digits IMAGES LABELS. Without arguments, the program draws images and writes both files.
#include <longhand/longhand.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>

using namespace longhand;

/// Writes an array of bytes to an IDX file. `extents` contains the size of each axis.
void write_idx(const std::filesystem::path& path, const std::vector<int>& extents,
               const std::string& bytes) {
  std::string header{0, 0, 8, static_cast<char>(extents.size())};
  for (const int extent : extents) {
    for (const int shift : {24, 16, 8, 0}) header += static_cast<char>(extent >> shift);
  }
  std::ofstream(path, std::ios::binary) << header << bytes;
}

/// Draws 2,000 noisy images of 12 x 12 pixels, with digits of 6 x 10 pixels at random places.
void draw(const std::filesystem::path& images, const std::filesystem::path& labels) {
  constexpr std::array digits{"####.##.##.####", ".#.##..#..#.###", "###..#####..###",
                              "###..####..####", "#.##.####..#..#", "####..###..####",
                              "####..####.####", "###..#..#..#..#", "####.#####.####",
                              "####.####..####"};  // each digit has five rows of three dots
  Rng rng(1);
  std::string pixels, classes;
  for (int i = 0; i < 2000; ++i) {
    const auto digit = rng.below(10);
    const int left = static_cast<int>(rng.below(7)), top = static_cast<int>(rng.below(3));
    for (int pixel = 0; pixel < 144; ++pixel) {
      const int y = pixel / 12 - top, x = pixel % 12 - left;
      const bool is_inside = y >= 0 && y < 10 && x >= 0 && x < 6;
      const bool is_ink = is_inside && digits[digit][y / 2 * 3 + x / 2] == '#';
      pixels += static_cast<char>(rng.below(100) + (is_ink ? 150 : 0));
    }
    classes += static_cast<char>(digit);
  }
  write_idx(images, {2000, 12, 12}, pixels);
  write_idx(labels, {2000}, classes);
}

/// A network that consists of a convolution with BatchNorm, 2 x 2 max pooling and a linear layer.
class Reader final : public nn::Model {
 public:
  Reader(Backend& backend, std::int64_t height, std::int64_t width)
      : Model(backend, /*seed=*/1), last(scope() / "last", 16 * (height / 2) * (width / 2), 10) {}
  nn::Loss loss(const nn::PlacedBatch& batch) override {
    const Shape& images = batch.features.shape();
    const Var x = reshape(batch.features, {images[0], images[1], images[2], 1});  // one channel
    const Var normalized = norm(first(x));  // 16 channels per pixel
    const Var maps = max_pool(activate(Activation::relu, normalized), 2);
    return nn::cross_entropy(last(reshape(maps, {images[0], maps.value().size() / images[0]})),
                             batch);
  }
  nn::Conv2d first{scope() / "first", 1, 16, {.size = 3, .padding = 1}};
  nn::BatchNorm norm{scope() / "norm", 16};
  nn::Linear last;
};

int main(int count, char** arguments) {
  const std::filesystem::path images = count == 3 ? arguments[1] : "digit-images";
  const std::filesystem::path labels = count == 3 ? arguments[2] : "digit-labels";
  if (count != 3) draw(images, labels);
  const nn::Examples all{.features = read_numbers(images),
                         .targets = read_numbers(labels).to_classes(),
                         .scale = 1.0 / 255};
  const auto [train, test] = all.split(/*share=*/0.9, /*seed=*/1);
  const auto backend = make_cpu_backend();
  Reader model(*backend, all.features.shape()[1], all.features.shape()[2]);
  nn::Trainer(model, nn::shuffled_batches(train, /*size=*/64, /*seed=*/2),
              {.steps = 400, .schedule = {.peak = 3e-3}})
      .run();
  const double right = model.loss_of(test.batch(0, test.count())).hits.item();
  std::cout << "right: " << 100 * right << "% of " << test.count() << " images not trained on\n";
  return right > 0.9 ? 0 : 1;
}
