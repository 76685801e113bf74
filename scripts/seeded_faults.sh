#!/bin/bash
# Plants one fault at a time in the CUDA kernels or the backend's host code, builds the watched tests, and runs
# the tests of the kernel's family, which must fail. Prints a table with what found each fault.
#   scripts/seeded_faults.sh [BUILD [FIRST [LAST]]]
#   scripts/seeded_faults.sh --check      only checks that each fault still fits its source
# BUILD is a configured build folder (default: build/release). The script changes the sources in place. It
# restores them after each fault, also when it is interrupted, and compiles them again. Row 0 has no fault, and
# its tests must pass. FIRST and LAST limit the rows. The exit status is 1 if a fault was not found, did not
# compile, or no longer fits its source.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release} first=${2:-0} last=${3:-999}
program=$build/tests/watched/longhand_watched_tests
number=0 missed=0 changed=""
# The restored file is newer than the object with the fault, so it is compiled again.
restore() {
  if [ -n "$changed" ]; then
    mv "$changed.kept" "$changed"
    touch "$changed"
    changed=""
  fi
}
trap restore EXIT

# fault KIND FAMILY FILE "OPERATIONS: TESTS" OLD NEW replaces OLD, which FILE of cuda/ must contain exactly once,
# by NEW. TESTS are test suites or cases, separated by colons. The parity test is limited to the operations of the
# catalog whose names contain OPERATIONS.
fault() {
  local kind=$1 family=$2 file=cuda/$3 tests=$4 old=$5 new=$6 text after how
  number=$((number + 1))
  if [ $number -lt "$first" ] || [ $number -gt "$last" ]; then return; fi
  text=$(cat "$file"; printf x)
  text=${text%x}
  after=${text/"$old"/"$new"}
  if [[ $text != *"$old"* || ${text#*"$old"} == *"$old"* || $after == "$text" ]]; then
    echo "seeded_faults.sh: fault $number, \"$kind\": expected $file to contain this text exactly once: $old" >&2
    missed=1
    return
  fi
  [ "$build" != --check ] || return 0
  cp "$file" "$file.kept"
  changed=$file
  printf %s "$after" >"$file"
  how=$(try "$tests")
  restore
  case $how in "not found" | "does not build" | "did not end") missed=1 ;; esac
  printf '| %s | %s | `%s` | %s |\n' "$kind" "$family" "$3" "$how"
}

# try "OPERATIONS: TESTS" prints the first error of the tests. "other results" means that a result differs from the
# reference and the watch reported nothing.
try() {
  local operations=${1%%:*} tests=${1#*: } log=$build/seeded_faults.log status=0
  if ! ninja -C "$build" longhand_watched_tests >"$log" 2>&1; then echo "does not build"; return; fi
  LONGHAND_OPERATIONS=$operations timeout 600 "$program" --run_test="$tests" >"$log" 2>&1 || status=$?
  if [ $status = 0 ]; then
    echo "not found"
  elif [ $status = 124 ]; then
    echo "did not end"
  else
    grep -o 'a race with a [a-z]*\|a read of what no thread has written\|out of bounds[a-z ]*\|outside of shared memory\|past the end\|off its boundary\|no multiple of 16\|a copy [a-z ]*way\|waits at the barrier\|different barriers\|wrote past\|all resident blocks wait' "$log" |
      head -n 1 | grep . || echo "other results"
  fi
}

parity=cuda_parity_test/the_kernels_agree_with_the_reference
long=cuda_attention_test/long_sequences_and_wide_heads_agree_with_the_reference
many=cuda_attention_test/rules_with_many_keys_agree_with_the_reference
wide=cuda_attention_test/heads_of_more_columns_than_a_block_agree_with_the_reference
unseen=cuda_attention_test/keys_that_no_query_sees_get_zero_gradients
stick=cuda_attention_test/a_used_up_stick_reads_no_further_keys
uploads=cuda_parity_test/large_uploads_arrive_before_they_are_used
rows=cuda_token_wise_test

if [ "$build" != --check ]; then
  echo "| fault | family | file | found as |"
  echo "|---|---|---|---|"
fi
if [ "$first" = 0 ] && [ "$build" != --check ]; then
  how=$(try ": $parity:cuda_attention_test:$rows")
  echo "| none | all | | $how |"
  [ "$how" = "not found" ] || exit 1
fi

# Families in which threads share memory.
fault "missing __syncthreads" "cumulative sums" cumulate.cu "cumulate: $parity" '    sums[own] = sum;
    __syncthreads();' '    sums[own] = sum;'
fault "missing __syncthreads" "delta rule" delta.cu "delta: $parity" '    Step::stage(task, b);
    __syncthreads();' '    Step::stage(task, b);'
fault "missing __syncthreads" "embedding backward" embedding_backward.cu "embedding: $parity:$rows" '  of_chunk[own] = id;
  __syncthreads();' '  of_chunk[own] = id;'
fault "missing __syncthreads" LSTM lstm.cu "lstm: $parity" '        a[e] = e < 3 * n ? lstm_sigmoid(z) : tanhf(z);
      }
    }
    __syncthreads();' '        a[e] = e < 3 * n ? lstm_sigmoid(z) : tanhf(z);
      }
    }'
fault "missing __syncthreads" "norms, backward" norm_backward.cu "layer_norm: $parity" '        __syncthreads();
        const int c' '        const int c'
fault "missing __syncthreads" "sums of parts" partial_sums.cu "layer_norm: $parity" '  __syncthreads();
  if (group != 0' '  if (group != 0'
fault "missing __syncthreads" reductions reduce.cu "add_bias: $parity" '  __syncthreads();
  const int across' '  const int across'
fault "off by one in shared memory" reductions reduce.cu "add_bias: $parity" 'sums[threadIdx.x * width + k] = ' 'sums[threadIdx.x * width + k + 1] = '
fault "missing __syncthreads" "triangular systems" solve.cu "solve_triangular: $parity:$rows" '      __syncthreads();  // after this barrier, a_tile and y_tile may be overwritten
' ''
fault "off by one in shared memory" "triangular systems" solve.cu "solve_triangular: $parity" 'a_tile[r][k] = value;' 'a_tile[r + 1][k] = value;'
fault "missing __syncthreads" "rows of many threads" team.h "softmax: $parity:$rows" '    if (lane_index() == 0) of_warp[warp_index()] = value;
    __syncthreads();' '    if (lane_index() == 0) of_warp[warp_index()] = value;'

# Attention.
fault "missing __syncthreads" "softmax, forward" attention/attend.h "attention: $parity:$long" '    if (both) settle<Product, slice, key_rows>(v, task.v);
    __syncthreads();' '    if (both) settle<Product, slice, key_rows>(v, task.v);'
fault "missing __syncwarp" "softmax, forward" attention/scores.h "attention: $parity" '    __syncwarp();
#pragma unroll 1' '#pragma unroll 1'
fault "off by one in shared memory" "softmax, forward" attention/attend.h "attention: $parity" 'return padding<Product, slice>(q, r);' 'return padding<Product, slice>(q, r) + 1;'
fault "missing copy wait" "softmax, forward" attention/attend.h "attention: $long" '      if (!chain && !both) {
        wait_for_copies<0>();' '      if (!chain && !both) {
        wait_for_copies<1>();'
fault "wrong mma lane" "softmax, tf32 products" attention/product.h "attention: $parity" 'x[t][1] = to_tf32(p[t][i][2]);' 'x[t][1] = to_tf32(p[t][i][1]);'
fault "wrong mma lane" "softmax, bf16 products" attention/product.h "attention: $parity" 'mma_bf16_16x8x16(c[t][i + 1], x[t], y[2], y[3]);' 'mma_bf16_16x8x16(c[t][i + 1], x[t], y[3], y[2]);'
fault "divergent barrier" "softmax, gradients of queries" attention/query_gradients.cu "attention: $parity" '    settle_values<Product, slice, step>(v, task);
    __syncthreads();' '    settle_values<Product, slice, step>(v, task);
    if (busy) __syncthreads();'
fault "missing __syncthreads" "softmax, gradients of queries" attention/query_gradients.cu "attention: $parity" '    settle_values<Product, slice, step>(v, task);
    __syncthreads();' '    settle_values<Product, slice, step>(v, task);'
fault "missing __syncthreads" "softmax, gradients of keys" attention/key_gradients.cu "attention: $unseen" '  if (first_head == last_head) __syncthreads();
' ''
fault "off by one in shared memory" "softmax, gradients of keys" attention/key_gradients.cu "attention: $parity" 'facts[turn][threadIdx.x] = of;' 'facts[turn][threadIdx.x + 1] = of;'
fault "missing __syncthreads" "softmax, wide heads" attention/wide.h "attention: $wide" '    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < wide_step / 8; ++c) {' '    }
#pragma unroll
    for (int c = 0; c < wide_step / 8; ++c) {'
fault "missing __syncthreads" "softmax, wide heads" attention/wide.h "attention: $wide" '    // After this barrier, all warps have used the previous slice, so its buffer is free.
      __syncthreads();' '    // After this barrier, all warps have used the previous slice, so its buffer is free.'
fault "missing __syncthreads" "softmax, results of wide heads" attention/wide.h "attention: $wide" '    // The results overwrite the tiles, which other warps may still read.
    __syncthreads();' '    // The results overwrite the tiles, which other warps may still read.'
fault "missing copy wait" "softmax, wide heads" attention/wide.h "attention: $wide" '      Element* const b = other_tile();
      wait_for_copies<0>();' '      Element* const b = other_tile();
      wait_for_copies<1>();'
fault "columns of another warp" "softmax, wide heads" attention/wide.h "attention: $wide" 'b + 8 * n * wide_quarter());' 'b);'
fault "missing fence before a word" ChaCAL attention/tickets.h "chacal: $long" '  __threadfence();
  *static_cast<volatile' '  *static_cast<volatile'
fault "fence before the barrier" ChaCAL attention/tickets.h "chacal: $long" '  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();' '  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0) return;'
fault "missing fence after waiting" ChaCAL attention/tickets.h "chacal: $long" ' let_others_run();
    __threadfence();' ' let_others_run();'
fault "missing wait for a block" ChaCAL attention/attend.h "chacal: $long" 'if (!own && end > at.offset()) {' 'if (!own && end > at.offset() && begin < 0) {'
fault "missing __syncthreads" "ChaCAL, own tile" attention/attend.h "chacal: $parity" '    __syncthreads();
    substitute' '    substitute'
fault "query sees its own key" DeltaFormer attention/attend.h "deltaformer: $parity" 'min(position - (deltaformer ? 1 : 0), end - 1)' 'min(position, end - 1)'
fault "gain of another row" DeltaFormer attention/attend.h "deltaformer: $parity" 'gain_of(of, 8 * c + c0)' 'gain_of(of, 8 * c)'
fault "weights without gains" "DeltaFormer, backward" attention/chain_backward.h "deltaformer: $parity" 'p[c][e] *= shared.gains[r];' 'p[c][e] *= 1.0f;'
fault "missing wait for a block" "DeltaFormer, backward" attention/chain_backward.h "deltaformer: $long" '      wait_for(done +
               (begin - first) / tile_rows * (std::int64_t{scores.heads} * task.value_slices));' '      wait_for(done, 0);'
fault "missing __syncthreads" "DeltaFormer, gradients of queries" attention/query_gradients.cu "deltaformer: $parity" '    if (!wide && first_key >= stop) __syncthreads();
' ''
fault "missing __syncthreads" "rules, forward" attention/rule_forward.h "stick: $parity" '    put_tile(s, 1, walk_stride, p);
    __syncthreads();' '    put_tile(s, 1, walk_stride, p);'
fault "missing __syncthreads" "rules, gradients of keys" attention/rule_gradients.h "stick: $parity" '    put_tile(s + own_gap(), wave_stride, 1, x);
    __syncthreads();' '    put_tile(s + own_gap(), wave_stride, 1, x);'
fault "missing wait for a block" "rules, gradients of keys" attention/rule_gradients.h "stick: $parity:$stick" 'if (!first_of_walk) wait_for(behind, number + 1);' ''
fault "missing __syncthreads" entmax attention/entmax.cu "entmax: $parity" '      put_tile(s, 1, walk_stride, x);
      __syncthreads();' '      put_tile(s, 1, walk_stride, x);'
fault "two lanes write to one list" entmax attention/entmax.cu "entmax: $many" 'candidates + thread;' 'candidates + thread / 2;'
fault "missing exchange of lanes" "stick-breaking" attention/stick_breaking.cu "stick: $many" 'float share) { return length * share; }' 'float) { return length; }'
fault "missing __syncthreads" "First-After-Last" attention/fal.cu "fal: $parity" '      if (lane == 0) counts[warp] = __popc(mask);
      __syncthreads();' '      if (lane == 0) counts[warp] = __popc(mask);'
fault "off by one in shared memory" "First-After-Last" attention/fal.cu "fal: $parity" 'sums[1][choice.slot][c] +=' 'sums[1][choice.slot + 1][c] +='
fault "misaligned vector load" "First-After-Last" attention/fal.cu "fal: $parity" 'load_pack(key + c)' 'load_pack(key + c + 1)'

fault "missing __syncthreads" "ChaCAL, backward" attention/chain_backward.h "chacal: $parity" '    __syncthreads();
    float gamma_sum' '    float gamma_sum'
fault "missing atomic operation" ChaCAL attention/tickets.h "chacal: $parity" 'ticket = atomicAdd(progress, 1);' 'ticket = (*progress)++;'
fault "missing __syncwarp" "weights and scores" attention/inspect.h "attention_weights: $parity" '  __syncwarp();
' ''
fault "two warps write to one place" "reinforced heads" attention/reinforce.cu "reinforced: $parity" ' || !pairs.begins(first)' ''
fault "two warps write to one place" "sums for backward passes" attention/backward.cu "attention: $parity" 'dots[i] = dot;' 'dots[i / 2] = dot;'

# Families without shared memory, in which each thread writes its own elements.
fault "misaligned vector load" "element-wise" floats.h "activate: $parity" 'const auto stored = *reinterpret_cast<const detail::Stored<T, width>*>(x);' 'const auto stored = *reinterpret_cast<const detail::Stored<T, width>*>(x + (width > 1));'
fault "two threads write to one place" appending append.cu "append: $parity" '(place + at.row)' '(place + at.row / 2)'
fault "two threads write to one place" "two operands" combine.cu "divide: $parity" 'thread_in_grid() * width; i < size; i += step) {
    Floats<width> u = load<width>(a + i);' 'thread_in_grid() / 2 * width; i < size; i += step) {
    Floats<width> u = load<width>(a + i);'
fault "two blocks write to one place" convolution convolution.cu "convolution: $parity" 'task.parts[(std::int64_t{blockIdx.x} * task.taps + i)' 'task.parts[(std::int64_t{blockIdx.x / 2} * task.taps + i)'
fault "two threads write to one place" dropout dropout.cu "dropout: $parity" '4 * thread_in_grid()' '2 * thread_in_grid()'
fault "two threads write to one place" embedding gather.cu "embedding: $parity" 'thread_in_grid() * width' 'thread_in_grid() / 2 * width'
fault "two threads write to one place" losses loss.cu "cross_entropy: $parity" 'log_sum[i] = all' 'log_sum[i / 2] = all'
fault "two threads write to one place" "epilogues of products" matmul.cu "matmul: $parity" 'thread_in_grid() * width; i < size; i += step) {
    Floats<width> z' 'thread_in_grid() / 2 * width; i < size; i += step) {
    Floats<width> z'
fault "two warps write to one place" "norms, forward" norm.cu "layer_norm: $parity" 'const std::int64_t i = Layout::row();
  if (i >= r.rows) return;
  const Row<T, Layout> x(r.x + i * r.n, r.n);
' 'const std::int64_t i = Layout::row() / 2;
  if (i >= r.rows) return;
  const Row<T, Layout> x(r.x + i * r.n, r.n);
'
fault "all threads write to one place" optimizers optimizer.cu "square_sums: $parity" 'if (threadIdx.x == 0) entry.sums' 'entry.sums'
fault "two threads write to one place" rearranging rearrange.cu "permute: $parity" 'thread_in_grid() * width' 'thread_in_grid() / 2 * width'
fault "two threads write to one place" rotations rope.cu "rope: $parity" 'thread_in_grid(), r.pairs' 'thread_in_grid() / 2, r.pairs'
fault "two threads write to one place" triangles triangle.cu "triangle: $parity" 'thread_in_grid() * width' 'thread_in_grid() / 2 * width'

# Blocks that wait for blocks that may not have started.
fault "waits for later tiles" ChaCAL attention/chain_forward.h "chacal: $long" '    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;' '    TicketTile next = tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    next.rank = ranks - 1 - next.rank;'
fault "waits for later tiles" "rules, gradients of keys" attention/rule_gradients.h "stick: $stick" 'tile = tiles - 1 - next.rank;' 'tile = next.rank;'

# The host and two streams, whose work is deferred.
fault "host does not wait" downloads cuda_backend.cpp "add_bias: $parity" '  stream_.download(host, device, bytes);
  stream_.synchronize();' '  stream_.download(host, device, bytes);'
fault "stream does not wait" uploads uploads.cpp "add_bias: $uploads" '      compute_.wait(arrived_);' ''
fault "event is not recorded" uploads uploads.cpp "add_bias: $uploads" '      arrived_.record(copier_);' ''
fault "host does not wait" "ring of uploads" uploads.cpp "add_bias: $uploads" '    passed_[section_].synchronize();' ''
fault "event is not recorded" "ring of uploads" uploads.cpp "add_bias: $uploads" '    passed_[section_].record(compute_);' ''
fault "wrong stream" uploads uploads.cpp "add_bias: $uploads" 'compute_.copy(target, staged_ + at, piece);' 'copier_.copy(target, staged_ + at, piece);'

[ $missed = 0 ] || { echo "seeded_faults.sh: not all faults were found (see above)" >&2; exit 1; }
