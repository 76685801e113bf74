#pragma once

#include "tasks/task.h"

namespace longhand::tasks {

/// Word problems of groups: after each of the elements g_1, g_2, ... the model predicts the product
/// so far. Parity is the word problem of s2, and a sum modulo N is the word problem of zN. The word
/// problems of a5 and s5 are as hard as any problem that a finite-state machine can solve
/// (Barrington 1989).
///
/// An element is a permutation of points. Tokens and classes are elements, numbered in the
/// lexicographic order of (a(0), a(1), ...). Element k of zN is the shift x -> x + k mod N. The
/// elements of a word are independent and drawn uniformly from the `moves`. The product is acc <-
/// acc∘g, where (a∘b)(x) = a(b(x)). In s3, where element 1 exchanges the last two points and
/// element 2 the first two,
///   1 2 -> 1 4
TaskKind words();

}  // namespace longhand::tasks
