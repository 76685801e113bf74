#!/bin/bash
# Makes the papers' tables and figures, the scaling studies and the matrix at the papers' scale, on a
# GPU that is available for some minutes at a time:
#   scripts/gpu_paper.sh [--plan] [--minutes N] [--out FOLDER] [--results FOLDER] [--longhand PROGRAM]
#                        [--binaries ARCHIVE] [--scale NAME] [--backend NAME] [--math MODE] [RECIPE...]
# For each recipe, the script measures how fast this machine trains a similar model and prints how many
# minutes the recipe takes (`longhand repro RECIPE --list-runs` counts the operations). It then runs the
# recipes in descending order of value per minute until N (9) minutes are over. It starts no recipe in the
# last minute. An interrupted recipe is continued by the next call with the same --out, so FOLDER must be
# copied to the next machine; checkpoints consist of files of up to 15 MiB. With --results, one archive of
# FOLDER is written to the --results folder at the end (scripts/gpu_results.sh). --binaries takes the
# program from the archive of scripts/gpu_pack.sh. A finished recipe has the file FOLDER/RECIPE.done and a
# page in FOLDER/pages. --plan only prints the plan. The default of --longhand is build/cuda/apps/longhand.
# The minutes include only training, not evaluations. A run that several recipes use is counted for each
# of them. The exit status is 1 if a recipe failed, and 2 for wrong flags.
set -uo pipefail
from=$PWD
cd "$(dirname "$0")/.." || exit 1

plan=no minutes=9 out=gpu-paper results="" binaries="" longhand=build/cuda/apps/longhand scale=paper backend=cuda math=bf16
chosen=()
wrong() { echo "gpu_paper.sh: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --plan) plan=yes; shift; continue ;;
    --*) [ $# -ge 2 ] || wrong "$1 has no value" ;;
    *) chosen+=("$1"); shift; continue ;;
  esac
  case "$1" in
    --minutes) minutes=$2 ;;
    --out) case $2 in /*) out=$2 ;; *) out=$from/$2 ;; esac ;;
    --results) case $2 in /*) results=$2 ;; *) results=$from/$2 ;; esac ;;
    --binaries) case $2 in /*) binaries=$2 ;; *) binaries=$from/$2 ;; esac ;;
    --longhand) case $2 in /*) longhand=$2 ;; *) longhand=$from/$2 ;; esac ;;
    --scale) scale=$2 ;;
    --backend) backend=$2 ;;
    --math) math=$2 ;;
    *) wrong "expected --plan, --minutes, --out, --results, --binaries, --longhand, --scale, --backend or --math, got '$1'" ;;
  esac
  shift 2
done
case $minutes in '' | *[!0-9]*) wrong "--minutes: expected a number, got '$minutes'" ;; esac
case $scale in smoke | laptop | paper) ;; *) wrong "--scale: expected smoke, laptop or paper, got '$scale'" ;; esac
case $out in /*) ;; *) out=$PWD/$out ;; esac
if [ -n "$binaries" ]; then
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' EXIT
  tar xJf "$binaries" -C "$unpacked" || exit 1
  longhand=$unpacked/longhand
fi
[ -x "$longhand" ] || wrong "there is no program $longhand; --longhand names it"

# A line contains a recipe, its value, and the most similar model of `longhand bench training`. The value
# is 10 for a paper's main table, 6 for its other tables and 3 for a figure. It is higher for a recipe
# whose runs are already made by another one. attentionspan/table2 and chacal/table3 are missing, because
# they need a pretrained model.
recipes="
fal/table1 10 ct-fal
fal/figure2 3 ffl-fal
fal/heads 3 ct-fal
chacal/table1 10 toy-chacal
chacal/table2 10 boxes-chacal
chacal/fig3 3 toy-chacal
chacal/fig4 3 boxes-chacal
chacal/fig5 3 toy-chacal
chacal/theorem1 3 toy-chacal
hinting/table1 6 sorting
hinting/table2 10 sorting
hinting/table3 6 sorting
hinting/fig3.2 3 sorting
hinting/fig3.3 3 sorting
hinting/fig3.5 3 sorting
hinting/fig3.6 6 sorting
hinting/fig3.8 6 sorting
hinting/fig3.11 3 sorting
hinting/fig4.12 3 sorting
hinting/fig4.15 6 sorting
hinting/tempered 3 sorting
hinting/positions 3 sorting
hinting/readings 6 sorting
hinting/copies 3 sorting
attentionspan/table6 10 boxes
attentionspan/table2-scratch 6 boxes
attentionspan/table3 6 boxes
attentionspan/table4 3 boxes
attentionspan/table5 6 boxes
attentionspan/fig1 3 boxes
attentionspan/fig2 6 boxes
attentionspan/sec6.2 6 boxes
attentionspan/sec6.4 6 boxes
attentionspan/sec6.5 3 boxes
attentionspan/columns 3 boxes
attentionspan/digits 6 boxes
attentionspan/protocol 3 boxes
attentionspan/mechanisms 6 boxes
scaling/flip-flop 6 ffl-fal
scaling/chains 6 toy-chacal
scaling/sorting 6 sorting
matrix 10 boxes"
for recipe in "${chosen[@]}"; do
  grep -q "^$recipe " <<<"$recipes" || wrong "there is no recipe $recipe that it can make"
done

started=$SECONDS
mkdir -p "$out/pages" || exit 1

# rate MODEL: sets `measured` to the 10^9 operations per second of the model's training steps, which are
# timed once in a call of the script.
declare -A rates
rate() {
  local model=$1
  [ "$scale" = paper ] || model=smoke
  if [ -z "${rates[$model]:-}" ]; then
    rates[$model]=$("$longhand" bench training --size "$model" --backend "$backend" --math "$math" \
      --seconds 1 --json 2>"$out/rate.log" | sed -n 's/.*"gflops":\([0-9.e+-]*\).*/\1/p')
    [ -n "${rates[$model]}" ] || { cat "$out/rate.log" >&2; exit 1; }
  fi
  measured=${rates[$model]}
}

# count RECIPE: sets `operations` to the number of the recipe's operations. They are counted once for each
# version of the program and stored in the --out folder, so that later calls lose no time.
counts=$out/operations-$scale-$("$longhand" version | tr -cs '[:alnum:]\n' - | head -n 1).tsv
count() {
  local recipe=$1
  operations=$(awk -v r="$recipe" '$1 == r { print $2 }' "$counts" 2>/dev/null)
  [ -z "$operations" ] || return 0
  operations=$("$longhand" repro "$recipe" --scale "$scale" --backend "$backend" --math "$math" \
    --list-runs --json 2>"$out/plan.log" | sed -n 's/^{"operations":\([0-9.e+]*\),.*/\1/p')
  [ -n "$operations" ] || { echo "gpu_paper.sh: $recipe:" >&2; cat "$out/plan.log" >&2; exit 1; }
  printf '%s\t%s\n' "$recipe" "$operations" >>"$counts"
}

# The plan has the lines "VALUE-PER-MINUTE MINUTES TFLOP/S RECIPE" in descending order of value.
lines=""
while read -r recipe value model; do
  [ -n "$recipe" ] || continue
  if [ ${#chosen[@]} -gt 0 ] && [[ " ${chosen[*]} " != *" $recipe "* ]]; then continue; fi
  count "$recipe"
  rate "$model"
  lines+=$(awk -v o="$operations" -v r="$measured" -v v="$value" -v n="$recipe" \
    'BEGIN { m = o / (r * 1e9) / 60; printf "%.6f %.1f %.1f %s\n", v / (m + 0.5), m, r / 1000, n }')$'\n'
done <<<"$recipes"
lines=$(sort -rn <<<"$lines" | awk NF)
printf '%-30s %10s %9s  %s\n' recipe minutes TFLOP/s state
while read -r _ need speed recipe; do
  name=${recipe//\//-}
  state="to do"
  [ ! -d "$out/$name-$scale" ] || state=begun
  [ ! -e "$out/$name.done" ] || state="done"
  printf '%-30s %10s %9s  %s\n' "$recipe" "$need" "$speed" "$state"
done <<<"$lines"
awk '{ sum += $2 } END { printf "%-30s %10.1f\n", "all", sum }' <<<"$lines"
[ $plan = no ] || exit 0

failed=0
while read -r _ _ _ recipe <&3; do
  name=${recipe//\//-}
  [ ! -e "$out/$name.done" ] || continue
  left=$((minutes - (SECONDS - started + 59) / 60))
  if [ $left -lt 1 ]; then echo "no time left for $recipe"; break; fi
  begun=$SECONDS
  "$longhand" repro "$recipe" --scale "$scale" --backend "$backend" --math "$math" --part-mib 15 \
    --max-minutes $left --quiet --json --out "$out/$name-$scale" --page "$out/pages/$name-$scale.md" \
    >"$out/$name.json" 2>"$out/$name.log"
  status=$?
  if [ $status != 0 ]; then
    state="failed: $(tail -n 1 "$out/$name.log")"
    failed=1
  elif grep -q '"stopped":true' "$out/$name.json"; then
    state="stopped; goes on at the next call"
  else
    state="done"
    : >"$out/$name.done"
  fi
  printf '%-30s %6ss  %s\n' "$recipe" $((SECONDS - begun)) "$state"
done 3<<<"$lines"
if [ -n "$results" ]; then scripts/gpu_results.sh "$out" "$results" || failed=1; fi
exit $failed
