#!/bin/bash
# Packs the programs that scripts/gpu_check.sh and gpu_paper.sh run on a borrowed GPU machine, and
# checks that the checkout with them stays within what such a machine takes:
#   scripts/gpu_pack.sh [--binaries FOLDER] [--into FOLDER]
# Without --binaries it builds `longhand` and `longhand_tests` for the H100 alone (sm_90, static, no line
# numbers of kernels). They are stripped and compressed into FOLDER/binaries.tar.xz (build/gpu-pack), which git
# ignores and which the loan must name. Prints the command for each call on that machine. Exit status 1
# if the checkout's files, tracked or not ignored, and the archive are more than 64 MiB.
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."
binaries="" into=build/gpu-pack
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "gpu_pack.sh: $1 has no value" >&2; exit 2; }
  case "$1" in
    --binaries) case $2 in /*) binaries=$2 ;; *) binaries=$from/$2 ;; esac ;;
    --into) into=$2 ;;
    *) echo "gpu_pack.sh: expected --binaries or --into, got '$1'" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$into"
if [ -z "$binaries" ]; then
  cmake --preset cuda -B build/gpu -DLONGHAND_STATIC=ON -DCMAKE_CUDA_ARCHITECTURES=90-real \
    -DLONGHAND_CUDA_LINES=OFF
  cmake --build build/gpu --target longhand longhand_tests
  binaries=build/gpu/bin
  mkdir -p $binaries && cp build/gpu/apps/longhand build/gpu/tests/longhand_tests $binaries/
fi
for program in longhand longhand_tests; do
  [ -x "$binaries/$program" ] || { echo "gpu_pack.sh: there is no program $binaries/$program" >&2; exit 1; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$binaries/longhand" "$binaries/longhand_tests" "$work/"
for program in "$work"/*; do
  if head -c 4 "$program" | grep -q ELF; then strip "$program"; fi
done
tar cJf "$into/binaries.tar.xz" -C "$work" longhand longhand_tests
tree=$(git ls-files -z --cached --others --exclude-standard | xargs -0 stat -c %s 2>/dev/null |
  awk '{ sum += $1 } END { print sum + 0 }')
pack=$(stat -c %s "$into/binaries.tar.xz")
printf 'checkout %d KiB, %s/binaries.tar.xz %d KiB, of 65536 KiB\n' $((tree >> 10)) "$into" $((pack >> 10))
if [ $((tree + pack)) -gt $((64 << 20)) ]; then
  echo "gpu_pack.sh: expected at most 64 MiB, got $(((tree + pack) >> 20)) MiB" >&2
  exit 1
fi
cat <<END
The calls, each within ten minutes, with $into carried:
  scripts/gpu_check.sh --part checks --binaries $into/binaries.tar.xz --out /tmp/checks --results "\$OUT"
  scripts/gpu_check.sh --part speed --binaries $into/binaries.tar.xz --out /tmp/speed --results "\$OUT"
  scripts/gpu_paper.sh --binaries $into/binaries.tar.xz --out /tmp/gpu-paper --results "\$OUT"
END
