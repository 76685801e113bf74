#include "nn/module.h"

#include <algorithm>

#include "autograd/combine.h"
#include "core/contract/elementwise.h"
#include "core/error.h"
#include "nn/normal.h"
#include "nn/released_names.h"

namespace longhand::nn {
namespace {

/// Returns the number of the random stream for the initial values of the parameter with this name.
/// The number is the FNV-1a hash of the name, folded to 56 bits. It is passed to Rng (core/rng.h)
/// as the argument `step`, which has 56 bits.
std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  }
  return (hash ^ (hash >> 56)) & ((std::uint64_t{1} << 56) - 1);
}

const Var none;

}  // namespace

bool supports(const Backend& backend, DType type) {
  try {
    backend.require_dtype(type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

const Var& Parameter::var() const { return state_ ? state_->var : none; }

const Tensor& Parameter::value() const {
  LONGHAND_CHECK(!blocks(), name(),
                 ": expected a matrix of f32 or bf16 numbers, got one in blocks, which can be "
                 "multiplied but neither trained nor changed");
  return state_->var.value();
}

void Parameter::put(BlockMatrix blocks) const {
  LONGHAND_CHECK(accepts_blocks(), name(), ": cannot be stored in blocks, because its layer reads ",
                 "the numbers of the matrix");
  LONGHAND_CHECK((shape() == Shape{blocks.rows(), blocks.columns}), name(), ": expected ", shape(),
                 ", got blocks of [", blocks.rows(), ", ", blocks.columns, ']');
  state_->var = Var();
  state_->blocks = std::move(blocks);
}

void Parameter::allocate(DType type) const {
  state_->blocks = {};
  state_->var = Var(Tensor(backend(), shape(), type), state_->var.wants_grad());
}

std::size_t Parameter::bytes() const {
  if (blocks()) return blocks().bytes();
  return state_->var ? value().bytes() : static_cast<std::size_t>(shape().size());
}

void Parameter::freeze(bool frozen) const {
  LONGHAND_CHECK(frozen || !blocks(), name(),
                 ": cannot be trained, because its matrix is stored in blocks");
  state_->var = Var(state_->var.value(), !frozen);
}

void Parameter::learn_only(std::vector<Rows> rows) const {
  const std::int64_t all = shape()[0];
  std::int64_t end = 0;
  for (const Rows& some : rows) {
    LONGHAND_CHECK(some.count > 0 && some.first >= end && some.count <= all - some.first, name(),
                   ": expected ascending ranges within the ", all, " rows of the parameter, got ",
                   some.count, " rows from row ", some.first, " on");
    end = some.first + some.count;
  }
  LONGHAND_CHECK(!rows.empty(), name(),
                 ": expected at least one range of rows to train, got no range");
  state_->rows = std::move(rows);
}

void Parameter::require_columns(const Var& x, std::int64_t columns) const {
  const Shape& shape = x.shape();
  LONGHAND_CHECK(shape.rank() > 0 && shape[-1] == columns, "layer ", layer(),
                 ": expected an input with the last dimension ", columns, ", got the shape ",
                 shape);
}

std::int64_t Parameter::learning() const {
  if (frozen()) return 0;
  if (learning_rows().empty()) return shape().size();
  std::int64_t rows = 0;
  for (const Rows& some : learning_rows()) rows += some.count;
  return rows * (shape().size() / shape()[0]);
}

void Buffer::assign_proposed(const Tensor& factor) const {
  if (!state_->next) return;
  const Tensor to = value();
  factor.backend()(Copy{.x = where(factor, state_->next, to).value(), .y = to});
  drop_proposed();
}

Parameters::Parameters(Backend& backend, Storage storage, std::uint64_t seed)
    : backend_(backend.shared_from_this()),
      storage_(storage),
      seed_(seed),
      noise_(std::make_shared<Noise>(backend, seed)) {
  LONGHAND_CHECK(master_type(type()) == type(), "parameters: expected f32 or f64, got ", type());
  const DType matrices = storage.matrices.value_or(type());
  LONGHAND_CHECK(matrices == type() || (matrices == DType::bf16 && type() == DType::f32),
                 "parameters: expected matrices of ", type(), " (or bf16 in an f32 model), got ",
                 matrices);
  backend.require_dtype(matrices);
}

void Parameters::require_new(const std::string& name) const {
  LONGHAND_CHECK(!find(name) && std::ranges::count(buffers_, name, &Buffer::name) == 0,
                 "parameters: there is already a parameter or buffer named ", name);
}

Parameter Parameters::add(const std::string& name, const Shape& shape, Initial initial, bool decays,
                          bool learns_beside_bf16) {
  require_new(name);
  const bool as_matrices = shape.rank() >= 2 && !learns_beside_bf16;
  const DType held = as_matrices ? storage_.matrices.value_or(type()) : type();
  Parameter parameter;
  parameter.state_ = std::make_shared<Parameter::State>(
      Parameter::State{name, backend_.get(), shape, Var(), decays, initial});
  if (as_matrices && storage_.deferred) {
    all_.push_back(parameter);
    return parameter;
  }
  parameter.state_->var = Var(Tensor(*backend_, shape, held), held == type());
  if (storage_.initial) initialize(parameter);
  all_.push_back(parameter);
  return parameter;
}

Buffer Parameters::add_buffer(const std::string& name, const Shape& shape, double initial) {
  require_new(name);
  Buffer buffer;
  buffer.state_ = std::make_shared<Buffer::State>(
      Buffer::State{.name = name, .value = Tensor(*backend_, shape, type())});
  (*backend_)(Fill{.value = initial, .y = buffer.value()});
  buffers_.push_back(buffer);
  return buffer;
}

void Parameters::initialize(const Parameter& parameter) const {
  const Initial& initial = parameter.state_->initial;
  if (!parameter.state_->var) parameter.allocate(type());
  const Tensor& value = parameter.value();
  if (initial.deviation == 0) {
    (*backend_)(Fill{.value = initial.mean, .y = value});
    return;
  }
  const NormalStream numbers{.seed = seed_,
                             .stream = stream_of(released_name(parameter.name())),
                             .mean = static_cast<float>(initial.mean),
                             .deviation = static_cast<float>(initial.deviation)};
  ThreadPool pool(value.size() > normal_chunk ? backend_->options().threads : 1);
  upload_normal(numbers, pool, value);
}

const Parameter* Parameters::find(std::string_view name) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Parameter& p) { return p.name() == name; });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<Parameter> Parameters::under(std::string_view scope) const {
  std::vector<Parameter> found;
  for (const Parameter& p : all_) {
    if (p.name().starts_with(text(scope, '.'))) found.push_back(p);
  }
  LONGHAND_CHECK(!found.empty(), "parameters: expected parameters in the scope ", scope,
                 ", got none");
  return found;
}

std::int64_t Parameters::count() const {
  std::int64_t numbers = 0;
  for (const Parameter& parameter : all_) numbers += parameter.shape().size();
  return numbers;
}

std::int64_t Parameters::put_in_blocks(const GgufType& type) const {
  std::int64_t count = 0;
  for (const Parameter& p : all_) {
    const bool fits = p.accepts_blocks() && p.shape().columns() % type.block == 0;
    if (fits && !p.blocks()) p.put(longhand::in_blocks(p.value(), type));
    count += p.blocks() ? 1 : 0;
  }
  return count;
}

void Parameters::allocate_deferred(const GgufType& type) const {
  for (const Parameter& p : all_) {
    if (p.var() || p.blocks()) continue;
    const Shape& shape = p.shape();
    if (!p.accepts_blocks() || shape.columns() % type.block != 0) {
      p.allocate(this->type());
      continue;
    }
    const Tensor bytes(*backend_, {shape.rows(), row_bytes(type, shape.columns())}, DType::u8);
    p.put({.parts = {{&type, bytes}}, .columns = shape.columns()});
  }
}

void Parameters::decode_blocks() const {
  for (const Parameter& p : all_) {
    if (!p.blocks()) continue;
    const BlockMatrix blocks = p.blocks();
    p.allocate(type());
    longhand::decode_blocks(blocks, p.value());
  }
}

void Parameters::clear_gradients() const {
  for (const Parameter& parameter : all_) parameter.var().clear_grad();
  for (const Buffer& buffer : buffers_) buffer.drop_proposed();
}

Scope Scope::operator/(std::string_view part) const {
  return {*parameters_, name_.empty() ? std::string(part) : name_ + '.' + std::string(part)};
}

Parameter Scope::add(std::string_view leaf, const Shape& shape, Initial initial, bool decays,
                     bool learns_beside_bf16) const {
  return parameters_->add((*this / leaf).name_, shape, initial, decays, learns_beside_bf16);
}

Buffer Scope::add_buffer(std::string_view leaf, const Shape& shape, double initial) const {
  return parameters_->add_buffer((*this / leaf).name_, shape, initial);
}

}  // namespace longhand::nn
