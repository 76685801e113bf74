#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/derivative_check.h"
#include "apps/wasm/chains.h"
#include "apps/wasm/graph.h"
#include "apps/wasm/session.h"
#include "core/contract/matmul.h"
#include "core/cpu/isa.h"
#include "core/rng.h"

/// The interface of the WebAssembly module. A request and its result are JSON texts in the module's
/// memory. After the text, a request may have a zero byte and further bytes. `do` in a request
/// names the function, and the other members are its arguments. If the function throws an Error,
/// the result has the member `error`.
///
///   kernels                                        the name of the kernels' instruction set
///   open        ini                                begins a Session; the further bytes, if any,
///   are
///                                                  its parameters
///   train       last                               Session::train
///   evaluate    changes, samples                   Session::evaluate
///   look        prompt, most                       Session::look
///   derivative  expression, typed, by, from, to    check_derivative
///   graph       inputs, steps                      differentiate
///   chains      blocks, size, seed, gamma, score   follow_chains
///   multiply    size, times                        products of square matrices, to be timed
namespace longhand::app {
namespace {

std::optional<Session> session;

Session& opened() {
  LONGHAND_CHECK(session, "expected the request \"open\" before this one");
  return *session;
}

Json derivative(const Json& request) {
  const Expression f(request["expression"].string()), typed(request["typed"].string());
  const std::string& by = request["by"].string();
  for (const std::string& name : typed.variables()) {
    LONGHAND_CHECK(f.variables().contains(name), "the function has no variable ", name);
  }
  const DerivativeCheck check =
      check_derivative(f, by, typed, request["from"].number(), request["to"].number(), 1);
  Json rows = Json::array();
  for (const DerivativeCheck::Row& row : check.rows) {
    Json at = Json::object();
    for (const auto& [name, value] : row.at) at[name] = value;
    rows.push_back({{"at", std::move(at)},
                    {"typed", row.typed},
                    {"quotient", row.quotient.value},
                    {"error", row.quotient.error},
                    {"right", row.right}});
  }
  return {{"right", check.right()}, {"hint", check.hint}, {"rows", std::move(rows)}};
}

Json multiply(const Json& request) {
  const std::int64_t n = request["size"].integer();
  const auto backend = make_cpu_backend({.math = Math::exact});
  Rng rng(1, Purpose::test);
  std::vector<double> values(static_cast<std::size_t>(n * n));
  for (double& value : values) value = rng.uniform();
  const Tensor a = Tensor::from(*backend, {n, n}, DType::f32, values),
               b = Tensor::from(*backend, {n, n}, DType::f32, values);
  const Tensor c(*backend, {n, n}, DType::f32);
  for (std::int64_t i = 0; i < request["times"].integer(); ++i) {
    (*backend)(Matmul{.a = a, .b = b, .c = c});
  }
  return {{"sum", c.to_doubles()[0]}};
}

Json answer(const Json& request, std::string_view bytes) {
  const std::string& name = request["do"].string();
  if (name == "open") {
    session.emplace(request["ini"].string(), std::as_bytes(std::span(bytes)));
    return session->about();
  }
  if (name == "kernels") {
    return {{"kernels", std::string(cpu::name_of(cpu::choose_isa()))}};
  }
  if (name == "train") return opened().train(request["last"].integer());
  if (name == "evaluate") {
    return opened().evaluate(request["changes"].string(), request["samples"].integer());
  }
  if (name == "look") {
    return opened().look(request["prompt"].string(), request["most"].integer());
  }
  if (name == "derivative") return derivative(request);
  if (name == "graph") return differentiate(request["inputs"], request["steps"]);
  if (name == "chains") return follow_chains(request);
  if (name == "multiply") return multiply(request);
  fail("unknown request ", name);
}

std::string request_text, result_text;

}  // namespace

/// Memory for a request of this many bytes.
extern "C" [[clang::export_name("longhand_request")]] char* longhand_request(std::size_t bytes) {
  request_text.resize(bytes);
  return request_text.data();
}

/// Answers the request in the memory of longhand_request(). Returns a text that ends with a zero
/// and is valid until the next call.
extern "C" [[clang::export_name("longhand_answer")]] const char* longhand_answer() {
  try {
    const std::string_view all = request_text, text = all.substr(0, all.find('\0'));
    const auto request = Json::parse(text);
    LONGHAND_CHECK(request, "expected a JSON text");
    const std::string_view bytes = all.substr(std::min(all.size(), text.size() + 1));
    result_text = answer(*request, bytes).dump();
  } catch (const std::exception& error) {
    result_text = Json{{"error", error.what()}}.dump();
  }
  return result_text.c_str();
}

}  // namespace longhand::app
