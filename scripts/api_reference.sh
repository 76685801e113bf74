#!/bin/sh
# Writes the reference of the library's interface to build/reference/html with Doxygen. A warning is
# an error.
set -eu
cd "$(dirname "$0")/.."
scripts/setup.sh reference
mkdir -p build/reference
doxygen docs/Doxyfile
echo "build/reference/html/index.html"
