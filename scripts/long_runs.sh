#!/bin/bash
# Trains the runs of scripts/long_runs.plan with N workers, each with one thread:
#   scripts/long_runs.sh --longhand PROGRAM --out FOLDER [--workers N] [--state]
# A line of the plan names a recipe, a scale and a run of the recipe. A worker chooses the first run that
# is neither finished nor being trained, trains it for 30 minutes and chooses again. A line that is added
# at the beginning of the plan is therefore trained next. After a reboot, the same command resumes the
# runs from their last checkpoints. --state prints the last step of each run. FOLDER/bin stores the
# program with which a run was begun, so that a new build does not change the run.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
longhand="" out="" workers=2 state=no
wrong() { echo "long_runs.sh: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
    --state) state=yes; shift; continue ;;
    --longhand | --out | --workers) [ $# -ge 2 ] || wrong "$1 has no value" ;;
    *) wrong "expected --longhand, --out, --workers or --state, got '$1'" ;;
  esac
  case "$1" in
    --longhand) longhand=$2 ;;
    --out) out=$2 ;;
    --workers) workers=$2 ;;
  esac
  shift 2
done
[ -n "$out" ] || wrong "--out: expected a folder, got none"
mkdir -p "$out"/{bin,done,failed,locks,logs} || exit 1
out=$(cd "$out" && pwd)
plan=${LONG_RUNS_PLAN:-$here/long_runs.plan}

# Prints the lines of the plan without comments: recipe, scale and run.
lines() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$plan"; }

name_of() { echo "${1//\//-}-$2-$3"; }
folder_of() { echo "$out/${1//\//-}-$2"; }

if [ $state = yes ]; then
  while read -r recipe scale run; do
    step=$(tail -n 1 "$(folder_of "$recipe" "$scale")/$run/metrics.jsonl" 2>/dev/null | sed -n 's/.*"step":\([0-9]*\).*/\1/p')
    if [ -e "$out/done/$(name_of "$recipe" "$scale" "$run")" ]; then what=finished; else what=${step:+step $step}; fi
    printf '%-16s %-9s %-50s %s\n' "$recipe" "$scale" "$run" "${what:-to do}"
  done < <(lines)
  exit 0
fi
[ -x "$longhand" ] || wrong "--longhand: there is no program '$longhand'"

work() {
  while :; do
    taken=no
    while read -r recipe scale run; do
      name=$(name_of "$recipe" "$scale" "$run")
      [ ! -e "$out/done/$name" ] && [ ! -e "$out/failed/$name" ] || continue
      exec 7>"$out/locks/$name"
      flock -n 7 || continue
      taken=yes
      [ -x "$out/bin/$name" ] || cp "$longhand" "$out/bin/$name"
      # --only trains only this run. The last line of its output says whether the run is finished.
      "$out/bin/$name" repro "$recipe" --scale "$scale" --only "$run" --threads 1 --max-minutes 30 --quiet \
        --out "$(folder_of "$recipe" "$scale")" --json >"$out/logs/$name.json" 2>>"$out/logs/$name.log" </dev/null 7>&-
      status=$?
      if [ $status = 0 ] && grep -q '"finished": *true' "$out/logs/$name.json"; then
        touch "$out/done/$name"
      elif [ $status != 0 ]; then
        echo "long_runs.sh: $name: exit status $status, see $out/logs/$name.log" >&2
        touch "$out/failed/$name"  # tried again only after the next start of the script
      fi
      flock -u 7
      break
    done < <(lines)
    [ $taken = yes ] || return 0
  done
}

rm -f "$out"/failed/*
for ((i = 1; i < workers; ++i)); do work & done
work
wait
