#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

/// The elementwise formulas with one operand. A formula is a struct with two function templates,
/// value(x) and derivative(x). Their template parameter is the type of x, so the same code runs on
/// double and float (in the reference backend, and in CUDA with --expt-relaxed-constexpr) and on
/// vectors (cpu::<isa>::Vec).
/// For Vec, the functions exp, tanh, select, ... are found by argument-dependent lookup.
///
/// A new formula needs a struct in this file, a name in the enum Activation and an entry in the
/// list Formulas.
namespace longhand {

enum class Activation : std::uint8_t {
  identity,
  relu,
  gelu,
  gelu_tanh,
  silu,
  sigmoid,
  tanh,
  exp,
  log,
  square,
};

std::string_view name_of(Activation activation);
std::optional<Activation> activation_from_name(std::string_view name);

/// Returns condition ? yes : no. Vector types have their own overload, which chooses for each lane.
template <class T>
constexpr T select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

/// 1 / (1 + e^-x), without overflow for any x.
template <class T>
constexpr T sigmoid(T x) {
  using std::exp;
  const T e = exp(x < T(0) ? x : -x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

namespace formula {

/// x; the derivative is 1.
struct Identity {
  static constexpr auto kind = Activation::identity;
  static constexpr std::string_view name = "identity";
  template <class V>
  static constexpr V value(V x) {
    return x;
  }
  template <class V>
  static constexpr V derivative(V) {
    return V(1.0);
  }
};

/// max(x, 0); the derivative at 0 is 0.
struct Relu {
  static constexpr auto kind = Activation::relu;
  static constexpr std::string_view name = "relu";
  template <class V>
  static constexpr V value(V x) {
    return select(x < V(0.0), V(0.0), x);  // preserves NaN, because NaN < 0 is false
  }
  template <class V>
  static constexpr V derivative(V x) {
    return select(x > V(0.0), V(1.0), V(0.0));
  }
};

/// x Phi(x), where Phi(x) = (1 + erf(x / sqrt 2)) / 2 is the normal distribution function. The
/// derivative is Phi(x) + x phi(x) with phi(x) = e^(-x^2 / 2) / sqrt(2 pi).
struct Gelu {
  static constexpr auto kind = Activation::gelu;
  static constexpr std::string_view name = "gelu";
  template <class V>
  static constexpr V phi_cumulative(V x) {
    using std::erf;
    constexpr double inverse_sqrt_2 = 0.70710678118654752440;
    return V(0.5) * (V(1.0) + erf(x * V(inverse_sqrt_2)));
  }
  template <class V>
  static constexpr V value(V x) {
    return x * phi_cumulative(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    using std::exp;
    constexpr double inverse_sqrt_2pi = 0.39894228040143267794;
    return phi_cumulative(x) + x * V(inverse_sqrt_2pi) * exp(V(-0.5) * x * x);
  }
};

/// x (1 + tanh u) / 2, where u = sqrt(2 / pi) (x + 0.044715 x^3). The derivative is
///   (1 + tanh u) / 2 + x (1 - tanh^2 u) u' / 2, where u' = sqrt(2 / pi) (1 + 0.134145 x^2)
struct GeluTanh {
  static constexpr auto kind = Activation::gelu_tanh;
  static constexpr std::string_view name = "gelu_tanh";
  static constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  static constexpr double cubic = 0.044715;
  template <class V>
  static constexpr V inner(V x) {
    return V(sqrt_2_over_pi) * x * (V(1.0) + V(cubic) * x * x);
  }
  template <class V>
  static constexpr V value(V x) {
    using std::tanh;
    return V(0.5) * x * (V(1.0) + tanh(inner(x)));
  }
  template <class V>
  static constexpr V derivative(V x) {
    using std::tanh;
    // For |x| > 16, tanh is 1 or -1, and the derivative is constant. Clamping x prevents overflow
    // of x^2.
    const V near = select(x > V(16.0), V(16.0), select(x < V(-16.0), V(-16.0), x));
    const V t = tanh(inner(near));
    const V slope = V(sqrt_2_over_pi) * (V(1.0) + V(3.0 * cubic) * near * near);
    return V(0.5) * (V(1.0) + t) + V(0.5) * near * (V(1.0) - t * t) * slope;
  }
};

/// x sigmoid(x); derivative s + x s (1 - s), where s = sigmoid(x).
struct Silu {
  static constexpr auto kind = Activation::silu;
  static constexpr std::string_view name = "silu";
  template <class V>
  static constexpr V value(V x) {
    return x * sigmoid(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    const V s = sigmoid(x);
    return s + x * s * (V(1.0) - s);
  }
};

/// s = 1 / (1 + e^-x); derivative s (1 - s).
struct Sigmoid {
  static constexpr auto kind = Activation::sigmoid;
  static constexpr std::string_view name = "sigmoid";
  template <class V>
  static constexpr V value(V x) {
    return sigmoid(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    // 1 - sigmoid(x) is computed as sigmoid(-x), which avoids cancellation if sigmoid(x) is near 1.
    return sigmoid(x) * sigmoid(-x);
  }
};

/// tanh x; derivative 1 - tanh^2 x.
struct Tanh {
  static constexpr auto kind = Activation::tanh;
  static constexpr std::string_view name = "tanh";
  template <class V>
  static constexpr V value(V x) {
    using std::tanh;
    return tanh(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    using std::tanh;
    const V t = tanh(x);
    return (V(1.0) - t) * (V(1.0) + t);
  }
};

/// e^x, its own derivative.
struct Exp {
  static constexpr auto kind = Activation::exp;
  static constexpr std::string_view name = "exp";
  template <class V>
  static constexpr V value(V x) {
    using std::exp;
    return exp(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    using std::exp;
    return exp(x);
  }
};

/// ln x; derivative 1 / x.
struct Log {
  static constexpr auto kind = Activation::log;
  static constexpr std::string_view name = "log";
  template <class V>
  static constexpr V value(V x) {
    using std::log;
    return log(x);
  }
  template <class V>
  static constexpr V derivative(V x) {
    return V(1.0) / x;
  }
};

/// x^2; derivative 2 x.
struct Square {
  static constexpr auto kind = Activation::square;
  static constexpr std::string_view name = "square";
  template <class V>
  static constexpr V value(V x) {
    return x * x;
  }
  template <class V>
  static constexpr V derivative(V x) {
    return x + x;
  }
};

}  // namespace formula

template <class... Types>
struct TypeList {
  static constexpr int size = sizeof...(Types);
};

/// The formulas in the order of the enum Activation.
using Formulas =
    TypeList<formula::Identity, formula::Relu, formula::Gelu, formula::GeluTanh, formula::Silu,
             formula::Sigmoid, formula::Tanh, formula::Exp, formula::Log, formula::Square>;

namespace detail {
template <class... F>
constexpr bool in_order(TypeList<F...>) {
  int index = 0;
  return ((static_cast<int>(F::kind) == index++) && ...);
}
static_assert(in_order(Formulas{}), "Formulas and Activation name the same formulas in one order");
}  // namespace detail

/// Calls body(F{}), where F is the formula in the type list with F::kind == kind. For each formula
/// of the list, the body is compiled separately, with a type F that is known at compile time.
template <class Kind, class Body, class First, class... Rest>
constexpr decltype(auto) with_formula(Kind kind, Body&& body, TypeList<First, Rest...>) {
  if constexpr (sizeof...(Rest) == 0) {
    return body(First{});
  } else {
    if (kind == First::kind) return body(First{});
    return with_formula(kind, static_cast<Body&&>(body), TypeList<Rest...>{});
  }
}
template <class Body>
constexpr decltype(auto) with_formula(Activation activation, Body&& body) {
  return with_formula(activation, static_cast<Body&&>(body), Formulas{});
}

}  // namespace longhand
