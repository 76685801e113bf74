#!/bin/sh
# Writes the library's interface, by Doxygen, to build/reference/html. A warning is an error.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh reference
mkdir -p build/reference
doxygen docs/Doxyfile
echo "build/reference/html/index.html"
