#!/bin/sh
# Compares the WebAssembly modules with the native program. Trainings in node give the same losses and
# scores as `longhand train`, bit for bit.
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
  "$program" train --task flip-flop --task.instructions 32 --layers 2 --steps 200 --rate 3e-3 \
    --warm-up 20 --evaluate-samples 20 --quiet --out "$work/runs/$name" "$@" >/dev/null
}
small="--width 32 --batch 16 --math portable"
# shellcheck disable=SC2086  # lists of words
train fal --heads fal:1 --positions none $small
# shellcheck disable=SC2086
train stick --heads stick:4 --positions none $small
# shellcheck disable=SC2086
train softmax --heads softmax:4 $small
# shellcheck disable=SC2086
train chacal --heads chacal:4 $small
train mixed --heads softmax:3,fal:1 --width 48 --batch 3 --gated 1 --activation silu --norm rms \
  --math portable
# The plain module has the kernels of the instruction set portable, which rounds every multiplication
# and addition separately.
LONGHAND_CPU=portable train plain --heads fal:1,softmax:1 --width 32 --batch 4 --math exact
"$program" generate apps/book/live/writer --prompt "The gradient of the" --tokens 4 --temperature 0 \
  --json > "$work/writer.json"
node --experimental-wasm-relaxed-simd tests/wasm_test.js build/wasm "$work/runs" "$work/writer.json"
