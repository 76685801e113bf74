#include "core/contract/lstm.h"

#include <cmath>

#include "core/formulas.h"
#include "core/reference/heads.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Lstm& op) {
  const HeadRows x(op.x);
  const Rows u(op.u), before(op.before);
  const HeadResult y(op.y);
  const Result gates(op.gates), cells(op.cells), after(op.after);
  const std::int64_t n = op.y.width;

  std::int64_t number = 0;
  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t head = 0; head < op.y.heads; ++head) {
      std::vector<double> h(static_cast<std::size_t>(n), 0.0), c = h;
      for (std::int64_t j = 0; op.before && j < n; ++j) {
        h[j] = before(number, (2 * head) * n + j);
        c[j] = before(number, (2 * head + 1) * n + j);
      }
      for (std::int64_t row = s.key; row < s.key + s.keys; ++row) {
        std::vector<double> a(static_cast<std::size_t>(4 * n));
        for (std::int64_t e = 0; e < 4 * n; ++e) {
          a[e] = x(row, head, e);
          for (std::int64_t j = 0; j < n; ++j) a[e] += u(head * 4 * n + e, j) * h[j];
          a[e] = e < 3 * n ? formula::Sigmoid::value(a[e]) : std::tanh(a[e]);
          gates.put(row, head * 4 * n + e, a[e]);
        }
        for (std::int64_t j = 0; j < n; ++j) {
          c[j] = a[n + j] * c[j] + a[j] * a[3 * n + j];
          h[j] = a[2 * n + j] * std::tanh(c[j]);
          cells.put(row, head * n + j, c[j]);
          y.put(row, head, j, h[j]);
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        after.put(number, (2 * head) * n + j, h[j]);
        after.put(number, (2 * head + 1) * n + j, c[j]);
      }
    }
    ++number;
  }
}

void run(ReferenceBackend&, const LstmBackward& op) {
  const HeadRows dy(op.dy);
  const Rows u(op.u), gates(op.gates), cells(op.cells);
  const HeadResult dx(op.dx);
  const std::int64_t heads = op.dy.heads, n = op.dy.width;
  std::vector<double> du(static_cast<std::size_t>(op.u.size()), 0.0);

  for (const Sequence& s : sequences(op.segments, op.segments)) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto gate = [&](std::int64_t row, std::int64_t part, std::int64_t j) {
        return gates(row, (4 * head + part) * n + j);
      };
      // The input of the gates is a = x + U h, where h is the output of the preceding token. da is
      // the gradient of `a` at the token after the current one.
      std::vector<double> da(static_cast<std::size_t>(4 * n), 0.0);
      std::vector<double> dc(static_cast<std::size_t>(n), 0.0);
      for (std::int64_t t = s.keys - 1; t >= 0; --t) {
        const std::int64_t row = s.key + t;
        std::vector<double> dh(static_cast<std::size_t>(n));
        for (std::int64_t j = 0; j < n; ++j) {
          dh[j] = dy(row, head, j);
          for (std::int64_t e = 0; e < 4 * n; ++e) dh[j] += u(head * 4 * n + e, j) * da[e];
        }
        for (std::int64_t j = 0; j < n; ++j) {
          const double i = gate(row, 0, j), f = gate(row, 1, j), o = gate(row, 2, j);
          const double g = gate(row, 3, j), tanh_c = std::tanh(cells(row, head * n + j));
          const double old = t > 0 ? cells(row - 1, head * n + j) : 0;
          dc[j] += dh[j] * o * (1 - tanh_c * tanh_c);
          da[j] = dc[j] * g * i * (1 - i);
          da[n + j] = dc[j] * old * f * (1 - f);
          da[2 * n + j] = dh[j] * tanh_c * o * (1 - o);
          da[3 * n + j] = dc[j] * i * (1 - g * g);
          dc[j] *= f;
        }
        for (std::int64_t e = 0; e < 4 * n; ++e) {
          dx.put(row, head, e, da[e]);
          for (std::int64_t j = 0; t > 0 && j < n; ++j) {
            const double h = gate(row - 1, 2, j) * std::tanh(cells(row - 1, head * n + j));
            du[(head * 4 * n + e) * n + j] += da[e] * h;
          }
        }
      }
    }
  }
  for (std::size_t e = 0; e < du.size(); ++e) {
    Result(op.du).put(static_cast<std::int64_t>(e), du[e]);
  }
}

}  // namespace longhand::reference
