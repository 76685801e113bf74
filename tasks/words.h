#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Word problems of groups: after each element g_i of a word g_1 g_2 ..., the model predicts the
/// product of the elements so far. Parity is the word problem of s2, and a sum modulo N is the word
/// problem of zN. The word problems of a5 and s5 are as hard as any problem that a finite-state
/// machine can solve (Barrington 1989).
///
/// An element is a permutation a of points. Its number is its index in the lexicographic order of
/// the lists (a(0), a(1), ...). Tokens and classes are these numbers. Element k of zN is the shift
/// x -> x + k mod N. The elements of a word are drawn independently and uniformly from the elements
/// that the option `moves` selects. An element g changes the product p to p∘g, where (p∘g)(x) is
/// p(g(x)). For example, in s3, element 1 exchanges the last two points and element 2 exchanges the
/// first two, so the products of the word 1 2 are:
///   1 2 -> 1 4
TaskKind words();

}  // namespace longhand::tasks
