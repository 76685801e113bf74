#pragma once

#include <type_traits>

#include "core/cpu/attention/backward_kernel.h"
#include "core/cpu/attention/forward_rows.h"
#include "core/cpu/attention/single.h"
#include "core/cpu/isa.h"

/// The tables of kernels of a mechanism, such as softmax or ChaCAL. A rule is a struct with the
/// functions that differ between mechanisms. NAME_rows.h defines the rule of the forward pass, and
/// NAME_gradients.h the rule of the backward pass.
namespace longhand::cpu::LONGHAND_ISA::attention {

template <class Product>
std::int64_t scratch(std::int64_t width, std::int64_t value_width, std::int64_t chunk,
                     std::int64_t) {
  return most(Space<Product>(width, value_width, chunk, nullptr).floats,
              single_scratch(width, value_width));
}

template <class T, class Product, class Rule>
inline constexpr AttentionKernels<T> forward_kernels{
    scratch<Product>,
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, float* at) {
      Rows<T, Product, Rule>(task, chunk, at).begin();
    },
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, std::int64_t from,
       std::int64_t to, float* at) { Rows<T, Product, Rule>(task, chunk, at).before(from, to); },
    [](const AttentionRows<T>& task, typename AttentionKernels<T>::Chunk chunk, float* at) {
      Rows<T, Product, Rule>(task, chunk, at).own();
    },
    Rule::Query::saves,
    [](const AttentionRows<T>& task, std::int64_t row, float* at) {
      Single<T, typename Rule::Query>(task, row, at).run();
    }};

/// Maximum number of keys in a range. A task of the backward pass covers one range of keys. Queries
/// are packed once per range. With products on SIMD vectors, ranges of a quarter of this length
/// were 10% slower for heads of width 768 and not faster for narrow heads. With products on tile
/// registers, packing takes a larger share of the time, so ranges are twice as long as with
/// vectors. This was 10% faster for all widths.
template <class Product>
inline constexpr std::int64_t keys_of_range = (Product::tiled ? 8 : 4) * attention_panel;

template <class T, class Product, class Rule>
inline constexpr AttentionGradientKernels<T> gradient_kernels{
    Rule::Formula::leftward,
    keys_of_range<Product>,
    [](std::int64_t width, std::int64_t value_width, std::int64_t range) {
      return GradientSpace<Product>(width, value_width, range, nullptr).floats;
    },
    packed_width,
    [](const AttentionGradients<T>& task, float* at) {
      BackwardKernel<T, Product, Rule>(task, at).begin();
    },
    [](const AttentionGradients<T>& task, std::int64_t head, float* at) {
      BackwardKernel<T, Product, Rule>(task, at).begin_head(head);
    },
    [](const AttentionGradients<T>& task, std::int64_t head, std::int64_t row, float* at) {
      BackwardKernel<T, Product, Rule>(task, at).panel_of(head, row);
    },
    [](const AttentionGradients<T>& task, std::int64_t head, float* at) {
      BackwardKernel<T, Product, Rule>(task, at).end_head(head);
    },
    [](const AttentionGradients<T>& task, float* at) {
      BackwardKernel<T, Product, Rule>(task, at).end();
    }};

/// Kernels with products on SIMD vectors and not on tile registers: forward_on_vectors for the
/// forward pass of a rule, gradients_on_vectors for its backward pass. They use f32 products for
/// Math::exact and Math::fast, and bf16 products for Math::bf16 unless the rule requires exact
/// scores.
template <class Rule>
using NarrowProduct =
    std::conditional_t<Rule::Formula::exact_scores || !has_bf16_kernels, Exact, Bf16>;
template <class T, class Rule, class Narrow = NarrowProduct<Rule>>
inline constexpr ByProduct<AttentionKernels<T>> forward_on_vectors{
    forward_kernels<T, Exact, Rule>, forward_kernels<T, Exact, Rule>,
    forward_kernels<T, Narrow, Rule>};
template <class T, class Rule, class Narrow = NarrowProduct<Rule>>
inline constexpr ByProduct<AttentionGradientKernels<T>> gradients_on_vectors{
    gradient_kernels<T, Exact, Rule>, gradient_kernels<T, Exact, Rule>,
    gradient_kernels<T, Narrow, Rule>};

/// The kernels of both passes for tensors of the type T. Null pointers if this build has no kernels
/// for T.
template <class T, class ForwardRule, class BackwardRule>
constexpr PassKernels<T> passes_on_vectors() {
  if constexpr (std::is_same_v<T, bf16> && !has_bf16_kernels) {
    return {};
  } else {
    return {forward_on_vectors<T, ForwardRule>, gradients_on_vectors<T, BackwardRule>};
  }
}

/// All kernels of a mechanism, with products on SIMD vectors and not on tile registers.
template <class Mechanism, class ForwardRule, class BackwardRule>
inline constexpr KernelsOf<Mechanism> on_vectors{
    .of_f32 = passes_on_vectors<float, ForwardRule, BackwardRule>(),
    .of_bf16 = passes_on_vectors<bf16, ForwardRule, BackwardRule>()};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
