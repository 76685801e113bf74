#!/bin/sh
# Tests scripts/ptxas_table.awk with lines that `nvcc -Xptxas -v` printed, shortened and altered.
#   ptxas_table_test.sh SOURCE
set -eu
cd "$1"

# kernel NAME SM SPILLED REGISTERS SHARED: the lines of one instance of a kernel.
kernel() {
  echo "ptxas info    : Compiling entry function '$1' for 'sm_$2'"
  echo "ptxas info    : Function properties for $1"
  echo "    $3 bytes stack frame, $3 bytes spill stores, $3 bytes spill loads"
  echo "ptxas info    : Used $4 registers, used 1 barriers, $5 bytes smem, 448 bytes cmem[0]"
}
# Names of kernels in anonymous namespaces. The second name has a template argument that is itself a
# name.
ours=_ZN8longhand4cuda35_GLOBAL__N__50240296_7_norm_cu_41094norm
rows="${ours}INS0_9RowLayoutILi4ELi8ENS0_5LanesILi32EEEEELb0EfEEvNS1_5TasksIT1_EE"
table() { awk -f scripts/ptxas_table.awk; }
expect() {  # expect WANTED GOT
  if [ "$1" != "$2" ]; then
    printf 'ptxas_table_test: expected\n%s\ngot\n%s\n' "$1" "$2" >&2
    exit 1
  fi
}

got=$(
  {
    echo "ptxas info    : 0 bytes gmem"
    kernel "${ours}IfEEvPT_" 120 0 40 32
    kernel "${ours}IfEEvPT_" 80 8 56 32
    echo "ptxas info    : Function properties for __internal_trig_reduction_slowpathf"
    echo "    40 bytes stack frame, 900 bytes spill stores, 900 bytes spill loads"
    kernel "$rows" 80 0 94 8192
    kernel _ZN8longhand4cuda6gatherEPKi 80 32 255 0
    kernel _ZN8longhand4cuda20wide_query_gradientsEPKi 80 68 255 0
  } | table
)
expect "kernel	sm	instances	registers	spilled	shared
gather	80	1	255	64	0
norm	80	2	94	16	8192
norm	120	1	40	0	32
wide_query_gradients	80	1	255	136	0" "$got"

# refused MESSAGE: standard input is refused with this message.
refused() {
  if message=$(table 2>&1 >/dev/null); then
    echo "ptxas_table_test: expected exit status 1, got 0" >&2
    exit 1
  fi
  expect "ptxas_table: $1" "$message"
}
kernel "$ours" 90 33 40 0 | refused "norm, sm_90: expected at most 64, got 66 bytes spilled"
kernel _ZN8longhand4cuda20wide_query_gradientsEPKi 90 69 40 0 |
  refused "wide_query_gradients, sm_90: expected at most 136, got 138 bytes spilled"
kernel _ZN8longhand4cuda16attention_kernelEPKi 90 33 40 0 |
  refused "attention_kernel, sm_90: expected at most 64, got 66 bytes spilled"
kernel "$ours" 90 0 40 49153 |
  refused "norm, sm_90: expected at most 49152, got 49153 bytes of static shared memory"
kernel "$ours" 90 0 256 0 | refused "norm, sm_90: expected at most 255, got 256 registers"
echo "nvcc fatal" | refused "expected the output of ptxas -v, got no kernel"

# The committed table is within the limits and has a row for each kernel and architecture. The name of
# a kernel follows __global__ void and, in most cases, __launch_bounds__(...).
names() {
  cat "$@" | awk 'BEGIN { RS = "__global__" }
       NR > 1 {
         sub(/^[ \n]*void[ \n]*/, "")
         if (/^__launch_bounds__/) {
           sub(/^__launch_bounds__/, "")
           depth = 0
           do {
             if (substr($0, 1, 1) == "(") depth++
             if (substr($0, 1, 1) == ")") depth--
             $0 = substr($0, 2)
           } while (depth > 0)
         }
         sub(/^[ \n]*/, "")
         print substr($0, 1, index($0, "(") - 1)
       }' | sort -u
}
committed=docs/results/cuda-registers.tsv
checked=$(table <$committed)  # the status of a command inside an argument would be lost
expect "$(cat $committed)" "$checked"
expect "$(for name in $(names cuda/*.cu cuda/*.h cuda/attention/*); do
            for sm in 80 86 89 90 100 120; do echo "$name $sm"; done
          done)" "$(sed 1d $committed | cut -f1,2 | tr '\t' ' ')"
