#include "core/contract/norm.h"

#include <cmath>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const LayerNorm& op) {
  const Rows x(op.x), gain(op.gain), bias(op.bias);
  const Result y(op.y), mean(op.mean), rstd(op.rstd);
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const auto n = static_cast<double>(columns);

  for (std::int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += x(i, j);
    const double mean_i = sum / n;

    double squares = 0;
    for (std::int64_t j = 0; j < columns; ++j) squares += (x(i, j) - mean_i) * (x(i, j) - mean_i);
    const double rstd_i = 1 / std::sqrt(squares / n + op.epsilon);

    for (std::int64_t j = 0; j < columns; ++j) {
      y.put(i, j, (x(i, j) - mean_i) * rstd_i * gain(j) + (op.bias ? bias(j) : 0));
    }
    mean.put(i, mean_i);
    rstd.put(i, rstd_i);
  }
}

void run(ReferenceBackend&, const LayerNormBackward& op) {
  const Rows x(op.x), gain(op.gain), mean(op.mean), rstd(op.rstd), dy(op.dy);
  const Result dx(op.dx), dgain(op.dgain), dbias(op.dbias);
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const auto n = static_cast<double>(columns);
  const auto h = [&](std::int64_t i, std::int64_t j) { return (x(i, j) - mean(i)) * rstd(i); };
  const auto g = [&](std::int64_t i, std::int64_t j) { return dy(i, j) * gain(j); };

  for (std::int64_t i = 0; i < rows; ++i) {
    double sum_g = 0, sum_gh = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      sum_g += g(i, k);
      sum_gh += g(i, k) * h(i, k);
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      dx.put(i, j, rstd(i) * (g(i, j) - sum_g / n - h(i, j) * sum_gh / n));
    }
  }

  for (std::int64_t j = 0; j < columns; ++j) {
    double sum_gain = 0, sum_bias = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      sum_gain += dy(i, j) * h(i, j);
      sum_bias += dy(i, j);
    }
    dgain.put(j, sum_gain);
    dbias.put(j, sum_bias);
  }
}

void run(ReferenceBackend&, const RmsNorm& op) {
  const Rows x(op.x), gain(op.gain);
  const Result y(op.y), rstd(op.rstd);
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const auto n = static_cast<double>(columns);

  for (std::int64_t i = 0; i < rows; ++i) {
    double squares = 0;
    for (std::int64_t j = 0; j < columns; ++j) squares += x(i, j) * x(i, j);
    const double rstd_i = 1 / std::sqrt(squares / n + op.epsilon);

    for (std::int64_t j = 0; j < columns; ++j) {
      y.put(i, j, x(i, j) * rstd_i * (op.offset + gain(j)));
    }
    rstd.put(i, rstd_i);
  }
}

void run(ReferenceBackend&, const RmsNormBackward& op) {
  const Rows x(op.x), gain(op.gain), rstd(op.rstd), dy(op.dy);
  const Result dx(op.dx), dgain(op.dgain);
  const std::int64_t rows = op.x.rows(), columns = op.x.columns();
  const auto n = static_cast<double>(columns);
  const auto h = [&](std::int64_t i, std::int64_t j) { return x(i, j) * rstd(i); };
  const auto g = [&](std::int64_t i, std::int64_t j) { return dy(i, j) * (op.offset + gain(j)); };

  for (std::int64_t i = 0; i < rows; ++i) {
    double sum_gh = 0;
    for (std::int64_t k = 0; k < columns; ++k) sum_gh += g(i, k) * h(i, k);
    for (std::int64_t j = 0; j < columns; ++j) {
      dx.put(i, j, rstd(i) * (g(i, j) - h(i, j) * sum_gh / n));
    }
  }

  for (std::int64_t j = 0; j < columns; ++j) {
    double sum_gain = 0;
    for (std::int64_t i = 0; i < rows; ++i) sum_gain += dy(i, j) * h(i, j);
    dgain.put(j, sum_gain);
  }
}

}  // namespace longhand::reference
