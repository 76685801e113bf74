#!/bin/sh
# Installs a build to an empty prefix, then builds and runs the examples with the installed library, as
# an independent project would. An example's exit status is 0 if its training succeeded.
#   install_test.sh SOURCE BUILD GENERATOR COMPILER FLAGS
set -eu
source=$1 build=$2 generator=$3 compiler=$4 flags=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" > "$work/log"
cmake -S "$source/examples" -B "$work/build" -G "$generator" \
  -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" > "$work/log" || { cat "$work/log"; exit 1; }

# The manual and the completions are installed with the program.
for file in man/man1/longhand.1 man/man1/longhand-train.1 zsh/site-functions/_longhand \
  bash-completion/completions/longhand fish/vendor_completions.d/longhand.fish; do
  [ -s "$work/prefix/share/$file" ] || { echo "share/$file: not installed"; exit 1; }
done

# The library's reference is installed with the program, and its pages load nothing from the network.
reference=$work/prefix/share/doc/longhand/html
if command -v doxygen >/dev/null; then
  for file in index.html longhand_8h.html classlonghand_1_1nn_1_1Trainer.html search/search.js; do
    [ -s "$reference/$file" ] || { echo "the reference's $file: not installed"; exit 1; }
  done
  ! grep -rlE '(src|<link[^>]* href)="https?:' "$reference" || { echo "the pages above need a network"; exit 1; }
fi
# Without Doxygen, everything else is installed.
cmake=$(command -v cmake)
PATH=/none "$cmake" --install "$build" --prefix "$work/bare" > "$work/log" || { cat "$work/log"; exit 1; }
grep -q "The HTML reference is not installed, because Doxygen is missing" "$work/log" ||
  { echo "the missing reference is not reported"; exit 1; }
[ ! -e "$work/bare/share/doc/longhand/html" ] || { echo "a reference without Doxygen"; exit 1; }
(cd "$work/prefix" && find . -path ./share/doc -prune -o -type f -print | sort) > "$work/files"
(cd "$work/bare" && find . -path ./share/doc -prune -o -type f -print | sort) | cmp - "$work/files"
rm -r "$work/bare"

# The installed program makes the same book in a checkout of the repository and in any other folder.
mkdir "$work/elsewhere"
(cd "$source" && "$work/prefix/bin/longhand" book --no-checks --out "$work/book-of-checkout" > /dev/null)
(cd "$work/elsewhere" && "$work/prefix/bin/longhand" book --no-checks --out "$work/book-of-copy" > /dev/null)
diff -r "$work/book-of-checkout" "$work/book-of-copy"

# longhand.h includes every header with differentiable operations.
for header in $(cd "$source" && grep -lE '^(inline )?(Var|HeadsBackward|FalResult) [a-z_]+\(' autograd/*.h); do
  grep -q "\"$header\"" "$source/longhand.h" || { echo "longhand.h does not include $header"; exit 1; }
done

# Every example is built and run.
cd "$work"
for file in "$source"/examples/*.cpp; do
  name=$(basename "$file" .cpp)
  text=
  case $name in character_model | gpt) text=$source/examples/README.md ;; esac
  begin=$(date +%s%N)
  echo "== $name"
  "$work/build/$name" $text || { echo "$name: it did not learn what it should"; exit 1; }
  echo "   $((($(date +%s%N) - begin) / 1000000)) ms"
done

# All needed headers are installed: each one compiles when it is included by its public name.
for header in $(cd "$work/prefix/include" && find longhand -name '*.h'); do
  echo "#include <$header>"
done > "$work/all.cpp"
"$compiler" -std=c++20 -fsyntax-only -I"$work/prefix/include" "$work/all.cpp"

# A page of the course is built and run as docs/course/README.md describes: its blocks of code are
# written into the frame on that page, and the flags are those of pkg-config.
code_of() { awk '/^```/ { if (fence) fence = code = 0; else { fence = 1; code = $0 == "```cpp" } next } code' "$1"; }
{
  code_of "$source/docs/course/README.md" | sed '/the blocks of the page/,$d'
  code_of "$source/docs/course/gpt.md"
  echo '}'
} > page.cpp
if command -v pkg-config >/dev/null; then
  where=$(dirname "$(find "$work/prefix" -name longhand.pc)")
  # shellcheck disable=SC2046  # flags are words
  "$compiler" -std=c++20 $flags page.cpp -o page $(PKG_CONFIG_PATH=$where pkg-config --cflags --libs longhand)
  ./page | grep "^peter piper picked" > /dev/null || { echo "docs/course/gpt.md: it did not learn its text"; exit 1; }
else
  echo "pkg-config is not installed: longhand.pc is not tried"
fi
