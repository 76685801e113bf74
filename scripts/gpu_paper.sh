#!/bin/bash
# The papers' tables and figures, the scaling studies and the matrix at their own scale, where a GPU is
# at hand for minutes at a time:
#   scripts/gpu_paper.sh [--plan] [--minutes N] [--out FOLDER] [--results FOLDER] [--longhand PROGRAM]
#                        [--binaries ARCHIVE] [--scale NAME] [--backend NAME] [--math MODE] [RECIPE...]
# It measures how fast this machine trains a model like each recipe's, tells how many minutes each needs
# (`longhand repro RECIPE --list-runs` counts the operations), and makes them in the order of value for minutes
# until N (9) are over; with less than a whole minute left it begins nothing. What was stopped goes on at the
# next call with the same --out: carry that folder there; checkpoints are in parts of 15 MiB. --results puts
# one archive of the folder into FOLDER at the end (scripts/gpu_results.sh), and --binaries takes the program
# from the archive of scripts/gpu_pack.sh. A recipe that is
# finished has FOLDER/RECIPE.done and a page in FOLDER/pages. --plan prints the plan and stops. --longhand is
# build/cuda/apps/longhand if not given. Minutes are of training alone: evaluations come on top, and runs that
# recipes share are counted in each.
# Exit status 1 when a recipe failed, 2 for wrong flags.
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

# Recipe, its value, and the model of `longhand bench training` that is most like its own. A paper's
# main table counts 10, its other tables 6, a figure 3; one whose runs another has made already, more.
# attentionspan/table2 and chacal/table3 are not here: they begin with a pretrained model.
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

# rate MODEL: operations a second in its steps, measured once a call.
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

# count RECIPE: its operations, counted once for each program: the file is carried with --out, so that
# no minute of a lease goes into it.
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

# The plan: "value-for-minutes minutes recipe", the best first.
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
