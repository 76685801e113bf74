#!/bin/sh
# Kills trainings and resumes them, KILLS times (50):
#   kill_test.sh LONGHAND [KILLS [PART_MIB]]
# Half of the kills happen at random times, half while a certain file of a checkpoint is being written.
# Afterwards the disk is filled (a small tmpfs, if mounting is permitted) and large files are forbidden
# (ulimit -f). With PART_MIB, a larger model is trained, whose checkpoints consist of files of at most
# PART_MIB MiB (six files with 1).
#
# No work may be lost. Every restart succeeds, no checkpoint disappears, and all checkpoints are
# undamaged. The parameters, moments and score of a finished run have the same bits as without
# interruptions, its metrics contain every step and evaluation exactly once, and its transcript holds.
set -eu
longhand=$1
kills=${2:-50}
part_mib=${3:-0}
steps=60
width=16
[ "$part_mib" = 0 ] || width=192
settings="--task flip-flop --task.instructions 8 --width $width --layers 1 --heads softmax:1,fal:1
  --batch 4 --steps $steps --checkpoint_every 3 --evaluate_every 20 --evaluate_samples 5 --threads 1
  --part_mib $part_mib --transcript --quiet"

folder=$(mktemp -d)
clean_up() {
  ! mountpoint -q "$folder/small" 2>/dev/null || umount "$folder/small"
  rm -rf "$folder"
}
trap clean_up EXIT
cd "$folder"

lost() {
  echo "kill_test: after $killed kills: $*" >&2
  [ ! -s errors ] || cat errors >&2
  exit 1
}
latest() {
  at=$(ls "$1/checkpoints" 2>/dev/null | sed -n 's/^step-//p' | sort -n | tail -n 1)
  echo "${at:-0}"
}
milliseconds() {
  echo $(($(date +%s%N) / 1000000))
}
random() {
  echo $(($(od -An -N4 -tu4 /dev/urandom) % $1))
}
# Starts or resumes a run.
train() {
  if [ -e "$1/config.ini" ]; then
    exec "$longhand" train --resume "$1" --quiet
  fi
  # shellcheck disable=SC2086  # a list of words
  exec "$longhand" train $settings --out "$1"
}
# check_finished RUN [UNLOGGED]: checks a finished run. Its metrics may lack at most UNLOGGED steps,
# whose lines could not be written.
check_finished() {
  diff -r "whole/checkpoints/step-$steps" "$1/checkpoints/step-$steps" || lost "other bits"
  diff whole/checkpoints/best "$1/checkpoints/best" || lost "another best one"
  lines=$(grep -c '"loss"' "$1/metrics.jsonl")
  [ "$lines" -le $steps ] && [ "$lines" -ge $((steps - ${2:-0})) ] || lost "$lines steps in the metrics"
  [ "$(grep -o '"step":[0-9]*,"loss"' "$1/metrics.jsonl" | sort -u | wc -l)" = "$lines" ] ||
    lost "a step twice in the metrics"
  [ "$(grep -c '"intervals"' "$1/metrics.jsonl")" = 3 ] || lost "other evaluations in the metrics"
  "$longhand" check "$1" >errors 2>&1 || lost "a file is damaged"
  "$longhand" verify "$1" --all >errors 2>&1 || lost "the transcript does not hold"
  [ -z "$(find "$1" -name '.*' -mindepth 1)" ] || lost "hidden files are left"
  rm -r "$1"
  finished=$((finished + 1))
}
# Waits up to about half a second for a file that matches the pattern.
wait_for_file() {
  tries=0
  while [ $tries -lt 10000 ]; do
    tries=$((tries + 1))
    # shellcheck disable=SC2086  # a pattern
    set -- $pattern
    [ ! -e "$1" ] || return 0
  done
}

killed=0
inside=0
finished=0
begin=$(milliseconds)
(train whole)
length=$(($(milliseconds) - begin))
begin=$(milliseconds)

while [ $killed -lt "$kills" ]; do
  before=$(latest cut)
  (train cut) 2>errors &
  run=$!
  if [ "$(random 2)" = 0 ]; then
    moment=$(random "$length")
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  else
    case $(random 6) in
      0) pattern='cut/checkpoints/.unfinished-*' ;;
      1) pattern='cut/checkpoints/.unfinished-*/.longhand-*' ;;
      2) pattern='cut/checkpoints/.unfinished-*/model*.safetensors' ;;
      3) pattern='cut/checkpoints/.unfinished-*/optimizer*.safetensors' ;;
      4) pattern='cut/checkpoints/.unfinished-old-*' ;;
      5) pattern='cut/checkpoints/.longhand-*' ;;
    esac
    moment=$(random "$length")
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    wait_for_file
  fi
  kill -9 $run 2>/dev/null || true
  status=0
  wait $run 2>/dev/null || status=$?
  [ "$(latest cut)" -ge "$before" ] || lost "the checkpoint of step $before is gone"
  case $status in
    137)
      killed=$((killed + 1))
      set -- cut/checkpoints/.*-*
      [ ! -e "$1" ] || inside=$((inside + 1))
      [ $((killed % 10)) != 0 ] || [ ! -e cut/config.ini ] ||
        "$longhand" check cut >errors 2>&1 || lost "a file is damaged"
      ;;
    0) check_finished cut ;;
    *) lost "exit status $status" ;;
  esac
done
if [ -e cut/config.ini ]; then
  (train cut) 2>errors || lost "cannot go on"
  check_finished cut
fi
seconds=$((($(milliseconds) - begin) / 1000))
echo "kill -9: $killed kills, $inside of them while a checkpoint was written;" \
  "$finished runs finished with the bits of one that was not killed; $seconds s"

# A run without disk space fails with one line and status 1, has undamaged checkpoints and can be
# resumed.
fails_in_one_line() {
  status=0
  ("$@") 2>errors || status=$?
  [ $status = 1 ] && [ "$(wc -l <errors)" = 1 ] || lost "expected one line and status 1, got $status"
  [ ! -e "$out/config.ini" ] || "$longhand" check "$out" >check 2>&1 || lost "$(cat check)"
}
limited() {
  ulimit -f "$1"
  train "$2"
}
finished=0
failed=0
out=limited
for blocks in 1 2 4 8 12 16 20 24; do  # blocks of 512 bytes
  fails_in_one_line limited $blocks limited
  failed=$((failed + 1))
  [ $((blocks % 8)) = 0 ] || continue
  (train limited) 2>errors || lost "cannot go on"
  check_finished limited 3
done
echo "ulimit -f: $failed failures in one line, $finished runs finished with the same bits"

finished=0
failed=0
mkdir small
out=small/run
if mount -t tmpfs -o size=64k longhand small 2>/dev/null; then
  for size in 32k 48k 64k 96k 128k; do
    mount -o remount,size=$size small
    fails_in_one_line train small/run
    failed=$((failed + 1))
  done
  mount -o remount,size=64m small
  (train small/run) 2>errors || lost "cannot go on"
  check_finished small/run 5
  umount small
  echo "full disk: $failed failures in one line, $finished runs finished with the same bits"
else
  echo "full disk: not tested, mounting a tmpfs is not permitted"
fi
