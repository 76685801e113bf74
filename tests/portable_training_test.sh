#!/bin/sh
# Trains three models for 50 steps with --math portable on every instruction set of this machine. Compares
# the parameters after each step with hashes that were computed on another machine:
#   portable_training_test.sh [--out FOLDER] LONGHAND...
# LONGHAND is the program, after the words that start an emulator if there is one. For each run, the script
# prints the model, the instruction set and the first 16 digits of the hash. With --out, the runs are kept in
# the new folder FOLDER as MODEL-SET.
set -eu
if [ "$1" = --out ]; then
  folder=$2
  shift 2
  mkdir "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
failed() {
  echo "portable_training_test: $*" >&2
  exit 1
}
words=$folder/words.txt
i=0
while [ $i -lt 400 ]; do
  [ $((i % 3)) = 0 ] && printf 'a house ' || printf 'the mouse '
  printf '%d ' $((i * i % 17))
  i=$((i + 1))
done >"$words"
sets=$("$@" info | sed -n 's/^  \([a-z0-9]*\) *available$/\1/p')
[ -n "$sets" ] || failed "expected instruction sets from $* info, got none"

# expect MODEL HASH PROGRAM...: trains on each instruction set. HASH is the SHA-256 of the hashes of all
# parameters, without line breaks: the hash of step 0 and one for each step.
expect() {
  model=$1 expected=$2
  shift 2
  for set in $sets; do
    run=$folder/$model-$set
    # shellcheck disable=SC2086  # lists of words
    LONGHAND_CPU=$set "$@" train $settings $common --out "$run"
    hashes=$(sed -n 's/.*"parameters":{"hash":"\([0-9a-f]*\)".*/\1/p' "$run/transcript.jsonl")
    states=$(echo "$hashes" | wc -l)
    [ "$states" = 51 ] || failed "$run: expected 51 states in the transcript, got $states"
    hash=$(echo "$hashes" | tr -d '\n' | sha256sum | cut -d ' ' -f 1)
    [ "$hash" = "$expected" ] || failed "$run: expected the hash $expected, got $hash"
    printf '%-9s  %-10s  %.16s\n' "$model" "$set" "$hash"
  done
}
common="--math portable --steps 50 --warm_up 10 --batch 4 --evaluate_samples 2 --threads 2 --quiet
  --transcript --transcript-every 1"
settings="--task flip-flop --task.instructions 16 --width 32 --layers 2 --heads softmax:1,fal:1"
expect flip-flop eb9a99d22057c471b05becf37e26619371d0350855683350532aa029a615188c "$@"
settings="--task text --text $words --task.length 48 --width 16 --layers 2 --heads softmax:2"
expect text c7ab59dd9ac29e7c845c2cf498ed84fa293af3d65fb37a7487e80ad82dfc78d4 "$@"
settings="--task flip-flop --task.instructions 24 --width 32 --layers 2 --heads chacal:2"
expect chacal 0f27f51db979bb4d8720d3ecfae0b15e864289857178380f5e58b01c26f61ea4 "$@"
