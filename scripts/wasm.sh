#!/bin/sh
# Builds the library as WebAssembly, for the live pages of `longhand book`.
#   scripts/wasm.sh         builds build/wasm/longhand.wasm, longhand_plain.wasm and longhand.wasm.js
#   scripts/wasm.sh test    builds, and compares the module with the native program in node
# The first run installs the toolchain (scripts/setup.sh wasm) and compiles the C++ library for it.
# docs/guide/browser.md describes the module.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build/wasm
tools=$build/tools

scripts/setup.sh wasm
zig=$(echo "$PWD"/build/zig/lib/python3*/site-packages/ziglang/zig)
lib=$(dirname "$zig")/lib
mkdir -p "$tools"

# Writes standard input to a file, unless the file already has this content.
put() {
  cat > "$1.new"
  if cmp -s "$1.new" "$1"; then rm "$1.new"; else mv "$1.new" "$1"; fi
}

# The C++ library is that of the wheel, with exceptions, file system and mutexes. The wheel's own
# build of this library for WebAssembly has none of them.
put "$tools/flags" <<FLAGS
--target=wasm32-wasip1 -nostdinc -isystem $lib/libcxx/include -isystem $lib/libcxxabi/include
-isystem $lib/include -isystem $lib/libc/include/wasm-wasi-musl
-isystem $lib/libc/include/generic-musl
-D_LIBCPP_ABI_VERSION=1 -D_LIBCPP_ABI_NAMESPACE=__1 -D_LIBCPP_HAS_THREADS=1
-D_LIBCPP_HAS_THREAD_API_PTHREAD=1 -D_LIBCPP_HAS_MONOTONIC_CLOCK=1 -D_LIBCPP_HAS_TERMINAL=0
-D_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0 -D_LIBCPP_HAS_FILESYSTEM=1
-D_LIBCPP_HAS_RANDOM_DEVICE=1 -D_LIBCPP_HAS_LOCALIZATION=1 -D_LIBCPP_HAS_UNICODE=1
-D_LIBCPP_HAS_WIDE_CHARACTERS=1 -D_LIBCPP_HAS_TIME_ZONE_DATABASE=0 -D_LIBCPP_HAS_NO_STD_MODULES
-D_LIBCPP_PSTL_BACKEND_SERIAL -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE
-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE
-D_LIBCXXABI_DISABLE_VISIBILITY_ANNOTATIONS -D_LIBCPP_DISABLE_VISIBILITY_ANNOTATIONS
-D_WASI_EMULATED_MMAN -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS
-fwasm-exceptions -mllvm -wasm-use-legacy-eh -msimd128 -mbulk-memory -mnontrapping-fptoint
-msign-ext -ffunction-sections -fdata-sections -ffp-contract=off
FLAGS
put "$tools/clang++" <<CLANG
#!/bin/sh
exec "$zig" clang -D_LIBCPP_HAS_MUSL_LIBC=1 @"$tools/flags" "\$@"
CLANG
for tool in ar ranlib; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" $tool | put "$tools/$tool"
done
put "$tools/link" <<LINK
#!/bin/sh
exec "$zig" wasm-ld "$tools/start.o" "\$@" "$tools/runtime.a" "$tools/libc.a" "$tools/libzigc.a" \
  "$tools/libcompiler_rt.a" --no-entry --export=_initialize --gc-sections -s -z stack-size=4194304
LINK
chmod +x "$tools/clang++" "$tools/ar" "$tools/ranlib" "$tools/link"

# compile OUTPUT SOURCE FLAGS...: compiles a file of the runtime library.
compile() {
  output=$1 source=$2
  shift 2
  "$zig" clang "$@" @"$tools/flags" -w -Oz -DNDEBUG -c "$source" -o "$output"
}

# Compiles the C++ library, its exceptions, and the C library.
make_runtime() {
  objects=$tools/objects
  rm -rf "$objects"
  mkdir -p "$objects"
  cat > "$tools/tag.s" <<TAG
.globl __cpp_exception
.tagtype __cpp_exception i32
__cpp_exception:
TAG
  compile "$objects/tag.o" "$tools/tag.s"
  compile "$objects/unwind.o" "$lib/libunwind/src/Unwind-wasm.c" -D_LIBUNWIND_HIDE_SYMBOLS \
    -I"$lib/libunwind/include"
  compile "$tools/start.o" "$lib/libc/wasi/libc-bottom-half/crt/crt1-reactor.c"
  for source in "$lib"/libcxx/src/*.cpp "$lib"/libcxx/src/ryu/*.cpp \
    "$lib"/libcxx/src/filesystem/*.cpp "$lib"/libcxxabi/src/*.cpp; do
    musl=1
    case $source in
      */cxa_noexception.cpp | */cxa_thread_atexit.cpp | */strstream.cpp | */random_shuffle.cpp) continue ;;
      */operations.cpp) musl=0 ;;  # WASI has no copy_file_range()
    esac
    compile "$objects/$(basename "$(dirname "$source")")-$(basename "$source").o" "$source" \
      -D_LIBCPP_HAS_MUSL_LIBC=$musl -std=c++23 -D_LIBCPP_BUILDING_LIBRARY \
      -D_LIBCXXABI_BUILDING_LIBRARY -DLIBCXXABI_NON_DEMANGLING_TERMINATE -DLIBCXX_BUILDING_LIBCXXABI -I"$lib/libcxx/src" \
      -I"$lib/libcxxabi/src" -I"$lib/libcxx/libc"
  done
  echo 'int main(void) { return 0; }' > "$tools/empty.c"
  ZIG_GLOBAL_CACHE_DIR=$tools/cache "$zig" cc -target wasm32-wasi "$tools/empty.c" -o "$tools/empty.wasm"
  for name in libc libzigc libcompiler_rt; do
    find "$tools/cache" -name $name.a -exec cp {} "$tools" \;
  done
  rm -rf "$tools/cache"
  "$zig" ar rcs "$tools/runtime.a" "$objects"/*.o
}
if [ ! -e "$tools/runtime.a" ] || [ "$tools/flags" -nt "$tools/runtime.a" ]; then
  echo "wasm: compiling the C++ library"
  make_runtime
fi

cmake -S . -B "$build/objects" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/wasm.cmake" \
  -DLONGHAND_TOOLS="$tools" -DLONGHAND_THREADS=none -DLONGHAND_STATIC=ON -DLONGHAND_UNITY=ON >/dev/null
cmake --build "$build/objects" --target longhand_wasm longhand_wasm_plain
cp "$build/objects/apps/wasm/longhand.wasm" "$build/objects/apps/wasm/longhand_plain.wasm" "$build"

# The book's pages load the module as a script, because a page that was opened from disk cannot read
# other files.
packed() { gzip -9 -n -c "$1" | base64 -w 0; }
{
  printf '"use strict";\nconst longhandModule = {fused: "'
  packed "$build/longhand.wasm"
  printf '",\n  plain: "'
  packed "$build/longhand_plain.wasm"
  printf '"};\n'
} > "$build/longhand.wasm.js"
for file in longhand.wasm longhand_plain.wasm longhand.wasm.js; do
  echo "wasm: build/wasm/$file has $(wc -c < "$build/$file") bytes"
done

[ "${1:-}" = test ] || exit 0
tests/wasm_test.sh build/release/apps/longhand
