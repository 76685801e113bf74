#!/bin/sh
# check_simd_symbols.sh ISA OBJECT...
# Fails if an object that was compiled for the instruction set ISA defines a weak symbol outside of
# namespace longhand::cpu::ISA. The linker could choose its definition for code that must run on every
# processor. (DW.ref.* are pointers of the exception tables, not code.)
set -eu
isa=$1
shift
[ $# -gt 0 ] || { echo "check_simd_symbols: no object for $isa" >&2; exit 2; }
found=$(nm -C --defined-only "$@" | grep -E '^[0-9a-f]* *[WVu] ' | grep -vE "longhand::cpu::$isa::| DW\.ref\." || true)
if [ -n "$found" ]; then
  echo "weak symbols outside longhand::cpu::$isa:" >&2
  echo "$found" >&2
  exit 1
fi
