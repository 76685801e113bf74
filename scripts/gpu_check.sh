#!/bin/bash
# Checks and times the CUDA backend on a machine with a GPU in at most nine minutes:
#   scripts/gpu_check.sh [--part all|checks|speed] [--binaries FOLDER|ARCHIVE] [--out FOLDER]
#                        [--results FOLDER] [--minutes N] [--python PYTHON] [--sanitizers yes|no]
# Without --binaries, the script builds the programs in this checkout (preset cuda), which requires nvcc and
# Boost. With --binaries, `longhand` and `longhand_tests` are taken from this folder, or from the archive
# that scripts/gpu_pack.sh made on another machine.
# The script writes logs, JSON and check.json into the --out folder; check.json lists the steps, their
# results and durations. With --results, one archive of the --out folder is written to FOLDER at the end
# (scripts/gpu_results.sh). The script prints a line for each step and, at the end, the tables of the speed
# steps. The tables include the speed of PyTorch if the PyTorch of PYTHON (python3) can use the GPU.
# If a call may last ten minutes at most, run `--part checks` and `--part speed` in two calls. They write
# checks.json and speed.json.
# The most informative steps run first. A step is reported as skipped if a tool is missing or no time is
# left. compute-sanitizer occupies the GPU for minutes. Use `--sanitizers no` if other programs train
# there at the same time. The exit status is 1 if a step failed, and 2 for wrong flags.
set -uo pipefail
from=$PWD
cd "$(dirname "$0")/.." || exit 1

part=all binaries="" out=gpu-check results="" minutes=9 python=python3 sanitizers=yes
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "gpu_check.sh: $1 has no value" >&2; exit 2; }
  case "$1" in
    --part) part=$2 ;;
    --binaries) binaries=$2 ;;
    --out) out=$2 ;;
    --results) results=$2 ;;
    --minutes) minutes=$2 ;;
    --python) python=$2 ;;
    --sanitizers) sanitizers=$2 ;;
    *) echo "gpu_check.sh: expected --part, --binaries, --out, --results, --minutes, --python or --sanitizers, got '$1'" >&2; exit 2 ;;
  esac
  shift 2
done
case $part in
  all) report=check ;;
  checks | speed) report=$part ;;
  *) echo "gpu_check.sh: --part: expected all, checks or speed, got '$part'" >&2; exit 2 ;;
esac
case $sanitizers in
  yes | no) ;;
  *) echo "gpu_check.sh: --sanitizers: expected yes or no, got '$sanitizers'" >&2; exit 2 ;;
esac
case $minutes in
  '' | *[!0-9]*) echo "gpu_check.sh: --minutes: expected a number, got '$minutes'" >&2; exit 2 ;;
esac
# Paths are relative to the caller's working folder.
case $out in /*) ;; *) out=$from/$out ;; esac
case $binaries in '' | /*) ;; *) binaries=$from/$binaries ;; esac
case $results in '' | /*) ;; *) results=$from/$results ;; esac
case $python in /*) ;; */*) python=$from/$python ;; esac
mkdir -p "$out" || exit 1
rm -f "$out"/tokenwise-*.json "$out/$report.json"
deadline=$((SECONDS + minutes * 60 - 10))
tables=()
rm -f "$out/rows" "$out/failed"  # files, since the checks are processes that run at the same time

# record NAME STATUS SECONDS REMARK: prints the result of a step and adds it to the report.
record() {
  echo "{\"name\":\"$1\",\"status\":\"$2\",\"seconds\":$3,\"remark\":\"$4\"}" >>"$out/rows"
  printf '%-22s %-8s %4ss  %s\n' "$1" "$2" "$3" "$4"
}

# step NAME LIMIT COMMAND...: runs COMMAND for at most LIMIT seconds and records the result. Standard
# output goes to NAME.out and standard error to NAME.log.
step() {
  local name=$1 limit=$2 start=$SECONDS status left=$((deadline - SECONDS))
  shift 2
  if [ "$left" -lt 10 ]; then record "$name" skipped 0 "no time left"; return 1; fi
  [ "$left" -lt "$limit" ] && limit=$left
  timeout --kill-after=5 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.log"
  status=$?
  # Boost.Test skips a test that finds no device, and ends with status 0.
  if [ $status = 0 ] && grep -q 'test cases out of .* skipped' "$out/$name.log" &&
    ! grep -Eq 'test cases? out of [0-9]+ passed' "$out/$name.log"; then
    status=skipped
  fi
  case $status in
    0) record "$name" passed $((SECONDS - start)) "" ;;
    124 | 137) : >"$out/failed"; record "$name" timeout $((SECONDS - start)) "after $limit s" ;;
    *) : >"$out/failed"; record "$name" failed $((SECONDS - start)) "status $status, see $name.log" ;;
  esac
  [ $status = 0 ]
}

# bench NAME LIMIT ARGUMENTS...: runs a benchmark and writes its JSON to NAME.json.
bench() {
  local name=$1 limit=$2
  shift 2
  step "$name" "$limit" "$longhand" bench "$@" --backend cuda --json
  [ -s "$out/$name.out" ] && mv "$out/$name.out" "$out/$name.json"
}

# peers NAME LIMIT SCRIPT ARGUMENTS...: makes a table that compares longhand with PyTorch and writes its
# rows to NAME.jsonl.
peers() {
  local name=$1 limit=$2 script=$3
  shift 3
  rm -f "$out/$name.jsonl"
  tables+=("$name")
  step "$name" "$limit" "$python" "tests/bench/$script" "$longhand" --device cuda \
    --out "$out/$name.jsonl" "$@"
}

case $binaries in
  *.tar.xz)
    mkdir -p "$out/bin" && tar xJf "$binaries" -C "$out/bin" || exit 1
    binaries=$out/bin
    ;;
esac
if [ -z "$binaries" ]; then
  if ! command -v nvcc >/dev/null && [ ! -x /usr/local/cuda/bin/nvcc ]; then
    echo "gpu_check.sh: there is no nvcc to build with; scripts/gpu_pack.sh packs programs elsewhere" >&2
    exit 1
  fi
  if ! echo '#include <boost/test/unit_test.hpp>' | c++ -E -x c++ - >/dev/null 2>&1; then
    echo "gpu_check.sh: there is no Boost to build with; scripts/gpu_pack.sh packs programs elsewhere" >&2
    exit 1
  fi
  step configure 60 cmake --preset cuda || exit 1
  step build 420 cmake --build --preset cuda --target longhand longhand_tests || exit 1
  binaries=build/cuda/bin-for-check
  mkdir -p "$binaries" && cp build/cuda/apps/longhand build/cuda/tests/longhand_tests "$binaries/"
fi
longhand=$binaries/longhand tests=$binaries/longhand_tests
for file in "$longhand" "$tests"; do
  [ -x "$file" ] || { echo "gpu_check.sh: there is no program $file" >&2; exit 1; }
done

ask() { timeout 60 "$longhand" info --json >"$out/info.json" 2>"$out/info.log"; }
ask
if grep -q 'libcublasLt.* is not found' "$out/info.json"; then  # Python's packages may contain it
  found=$("$python" -c 'import nvidia, pathlib
print(next(f.parent for p in nvidia.__path__ for f in pathlib.Path(p).rglob("libcublasLt.so.13")))' 2>/dev/null)
  [ -n "$found" ] && export LD_LIBRARY_PATH=$found${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} && ask
fi
if ! grep -q '"devices"' "$out/info.json"; then
  reason=$(grep -o '"name":"cuda"[^}]*' "$out/info.json" | sed 's/.*"reason":"//; s/"$//')
  echo "gpu_check.sh: cuda: ${reason:-$longhand info: $(head -1 "$out/info.log")}" >&2
  exit 1
fi
device=$(sed -n 's/.*"devices":\["\([^"]*\)".*/\1/p' "$out/info.json")
echo "device: $device"

suite() { echo "--run_test=$1 --log_level=warning --report_level=short"; }
# Nothing here is timed, so all checks run at the same time.
# shellcheck disable=SC2046  # lists of words
checks() {
  step copies 60 "$tests" $(suite cuda_test/uploads_of_any_size_download_unchanged) &
  step models 90 "$tests" $(suite cuda_test/whole_models_agree_with_the_reference) &
  step repeats 90 "$tests" $(suite cuda_test/training_repeats_bit_for_bit) &
  step recorded 120 "$tests" $(suite cuda_repeat_test) &
  step decoded 120 "$tests" $(suite cuda_decode_test) &
  LONGHAND_PARITY_TABLE=1 step parity 240 "$tests" $(suite cuda_test/all_cases_agree_with_the_reference) &
  if [ $sanitizers = no ]; then
    record sanitizers skipped 0 "not requested"
  elif command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step "$tool" 240 compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$tests" $(suite cuda_test/small_cases_agree_with_the_reference) &
    done
  else
    record sanitizers skipped 0 "compute-sanitizer is not installed"
  fi
  wait
}

# Times a language model's next token, with and without a recorded graph, and the reading of a prompt.
decoding() { bench decoding 60 decoding --size smollm2-135m --dtype bf16 --math bf16 --seconds 0.3; }

# Times operations of the size of the paper's models, which does not fit into the device's cache.
tokenwise() {
  for type in bf16 f32; do
    bench tokenwise-$type 30 tokenwise --dtype $type --size 131072,1024 --seconds 0.1
  done
}
equal=ffl:128,ffl-fal:128,ct:64,ct-fal:64
ragged=toy-chacal:128,boxes-chacal:256,sorting:1024,toy:128,boxes:256
speed() {
  if ! "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>"$out/torch.log"; then
    record pytorch skipped 0 "$python has no PyTorch that sees the GPU: ours alone"
    speed_alone
    return
  fi
  peers training-bf16 90 training_peers.py --models $equal --math bf16 --seconds 0.5 --no-floor
  peers attention 60 attention_peers.py --mechanisms bf16 --shapes 0,1,2,3 --seconds 0.2
  peers products 60 product_peers.py --seconds 0.1
  decoding
  tokenwise
  peers ragged-bf16 120 ragged_peers.py --models $ragged --math bf16 --steps 8 --seconds 0.5 --no-floor
  peers training-tf32 120 training_peers.py --models $equal --math fast --seconds 0.5 --no-floor
  peers ragged-tf32 120 ragged_peers.py --models $ragged --math fast --steps 8 --seconds 0.5 --no-floor
  peers mechanisms 60 attention_peers.py --mechanisms softmax,chacal,fal --shapes 0,2,4 --seconds 0.2
}
speed_alone() {
  local sizes=() size
  for size in ${equal//,/ } ${ragged//,/ }; do sizes+=(--size "$size"); done
  bench training 120 training "${sizes[@]}" --seconds 0.5
  bench attention 60 attention --mechanism chacal --mechanism fal --dtype bf16 --math bf16 --size 16,16,1024,1024,64 \
    --size 4,16,4096,4096,64 --seconds 0.2
  bench products 60 gemm --size 8192,8192,8192 --size 131072,512,512 --seconds 0.1
  decoding
  tokenwise
}

[ "$part" = speed ] || checks
[ "$part" = checks ] || speed

for name in "${tables[@]}"; do
  [ -s "$out/$name.out" ] && { printf '\n%s\n' "$name"; cat "$out/$name.out"; }
done
for name in tokenwise-bf16 tokenwise-f32; do
  file=$out/$name.json
  if [ "$part" = checks ] || [ ! -s "$file" ]; then continue; fi
  printf '\n%s: share of the rate of a copy of memory\n' "$name"
  grep -o '"kernel":"[^"]*"\|"share":[0-9.e+-]*' "$file" | sed 's/"kernel":"\(.*\)"/\1/; s/"share"://' | paste -d, - -
done
if [ "$part" != checks ] && [ -s "$out/decoding.json" ]; then
  printf '\ndecoding: tokens a second\n'
  grep -o '"work":"[^"]*"\|"tokens_per_second":[0-9.e+-]*' "$out/decoding.json" |
    sed 's/"work":"\(.*\)"/\1/; s/"tokens_per_second"://' | paste -d: - -
fi
printf '{"device":"%s","date":"%s","seconds":%d,"steps":[%s]}\n' "$device" \
  "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$SECONDS" "$(paste -sd, "$out/rows")" >"$out/$report.json"
failed=0
[ ! -e "$out/failed" ] || failed=1
rm -f "$out/rows" "$out/failed"
printf '\ndevice: %s; results in %s\n' "$device" "$out"
if [ -n "$results" ]; then
  rm -rf "$out/bin"
  scripts/gpu_results.sh "$out" "$results" || failed=1
fi
exit $failed
