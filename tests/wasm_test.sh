#!/bin/sh
# Compares the WebAssembly module with the native program. Trainings in node give the same losses and
# scores as `longhand train --math portable`, bit for bit.
#   wasm_test.sh PROGRAM
# Exits with 77 if the module is not built (scripts/wasm.sh) or there is no node.
set -eu
program=$1
cd "$(dirname "$0")/.."
[ -e build/wasm/longhand.wasm ] || { echo "wasm: skipped, scripts/wasm.sh did not run here"; exit 77; }
command -v node >/dev/null || { echo "wasm: skipped, there is no node here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# train NAME FLAGS...: trains the run NAME.
train() {
  name=$1
  shift
  "$program" train --task flip-flop --task.instructions 32 --width 32 --layers 2 --batch 16 \
    --steps 200 --rate 3e-3 --warm-up 20 --math portable --evaluate-samples 20 --quiet \
    --out "$work/$name" "$@" >/dev/null
}
train fal --heads fal:1 --positions none
train stick --heads stick:4 --positions none
train softmax --heads softmax:4
train chacal --heads chacal:4
train mixed --heads softmax:3,fal:1 --width 48 --gated 1 --activation silu --norm rms --batch 3
node --experimental-wasm-relaxed-simd tests/wasm_test.js build/wasm "$work"
