#!/bin/bash
# Checks and times the CUDA backend on a machine with a GPU, within nine minutes:
#   scripts/gpu_check.sh [--binaries FOLDER] [--out FOLDER] [--minutes N] [--python PYTHON]
# Without --binaries it builds here (preset cuda). With it, FOLDER holds `longhand` and
# `longhand_tests`, made elsewhere with
#   cmake --preset cuda -DLONGHAND_STATIC=ON && cmake --build --preset cuda
# and copied with this checkout. Writes logs, one JSON file a benchmark and check.json (what ran, how
# it ended, how long it took) into the --out folder, and prints a table of the same. Steps whose tool
# is missing, or for which no time is left, are told as skipped. Exit status 1 when a step failed.
set -uo pipefail
cd "$(dirname "$0")/.."

binaries="" out=gpu-check minutes=9 python=python3
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "gpu_check.sh: $1 has no value" >&2; exit 2; }
  case "$1" in
    --binaries) binaries=$2 ;;
    --out) out=$2 ;;
    --minutes) minutes=$2 ;;
    --python) python=$2 ;;
    *) echo "gpu_check.sh: expected --binaries, --out, --minutes or --python, got '$1'" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$out"
deadline=$((SECONDS + minutes * 60 - 10))
rows="" failed=0

record() {  # name, status, seconds, remark
  rows+="${rows:+,}{\"name\":\"$1\",\"status\":\"$2\",\"seconds\":$3,\"remark\":\"$4\"}"
  printf '%-22s %-8s %4ss  %s\n' "$1" "$2" "$3" "$4"
}

# step NAME LIMIT COMMAND...: standard output to NAME.out, errors to NAME.log.
step() {
  local name=$1 limit=$2 start=$SECONDS status left=$((deadline - SECONDS))
  shift 2
  if [ "$left" -lt 10 ]; then record "$name" skipped 0 "no time left"; return; fi
  [ "$left" -lt "$limit" ] && limit=$left
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.log"
  status=$?
  case $status in
    0) record "$name" passed $((SECONDS - start)) "" ;;
    124 | 137) failed=1; record "$name" timeout $((SECONDS - start)) "after $limit s" ;;
    *) failed=1; record "$name" failed $((SECONDS - start)) "status $status, see $name.log" ;;
  esac
}

# bench NAME LIMIT ARGUMENTS...: its JSON becomes NAME.json.
bench() {
  local name=$1 limit=$2
  shift 2
  step "$name" "$limit" "$longhand" bench "$@" --backend cuda --json
  [ -s "$out/$name.out" ] && mv "$out/$name.out" "$out/$name.json"
}

if [ -z "$binaries" ]; then
  step configure 60 cmake --preset cuda
  step build 420 cmake --build --preset cuda --target longhand longhand_tests
  binaries=build/cuda/bin-for-check
  mkdir -p "$binaries" && cp build/cuda/apps/longhand build/cuda/tests/longhand_tests "$binaries/"
fi
longhand=$binaries/longhand tests=$binaries/longhand_tests
for file in "$longhand" "$tests"; do
  [ -x "$file" ] || { echo "gpu_check.sh: there is no program $file" >&2; exit 1; }
done

step info 60 "$longhand" info --json
if ! grep -q '"devices"' "$out/info.out"; then
  "$longhand" info | grep 'backend cuda' >&2
  exit 1
fi

suite() { echo "--run_test=cuda_test/$1 --log_level=warning"; }
# shellcheck disable=SC2046  # lists of words
{
  LONGHAND_PARITY_TABLE=1 step parity 150 "$tests" $(suite all_cases_agree_with_the_reference)
  step models 40 "$tests" $(suite whole_models_agree_with_the_reference)
  step repeats 40 "$tests" $(suite training_repeats_bit_for_bit)
  step recorded 60 "$tests" --run_test=cuda_repeat_test --log_level=warning
  step copies 30 "$tests" $(suite what_goes_up_comes_down_whatever_its_size)
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step "$tool" 90 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$tests" $(suite whole_models_agree_with_the_reference)
    done
  else
    record sanitizers skipped 0 "compute-sanitizer is not installed"
  fi
}

bench gemm 40 gemm --size 8192,8192,8192 --size 131072,512,512 --size 4096,1024,1024 --seconds 0.2
bench tokenwise-f32 30 tokenwise --seconds 0.1
bench tokenwise-bf16 30 tokenwise --dtype bf16 --seconds 0.1
bench attention 40 attention --dtype bf16 --size 16,8,1024,1024,64 --size 4,8,4096,4096,64 \
  --seconds 0.2
bench training 90 training --size ffl --size ffl-fal --size ct --size toy --size toy-chacal \
  --size boxes --seconds 0.5
if "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  step pytorch 150 "$python" tests/bench/training_peers.py "$longhand" --device cuda \
    --models ffl,ffl-fal,ct --math fast,bf16 --seconds 0.5 --out "$out/pytorch.jsonl"
else
  record pytorch skipped 0 "no PyTorch with CUDA for $python"
fi

device=$(sed -n 's/.*"devices":\["\([^"]*\)".*/\1/p; s/^ *"\(NVIDIA[^"]*\)",\{0,1\}$/\1/p' "$out/info.out" | head -1)
printf '{"device":"%s","date":"%s","seconds":%d,"steps":[%s]}\n' "$device" \
  "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$SECONDS" "$rows" >"$out/check.json"
echo "device: $device; results in $out"
exit $failed
