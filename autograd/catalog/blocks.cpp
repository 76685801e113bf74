#include "autograd/blocks.h"

#include "autograd/catalog/catalog.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/float16.h"
#include "core/quote.h"

namespace longhand::catalog {
namespace {

const GgufType& type_named(const std::string& name) {
  const GgufType* const type = gguf_type(name);
  if (type && type->block > 1) return *type;
  std::string names;
  for (const GgufType* const known : block_types()) {
    names += (names.empty() ? "" : ", ") + small_name(*known);
  }
  fail("attribute type: expected one of ", names, ", got ", quote(name));
}

BlockRows rows_of(const Call& c, const std::string& input, const GgufType& type) {
  const Tensor& integers = c.in(input).value();
  const std::vector<std::int32_t> values = integers.to_ints();
  std::vector<std::uint8_t> bytes;
  for (const std::int32_t value : values) {
    LONGHAND_CHECK(value >= 0 && value < 256, "input ", input, ": expected bytes, got ", value);
    bytes.push_back(static_cast<std::uint8_t>(value));
  }
  const Tensor made(c.backend(), integers.shape(), DType::u8);
  c.backend().upload(made.address(), bytes.data(), bytes.size());
  return {&type, made};
}

BlockMatrix matrix_of(const Call& c) {
  const GgufType& type = type_named(c.word("type"));
  const std::int64_t row = c.in("w").value().columns();
  LONGHAND_CHECK(row % static_cast<std::int64_t>(type.bytes) == 0, "input w: expected rows of ",
                 "blocks of ", type.bytes, " bytes, got rows of ", row, " bytes");
  BlockMatrix w{.parts = {rows_of(c, "w", type)},
                .columns = row / static_cast<std::int64_t>(type.bytes) * type.block};
  if (c.maybe("below")) w.parts.push_back(rows_of(c, "below", type_named(c.word("type_below"))));
  return w;
}

/// Random blocks, as bytes. The factors and shifts of a block, which are f16 numbers, are of a size
/// such that the numbers of the matrix are about 1 / sqrt(columns).
HostTensor random_blocks(Rng& rng, const std::string& name, std::int64_t rows,
                         std::int64_t columns) {
  const GgufType& type = type_named(name);
  HostTensor made = integers(rng, {rows, row_bytes(type, columns)}, 0, 255);
  const bool packed = name == "q4_k" || name == "q5_k";  // factors of parts are up to 63
  const double largest = name == "q8_0"           ? 128
                         : name == "q6_k"         ? 32 * 128
                         : name == "q4_k"         ? 15 * 63
                         : name.starts_with("q5") ? (packed ? 31 * 63 : 31)
                                                  : 15;
  const double factor = 2 / largest / std::sqrt(static_cast<double>(columns));
  const auto put = [&](std::size_t at, double number) {
    const std::uint16_t half = to_f16(static_cast<float>(number));
    made.values[at] = half & 255;
    made.values[at + 1] = half >> 8;
  };
  for (std::size_t block = 0; block < made.values.size(); block += type.bytes) {
    const double sign = rng.below(2) == 0 ? 1 : -1;
    put(block + (name == "q6_k" ? 208 : 0), sign * factor * (0.5 + rng.uniform()));
    // A shift moves the middle of the block's numbers to about 0.
    if (packed) put(block + 2, sign * factor * (name == "q4_k" ? 7 : 15) * rng.uniform());
    if (name.ends_with("_1")) put(block + 2, -sign * factor * (largest / 2) * rng.uniform());
  }
  return made;
}

Case product(Rng& rng, const std::string& type, std::int64_t m, std::int64_t rows,
             std::int64_t columns, bool beside) {
  Case c{{{"x", normals(rng, {m, columns})}, {"w", random_blocks(rng, type, rows, columns)}},
         {{"type", type}}};
  if (beside) {
    c.inputs["bias"] = normals(rng, {rows});
    c.inputs["residual"] = normals(rng, {m, rows});
  }
  return c;
}

std::vector<Case> product_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const GgufType* const each : block_types()) {
    const std::string type = small_name(*each);
    const std::int64_t block = each->block;
    cases.push_back(product(rng, type, 1, 3, block, false));
    cases.push_back(product(rng, type, 3, 5, block == 32 ? 96 : 512, true));
    cases.push_back(product(rng, type, 11, 7, block, true));
  }
  // Two parts of different types.
  Case both = product(rng, "q4_k", 5, 3, 256, false);
  both.inputs["below"] = random_blocks(rng, "q6_k", 2, 256);
  both.attributes["type_below"] = "q6_k";
  both.inputs["bias"] = normals(rng, {5});
  cases.push_back(both);
  cases.push_back(product(rng, "q8_0", 0, 4, 32, false));
  return cases;
}

/// Products of more rows and of longer sums. tests/blocks_test.cpp has those whose matrix is
/// decoded in several strips.
std::vector<Case> large_product_cases(Rng& rng) {
  std::vector<Case> cases;
  cases.push_back(product(rng, "q4_0", 20, 300, 32, true));
  cases.push_back(product(rng, "q8_0", 7, 40, 2048, true));
  cases.push_back(product(rng, "q5_k", 2, 40, 2048, false));
  return cases;
}

std::vector<Case> row_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const GgufType* const each : block_types()) {
    const std::string type = small_name(*each);
    const std::int64_t columns = 2 * each->block;
    cases.push_back(
        {{{"w", random_blocks(rng, type, 6, columns)}, {"ids", integers(rng, {9}, 0, 5)}},
         {{"type", type}}});
  }
  cases.push_back({{{"w", random_blocks(rng, "q4_1", 2, 64)},
                    {"below", random_blocks(rng, "q8_0", 3, 64)},
                    {"ids", integers(rng, {12}, 0, 4)}},
                   {{"type", "q4_1"}, {"type_below", "q8_0"}}});
  return cases;
}

std::vector<Argument> matrix_arguments() {
  return {{"w", "[rows, bytes of a row]", Role::index, false},
          {"below", "[further rows, bytes of a row]", Role::index, false, true}};
}
std::vector<Attribute> matrix_attributes() {
  return {{"type", "q8_0", "type of the blocks of w"},
          {"type_below", "q8_0", "type of the blocks of `below`, further rows of the matrix"}};
}

std::vector<Operation> block_operations() {
  Operation product{
      .name = "block_matmul",
      .page = "blocks",
      .formula = "y = x w^T + bias + residual, where w is decoded from blocks",
      .inputs = {{"x", "[m, columns]"}},
      .attributes = matrix_attributes(),
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        return {{"y", block_matmul(c.in("x"), matrix_of(c),
                                   {.bias = c.maybe("bias"), .residual = c.maybe("residual")})}};
      },
      .cases = product_cases,
      .products = true,
      .rounds_rows = true,
      .large = large_product_cases};
  for (const Argument& argument : matrix_arguments()) product.inputs.push_back(argument);
  product.inputs.push_back({"bias", "[rows]", Role::master, true, true});
  product.inputs.push_back({"residual", "[m, rows]", Role::activation, true, true});
  Operation rows{
      .name = "block_embedding",
      .page = "blocks",
      .formula = "y_i = row ids_i of w, decoded from blocks",
      .inputs = matrix_arguments(),
      .attributes = matrix_attributes(),
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        return {{"y", block_embedding(matrix_of(c), c.in("ids").value(), c.activations())}};
      },
      .cases = row_cases};
  rows.inputs.push_back({"ids", "[ids]", Role::index, false});
  return {product, rows};
}

}  // namespace

extern const Family blocks_family;
constinit const Family blocks_family{block_operations};

}  // namespace longhand::catalog
