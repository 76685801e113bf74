#!/bin/sh
# Trains on 1, 2 and 4 ranks with mpirun and compares the bits of all checkpoints with training in
# one process:
#   mpi_test.sh LONGHAND [MPIRUN]
# Three models are trained: with accumulation, with texts and samples of different lengths, resumed
# on another number of ranks, and with moments and gradients distributed over the ranks. The other
# tests are about ranks with different settings, a killed rank, signals, errors, and a recipe whose
# runs are distributed over ranks. Every mpirun has a time limit, so no test waits forever. The
# script exits with 77 and a message if mpirun cannot start processes.
set -eu
longhand=$(realpath "$1")
mpirun=${2:-mpirun}
command -v "$mpirun" >/dev/null || {
  echo "mpi_test: skipped, no mpirun here (scripts/setup.sh installs it)"
  exit 77
}
"$longhand" info | grep -q '^ranks *by MPI' || {
  echo "mpi_test: skipped, the program was built without MPI"
  exit 77
}
timeout -k 5 60 "$mpirun" --oversubscribe --allow-run-as-root -np 2 true >/dev/null 2>&1 || {
  echo "mpi_test: skipped, $mpirun cannot start two processes on this machine"
  exit 77
}
folder=$(mktemp -d)
job=""
trap '[ -z "$job" ] || kill $job 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
unset OMPI_COMM_WORLD_SIZE PMIX_RANK PMI_SIZE 2>/dev/null || true

failed() {
  echo "mpi_test: $*" >&2
  [ ! -s errors ] || cat errors >&2
  exit 1
}
# ranks N WORDS...: runs the program on N ranks.
ranks() {
  number=$1
  shift
  timeout -k 5 120 "$mpirun" --oversubscribe --allow-run-as-root -np "$number" "$longhand" "$@"
}
# until_checkpoint RUN: waits until the run has a checkpoint, whichever it is, because older ones
# are removed.
until_checkpoint() {
  tries=0
  until ls "$1/checkpoints" 2>/dev/null | grep -q '^step-'; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || failed "$1 has no checkpoint within a minute"
    sleep 0.1
  done
}
same() {
  for file in model.safetensors optimizer.safetensors; do
    cmp "$1/$file" "$2/$file" || failed "$1 and $2 differ"
  done
}

plain="--batch 16 --evaluate_samples 6 --threads 1 --quiet"
common="$plain --steps 8 --evaluate_every 4 --checkpoint_every 4 --keep 9 --transcript"
fal="--task flip-flop --task.instructions 16 --width 32 --layers 2 --heads softmax:3,fal:1"
chacal="--task chains --width 32 --layers 1 --heads chacal:2 --accumulation 2 --clip 0.5"
llama="--task sorting --width 32 --layers 2 --heads softmax:4/2 --norm rms --order sequential
  --activation silu --gated 1 --tied 1 --batch_tokens 256 --feed_forward_bias 0"
for model in fal chacal llama; do
  eval "settings=\$$model"
  # shellcheck disable=SC2086  # a list of words
  "$longhand" train $settings $common --parts 8 --out $model-0 2>errors || failed "$model"
  numbers="2 4"
  [ $model != fal ] || numbers="1 2 4"
  for number in $numbers; do
    # shellcheck disable=SC2086
    ranks $number train $settings $common --out $model-$number 2>errors ||
      failed "$model on $number ranks"
    same $model-0/checkpoints/step-8 $model-$number/checkpoints/step-8
    same $model-0/checkpoints/step-4 $model-$number/checkpoints/step-4
    diff $model-0/config.ini $model-$number/config.ini || failed "other settings"
    diff $model-0/transcript.jsonl $model-$number/transcript.jsonl || failed "another transcript"
    cut_times='s/,"exchange":{[^}]*}//; s/,"slowest_seconds":[^,}]*//; s/"\(seconds\|waited\|peak_bytes\|slowest[a-z_]*\)":[^,}]*//g'
    sed "$cut_times" $model-0/metrics.jsonl >one
    sed "$cut_times" $model-$number/metrics.jsonl | diff one - || failed "other metrics"
  done
done
echo "three models, 1, 2 and 4 ranks: the bits of one process"

# With --shard, each rank writes a part of the checkpoint. The metrics are the same as without
# --shard.
for shared in "optimizer 2" "gradients 2" "gradients 4"; do
  shard=${shared% *} number=${shared#* } run=shared-$shard-${shared#* }
  # shellcheck disable=SC2086
  ranks $number train $fal $common --shard $shard --out $run 2>errors || failed "$run"
  sed "$cut_times" fal-0/metrics.jsonl >one
  sed "$cut_times" $run/metrics.jsonl | diff one - || failed "$run: other metrics"
  [ -e $run/checkpoints/step-8/model-00001-of-0000$number.safetensors ] || failed "$run: no parts"
  "$longhand" check $run >errors 2>&1 || failed "$run: a file is damaged"
  "$longhand" verify $run --all >errors 2>&1 || failed "$run: the transcript does not hold"
done
ranks 4 train --resume shared-gradients-2 --from-step 4 --quiet 2>errors || failed "resumed on 4"
sed "$cut_times" shared-gradients-2/metrics.jsonl | diff one - || failed "resumed: other metrics"
for run in shared-optimizer-2 shared-gradients-2 shared-gradients-4; do
  "$longhand" train --resume $run --from-step 4 --quiet 2>errors || failed "$run resumed by one"
  same fal-0/checkpoints/step-8 $run/checkpoints/step-8
done
echo "moments and gradients shared by the ranks: the same bits, read by any number"

# A run is resumed twice from an earlier step, each time with another number of ranks.
ranks 4 train $fal $common --out moved 2>errors || failed "moved"
for number in 2 1; do
  ranks $number train --resume moved --from-step 4 --quiet 2>errors || failed "resumed on $number"
  same fal-0/checkpoints/step-8 moved/checkpoints/step-8
done
"$longhand" train --resume moved --from-step 4 --quiet 2>errors || failed "resumed without mpirun"
same fal-0/checkpoints/step-8 moved/checkpoints/step-8
echo "resumed on other numbers of ranks: the same bits"

# With --math portable, each rank may use another instruction set. The four ranks use the sets of this
# machine in turn.
sets=$("$longhand" info | sed -n 's/^  \([a-z0-9]*\) *available$/\1/p')
strongest=$(echo "$sets" | tail -n 1)
if [ "$strongest" != portable ]; then
  alone="train $fal $common --math portable --parts 8 --out portable-0"
  # shellcheck disable=SC2086
  LONGHAND_CPU=$strongest "$longhand" $alone 2>errors || failed "--math portable"
  # shellcheck disable=SC2046  # one word for each rank
  set -- $(echo $sets $sets $sets $sets)
  # shellcheck disable=SC2086
  mixed="$longhand train $fal $common --math portable --out portable-4"
  # shellcheck disable=SC2086
  timeout -k 5 120 "$mpirun" --oversubscribe --allow-run-as-root -np 1 -x LONGHAND_CPU=$1 $mixed : \
    -np 1 -x LONGHAND_CPU=$2 $mixed : -np 1 -x LONGHAND_CPU=$3 $mixed : \
    -np 1 -x LONGHAND_CPU=$4 $mixed 2>errors || failed "ranks with the sets $1, $2, $3 and $4"
  same portable-0/checkpoints/step-8 portable-4/checkpoints/step-8
  diff portable-0/transcript.jsonl portable-4/transcript.jsonl || failed "another transcript"
  echo "four ranks with the instruction sets $1, $2, $3 and $4: the bits of one process"
fi

# A rank that would compute different results is refused with a message that names it.
refused() {
  words=$1
  shift
  status=0
  timeout -k 5 120 "$mpirun" --oversubscribe --allow-run-as-root "$@" >errors 2>&1 || status=$?
  [ $status != 0 ] || failed "accepted: $*"
  [ "$(grep -c '^longhand' errors)" = 1 ] || failed "expected one line"
  grep -q "$words" errors || failed "expected $words"
  [ ! -e refused ] || failed "a refused run left a folder"
}
start="train $fal $common --out refused"
# shellcheck disable=SC2086
{
  refused 'rank 1: .*training.rate is 2e-3 on this rank and 1e-3 on rank 0' \
    -np 1 "$longhand" $start --rate 1e-3 : -np 1 "$longhand" $start --rate 2e-3
  refused 'rank 1: .*training.seed' -np 1 "$longhand" $start --seed 1 : -np 1 "$longhand" $start --seed 2
  refused 'rank 1: .*compute.math' -np 1 "$longhand" $start --math fast : \
    -np 1 "$longhand" $start --math exact
  # Both ranks set their instruction set, because LONGHAND_CPU may already be set for this test.
  if [ "$strongest" = portable ]; then
    echo "two instruction sets: not tested, because this processor and build have only one"
  else
    refused 'rank 1: .*instruction set' -np 1 -x LONGHAND_CPU="$strongest" "$longhand" $start : \
      -np 1 -x LONGHAND_CPU=portable "$longhand" $start
  fi
  cp "$longhand" another && printf 'x' >>another
  LONGHAND_MPI_PLUGIN=$(dirname "$longhand")/liblonghand_mpi.so
  export LONGHAND_MPI_PLUGIN
  refused 'rank 1: .*program file' -np 1 "$longhand" $start : -np 1 "$folder/another" $start
  unset LONGHAND_MPI_PLUGIN
  mkdir first second
  seq 1 2000 >first/book
  seq 2 2001 >second/book
  text="train --task text --text book --task.length 16 --width 16 --layers 1 --heads softmax:1 $common
    --out $folder/refused"
  refused 'rank 1: .*book is 8896 bytes with checksum .* on this rank and 8893 bytes' \
    -np 1 -wdir "$folder/first" "$longhand" $text : -np 1 -wdir "$folder/second" "$longhand" $text
  refused 'power of two, got 3' -np 3 "$longhand" $start
  refused 'at most 2 ranks, because the batch of a step is cut into 2 parts, got 4 ranks' \
    -np 4 "$longhand" $start --parts 2
  refused 'rate' -np 2 "$longhand" $start --rate -1
  refused 'max-minutes' -np 2 "$longhand" $start --max-minutes -1
  refused 'max-minutes' -np 2 "$longhand" sweep --task sorting --grid rate=1e-3,3e-3 --out refused \
    --max-minutes -1
}
echo "ranks that differ are refused in one line"

# If a rank is killed, the other ranks print one line and end. The run can be resumed with fewer
# ranks.
long="train $fal $plain --checkpoint_every 20 --schedule constant"
# shellcheck disable=SC2086
ranks 4 $long --steps 100000 --out killed >errors 2>&1 &
job=$!
until_checkpoint killed
victim=""
for process in $(pgrep -f "^$longhand train .*--out killed"); do
  if tr '\0' '\n' </proc/"$process"/environ 2>/dev/null | grep -q '^OMPI_COMM_WORLD_RANK=2$'; then
    victim=$process
  fi
done
[ -n "$victim" ] || failed "rank 2 was not found"
begin=$(date +%s)
kill -9 "$victim"
status=0
wait $job || status=$?
job=""
seconds=$(($(date +%s) - begin))
[ $status != 0 ] || failed "a killed rank was not noticed"
[ $seconds -le 30 ] || failed "it took $seconds s to notice a killed rank"
[ "$(grep -c '^longhand' errors)" = 1 ] || failed "expected one line"
grep -q "^longhand: rank 2, process $victim on .*: lost" errors || failed "expected the rank's name"
[ -z "$(pgrep -f "^$longhand train .*--out killed" || true)" ] || failed "a rank still runs"
"$longhand" check killed >errors 2>&1 || failed "a file is damaged"
at=$(ls killed/checkpoints | sed -n 's/^step-//p' | sort -n | tail -n 1)
end=$((at + 5))
sed -i "s/^steps = .*/steps = $end/" killed/config.ini
ranks 2 train --resume killed --quiet 2>errors || failed "cannot go on with 2 ranks"
# shellcheck disable=SC2086
"$longhand" $long --steps $end --parts 8 --out undisturbed 2>errors || failed "to compare"
same undisturbed/checkpoints/step-$end killed/checkpoints/step-$end
echo "rank 2 of 4 killed: the others ended within $seconds s; resumed on 2 ranks to the same bits"

# If a rank is killed while all ranks write a checkpoint, the last complete checkpoint is undamaged.
# shellcheck disable=SC2086
ranks 4 train $fal $plain --checkpoint_every 1 --schedule constant --shard gradients \
  --steps 100000 --out torn >errors 2>&1 &
job=$!
until_checkpoint torn
victim=$(pgrep -f "^$longhand train .*--out torn" | tail -n 1)
kill -9 "$victim"
wait $job || true
job=""
"$longhand" check torn >errors 2>&1 || failed "a rank that was killed left a damaged checkpoint"
at=$(ls torn/checkpoints | sed -n 's/^step-//p' | sort -n | tail -n 1)
sed -i "s/^steps = .*/steps = $((at + 2))/" torn/config.ini
"$longhand" train --resume torn --quiet 2>errors || failed "cannot go on with 1 process"
[ -z "$(ls -A torn/checkpoints | grep unfinished || true)" ] || failed "half a checkpoint is left"
echo "a rank killed amid checkpoints that all write: the last whole one goes on"

# A termination signal to one rank stops all ranks with a checkpoint.
# shellcheck disable=SC2086
ranks 2 $long --steps 100000 --out stopped >errors 2>&1 &
job=$!
until_checkpoint stopped
process=$(pgrep -f "^$longhand train .*--out stopped" | tail -n 1)
kill -TERM "$process"
wait $job || true
job=""
"$longhand" check stopped >errors 2>&1 || failed "a stopped run is damaged"
[ ! -e stopped/lock ] || failed "the lock is left"
echo "one rank asked to end: all stop with a checkpoint"

# If each run of a recipe is trained by one rank, the runs have the same bits as in one process.
cell="repro matrix --scale smoke --mechanisms rope,fal --tasks flip-flop --quiet"
# shellcheck disable=SC2086
ranks 2 $cell --out cells >table 2>errors || failed "a recipe on two ranks"
grep -q 'FAL beside softmax' table || failed "a recipe on two ranks made no table"
# shellcheck disable=SC2086
timeout 120 "$longhand" $cell --only 2/2 --out cell >errors 2>&1 || failed "a part of a recipe"
for run in cell/*/; do
  step=$(ls "$run/checkpoints" | sed -n 's/^step-//p' | sort -n | tail -n 1)
  same "$run/checkpoints/step-$step" "cells/$(basename "$run")/checkpoints/step-$step"
done
echo "a recipe's runs spread over two ranks: the bits of one process"

# In a sweep with --halving, ranks wait for each other after each stage.
grid="sweep --task sorting --width 16 --layers 1 --steps 90 --grid rate=1e-3,3e-3,1e-2 --seeds 2 --halving 3"
# shellcheck disable=SC2086
ranks 2 $grid --quiet --out shared >table 2>errors || failed "a sweep on two ranks"
# shellcheck disable=SC2086
timeout 120 "$longhand" $grid --quiet --out alone >expected 2>errors || failed "a sweep"
cmp -s table expected || failed "a sweep on two ranks tells something else"
for run in alone/*/; do
  step=$(ls "$run/checkpoints" | sed -n 's/^step-//p' | sort -n | tail -n 1)
  same "$run/checkpoints/step-$step" "shared/$(basename "$run")/checkpoints/step-$step"
done
echo "a sweep's runs spread over two ranks: the bits of one process"
