#!/bin/sh
# kill_test.sh LONGHAND [MOMENTS [PART_MIB]]
# Kills a training run at so many random moments (50), going on with it after each; with PART_MIB, one
# of a larger model whose checkpoints lie in files of at most so many MiB (1 makes six). Nothing may be
# lost: every restart works, no checkpoint that was there is missed, and whenever the run reaches its
# end it has the bits of one that was never killed and each of its steps in the metrics once.
set -eu
longhand=$1
moments=${2:-50}
part_mib=${3:-0}
steps=300
width=16
[ "$part_mib" = 0 ] || width=192
settings="--task flip-flop --task.instructions 8 --width $width --layers 1 --heads softmax:1,fal:1
  --batch 4 --steps $steps --checkpoint_every 3 --evaluate_every 50 --evaluate_samples 5 --threads 1 --part_mib $part_mib"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

lost() {
  echo "kill_test: after $killed kills: $*" >&2
  [ ! -s errors ] || cat errors >&2
  exit 1
}
latest() {
  at=$(ls cut/checkpoints 2>/dev/null | sed -n 's/^step-//p' | sort -n | tail -n 1)
  echo "${at:-0}"
}
milliseconds() {
  echo $(($(date +%s%N) / 1000000))
}
check_finished() {
  diff -r "whole/checkpoints/step-$steps" "cut/checkpoints/step-$steps" || lost "other bits"
  [ "$(grep -c '"loss"' cut/metrics.jsonl)" = $steps ] || lost "other metrics"
  rm -r cut
}

killed=0
finished=0
start=$(milliseconds)
# shellcheck disable=SC2086  # a list of words
"$longhand" train $settings --quiet --out whole
length=$(($(milliseconds) - start))

while [ $killed -lt "$moments" ]; do
  before=$(latest)
  if [ -e cut/config.ini ]; then
    "$longhand" train --resume cut --quiet 2>errors &
  else
    # shellcheck disable=SC2086
    "$longhand" train $settings --quiet --out cut 2>errors &
  fi
  run=$!
  random=$(od -An -N2 -tu2 /dev/urandom)
  moment=$((random * length / 65536))
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  kill -9 $run 2>/dev/null || true
  status=0
  wait $run 2>/dev/null || status=$?
  [ "$(latest)" -ge "$before" ] || lost "the checkpoint of step $before is gone"
  case $status in
    137) killed=$((killed + 1)) ;;
    0)
      check_finished
      finished=$((finished + 1))
      ;;
    *) lost "exit status $status" ;;
  esac
done
if [ -e cut/config.ini ]; then
  "$longhand" train --resume cut --quiet 2>errors || lost "cannot go on"
  check_finished
  finished=$((finished + 1))
fi
echo "killed $killed times, $finished runs finished with the bits of one that was not"
[ $finished -ge 1 ]
