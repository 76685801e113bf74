#!/bin/sh
# Installs packages, builds longhand and runs a small experiment: trains a GPT, and one with
# First-After-Last heads, on Flip-Flop, and compares both in and out of distribution.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release -DLONGHAND_UNITY=ON >/dev/null
cmake --build --preset release --target longhand
longhand=build/release/apps/longhand

echo
echo "\$ $longhand info"
$longhand info
echo
echo "\$ $longhand repro fal/table1 --scale smoke"
$longhand repro fal/table1 --scale smoke
echo
echo "The program is $longhand; \`$longhand help\` lists its commands."
