# Reads what `nvcc -Xptxas -v` prints and prints a table with a row per kernel and architecture: the number
# of template instances, and the maximum of registers of a thread, of bytes spilled by a thread, and of bytes
# of static shared memory. Reports rows that exceed a limit; exit status 1 if there is one, or no row.
# The input may also contain rows of such a table. They are checked and printed again.
#
# A thread has at most 255 registers, and static shared memory at most 48 KiB on every architecture. A few
# bytes spilled cost little; more than 64 mean that a kernel has grown too large. Three kernels may spill more.
# Their threads execute thousands of instructions per step, and move the bytes at most a few times:
#   wide_query_gradients   136 bytes. A thread holds 96 sums in registers.
#   attention_kernel       76 bytes on architecture 10.0, in one instance: bf16, heads of 128 columns and two
#                          bands of queries per warp.
#   key_gradients          216 bytes on architecture 12.0, in one instance: bf16, heads of 128 columns, shifts
#                          and double buffering. Without double buffering nothing is spilled, but then no copy
#                          overlaps with products.

# The last name of a mangled nested name: _ZN8longhand4cuda4nameI... -> name. Names of template arguments
# follow it and are not read.
function name_of(mangled,    rest, last, size) {
  rest = mangled
  sub(/^_ZN?/, "", rest)
  last = mangled
  while (match(rest, /^[0-9]+/)) {
    size = substr(rest, 1, RLENGTH) + 0
    last = substr(rest, RLENGTH + 1, size)
    rest = substr(rest, RLENGTH + 1 + size)
  }
  return last
}
function limit_of(row) {
  if (row ~ /^wide_query_gradients\t/) return 136
  if (row == "attention_kernel\t100") return 76
  if (row == "key_gradients\t120") return 216
  return 64
}
function larger(a, b) { return a > b ? a : b }

/Compiling entry function/ {
  split($0, quoted, "'")
  sm = quoted[4]
  sub(/^sm_/, "", sm)
  row = name_of(quoted[2]) "\t" sm
  instances[row]++
}
/^[a-z_]+\t[0-9]+\t/ {
  row = $1 "\t" $2
  instances[row] = $3
  registers[row] = $4
  spilled[row] = $5
  shared[row] = $6
}
# ptxas also prints the properties of device functions that are not inlined.
/Function properties for/ { of_kernel = $NF == quoted[2] }
of_kernel && /bytes spill stores/ { spilled[row] = larger(spilled[row] + 0, $5 + $9) }
/Used [0-9]+ registers/ {
  for (i = 1; i < NF; i++) {
    if ($(i + 1) ~ /^registers/) registers[row] = larger(registers[row] + 0, $i + 0)
    if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[row] = larger(shared[row] + 0, $i + 0)
  }
}
END {
  sorted = "sort -t '\t' -k1,1 -k2,2n"
  print "kernel\tsm\tinstances\tregisters\tspilled\tshared"
  fflush()
  for (row in instances) {
    rows++
    print row "\t" instances[row] "\t" registers[row] + 0 "\t" spilled[row] + 0 "\t" shared[row] + 0 | sorted
    if (registers[row] + 0 == 0 || registers[row] > 255) wrong(row, registers[row] + 0 " registers", 255)
    if (spilled[row] > limit_of(row)) wrong(row, spilled[row] " bytes spilled", limit_of(row))
    if (shared[row] > 49152) wrong(row, shared[row] " bytes of static shared memory", 49152)
  }
  close(sorted)
  if (rows == 0) print "ptxas_table: expected the output of ptxas -v, got no kernel" >"/dev/stderr"
  exit bad || rows == 0
}
function wrong(row, got, limit) {
  sub(/\t/, ", sm_", row)
  print "ptxas_table: " row ": expected at most " limit ", got " got >"/dev/stderr"
  bad = 1
}
