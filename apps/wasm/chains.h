#pragma once

#include "core/json.h"

namespace longhand::app {

/// Follows the references of a sample of the task `chains` with one ChaCAL head, in f64 on the
/// reference backend. The request has the members blocks, size and seed of the sample, the head's
/// gamma, and `score`. A token has this score with the token to which it refers, and a value has
/// it with itself. All other scores are 0. The values V of the head are the identity matrix, so an
/// output contains the weight of each token. Matrices are [tokens, tokens], row by row. Returns
///   tokens      the labels of the tokens
///   refers      for each token, the index of the token to which it refers; a value: its own index
///   steps       the matrices (P-)^c P for c = 0, 1, ..., one for each block
///   output      the output of the operation chacal
///   difference  the largest difference between the output and (1 - g) sum_c (g P-)^c P, where the
///               sum has one term for each token
Json follow_chains(const Json& request);

}  // namespace longhand::app
