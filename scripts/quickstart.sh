#!/bin/sh
# Sets the machine up, builds longhand and shows what it does: what runs here, and every
# derivative held against difference quotients.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release >/dev/null
cmake --build --preset release --target longhand
longhand=build/release/apps/longhand

echo
echo "\$ $longhand info"
$longhand info
echo
echo "\$ $longhand gradcheck"
$longhand gradcheck
echo
echo "The program is $longhand; \`$longhand help\` lists its commands."
