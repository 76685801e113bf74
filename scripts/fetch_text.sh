#!/bin/sh
# Writes a text for training: the essays of Debian's package `anarchism`, 11 MB of English.
#   scripts/fetch_text.sh FILE
set -eu
[ $# -eq 1 ] || {
  echo "usage: scripts/fetch_text.sh FILE" >&2
  exit 2
}
file=$(realpath "$1")
work=$(mktemp -d)
chmod 755 "$work"  # apt downloads as another user
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download -qq anarchism >&2
dpkg-deb -x anarchism_*.deb .
zcat usr/share/doc/anarchism/markdown/*.md.gz >text
mv text "$file"
echo "$file: $(wc -c <"$file") bytes"
