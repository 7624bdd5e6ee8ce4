#!/bin/sh
# The libraries that the preset wasm is linked with, made once in ~/.cache/stepcast/wasm (or
# STEPCAST_WASM_CACHE): 250 MB of sources from Debian and npm, five CPU minutes. Needs the packages
# that ./dev page installs. What was made from this same script is left as it is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${STEPCAST_WASM_CACHE:-$HOME/.cache/stepcast/wasm}
sysroot=$cache/sysroot
stamp=$(cksum <"$here/toolchain.sh")
[ "$(cat "$sysroot/stamp" 2>/dev/null || true)" != "$stamp" ] || exit 0
mkdir -p "$cache/downloads" "$cache/build"

# NAME SHA256: the archive NAME in downloads is that one.
is_that() {
  [ -f "$cache/downloads/$1" ] && echo "$2  $cache/downloads/$1" | sha256sum -c --status
}

# NAME SHA256 PACKAGE=VERSION: the upstream archive of a source package of Debian, whatever sources
# this machine's apt knows.
from_debian() {
  is_that "$1" "$2" && return 0
  apt=$cache/build/apt
  mkdir -p "$apt/lists/partial"
  echo "deb-src http://deb.debian.org/debian bookworm main" >"$apt/sources.list"
  set -- "$1" "$2" "$3" -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- \
    -o "Dir::State::Lists=$apt/lists"
  name=$1 sum=$2 package=$3
  shift 3
  [ -f "$apt/updated" ] || apt-get "$@" update -qq
  touch "$apt/updated"
  mkdir -p "$apt/of_$name"
  (cd "$apt/of_$name" && apt-get "$@" -o APT::Sandbox::User=root source -qq --download-only "$package" >&2)
  for archive in "$apt/of_$name"/*.orig.tar.*; do
    case $archive in *.asc) ;; *) mv "$archive" "$cache/downloads/$name" ;; esac
  done
  is_that "$name" "$sum" || { echo "toolchain: $package is not the archive of $sum" >&2; exit 1; }
}
# NAME SHA256 PACKAGE@VERSION
from_npm() {
  is_that "$1" "$2" && return 0
  archive=$(cd "$cache/downloads" && npm pack --silent "$3")
  mv "$cache/downloads/$archive" "$cache/downloads/$1"
  is_that "$1" "$2" || { echo "toolchain: $3 is not the archive of $2" >&2; exit 1; }
}
# NAME [WHAT ...]: its files into an empty folder build/NAME, without the archive's own.
unpack() {
  name=$1
  shift
  rm -rf "$cache/build/${name%%.*}"
  mkdir -p "$cache/build/${name%%.*}"
  tar -xf "$cache/downloads/$name" -C "$cache/build/${name%%.*}" --strip-components=1 \
    --no-same-owner --wildcards "$@"
}

from_npm c.tgz 6230ea1afa9691fa065935cf68c01642ff9b31c183fe8ac64cdfda025df06009 \
  @yowasp/clang@22.0.0-git20542-10
from_debian llvm.tar.xz ae498f3bc58ae2d9f64ef5f0c035c4240152bf015a5b7738b15c22e93bdc97ce \
  llvm-toolchain-19=1:19.1.7-3~deb12u1
from_debian boost.tar.xz 192f5df504d282cb81288f88232d8af45b64a9ab531e1c7cf8ae955f16f6bb28 \
  boost1.74=1.74.0+ds1-21
from_debian yaml.tar.xz dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312 \
  yaml-cpp=0.7.0+dfsg-8
from_debian zlib.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1 \
  zlib=1:1.2.13.dfsg-1

rm -rf "$sysroot"
mkdir -p "$sysroot/include" "$sysroot/lib"
flags="--target=wasm32-wasip1 --sysroot=$sysroot -fwasm-exceptions -ffp-contract=off -O2
  -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_PROCESS_CLOCKS
  -D_WASI_EMULATED_GETPID"
flags=$(echo "$flags" | tr '\n' ' ')

# C: headers and libraries of the package; its compiler is not used, nor its libc++ (which throws
# nothing).
unpack c.tgz package/gen/llvm-resources.tar
mkdir "$cache/build/c/all"
tar -xf "$cache/build/c/gen/llvm-resources.tar" -C "$cache/build/c/all" --no-same-owner
found=$(find "$cache/build/c/all" -type d -path '*include/wasm32-wasip1' | head -n 1)
cp -R "$found" "$sysroot/include/"
cp -R "$(dirname "$(dirname "$found")")/lib/wasm32-wasip1" "$sysroot/lib/"
rm -rf "$sysroot/include/wasm32-wasip1/c++" "$sysroot"/lib/wasm32-wasip1/libc++* \
  "$sysroot"/lib/wasm32-wasip1/*.so

# libc++ with exceptions, files and mutexes, and what unwinds them.
top=llvm-toolchain-19_19.1.7
unpack llvm.tar.xz $top/cmake $top/libcxx $top/libcxxabi $top/libunwind $top/runtimes \
  $top/llvm/cmake
llvm=$cache/build/llvm
rm -rf "$cache/build/libcxx"
cmake -G Ninja -S "$llvm/runtimes" -B "$cache/build/libcxx" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_SYSTEM_NAME=Generic -DCMAKE_SYSTEM_PROCESSOR=wasm32 \
  -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DCMAKE_INSTALL_PREFIX="$cache/build/installed" \
  -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_AR=/usr/bin/llvm-ar-19 \
  -DCMAKE_RANLIB=/usr/bin/llvm-ranlib-19 -DCMAKE_SYSROOT="$sysroot" \
  -DCMAKE_C_COMPILER_TARGET=wasm32-wasip1 -DCMAKE_CXX_COMPILER_TARGET=wasm32-wasip1 \
  -DCMAKE_C_FLAGS="$flags -I$llvm/libunwind/include" \
  -DCMAKE_CXX_FLAGS="$flags -I$llvm/libunwind/include" \
  "-DLLVM_ENABLE_RUNTIMES=libcxxabi;libcxx" -DLIBCXX_ENABLE_SHARED=OFF \
  -DLIBCXXABI_ENABLE_SHARED=OFF -DLIBCXX_CXX_ABI=libcxxabi -DLIBCXX_HAS_PTHREAD_API=ON \
  -DLIBCXXABI_HAS_PTHREAD_API=ON -DLIBCXX_ENABLE_TIME_ZONE_DATABASE=OFF \
  -DLLVM_INCLUDE_TESTS=OFF -DLIBCXX_INCLUDE_TESTS=OFF -DLIBCXXABI_INCLUDE_TESTS=OFF \
  -DLIBCXX_INCLUDE_BENCHMARKS=OFF \
  -DLIBCXXABI_SILENT_TERMINATE=ON -DLIBCXXABI_USE_LLVM_UNWINDER=OFF >&2
cmake --build "$cache/build/libcxx" --target install >&2
cp -R "$cache/build/installed/include/c++" "$sysroot/include/"
cp "$cache"/build/installed/lib/*.a "$sysroot/lib/wasm32-wasip1/"

# NAME FLAGS FILE ...: a library of these files.
archive() {
  name=$1 own=$2
  shift 2
  objects=$cache/build/objects_$name
  rm -rf "$objects" "$sysroot/lib/wasm32-wasip1/lib$name.a"
  mkdir "$objects"
  for file in "$@"; do
    compiler=clang-19
    case $file in *.cpp) compiler="clang++-19 -std=c++17" ;; esac
    # shellcheck disable=SC2086  # lists of options
    $compiler $flags $own -c "$file" -o "$objects/$(basename "$file").o"
  done
  llvm-ar-19 rcs "$sysroot/lib/wasm32-wasip1/lib$name.a" "$objects"/*.o
}
archive unwind "-fdeclspec -DNDEBUG -I$llvm/libunwind/include" "$llvm/libunwind/src/Unwind-wasm.c"

# Headers alone are those that the native program is compiled with.
for library in boost fmt nlohmann toml++; do ln -s "/usr/include/$library" "$sysroot/include/"; done

unpack boost.tar.xz '*/libs/program_options/src/*'
cd "$cache/build/boost/libs/program_options/src"
rm winmain.cpp  # Windows'
archive boost_program_options "-w -D_LIBCPP_ENABLE_CXX17_REMOVED_UNARY_BINARY_FUNCTION
  -D_LIBCPP_ENABLE_CXX17_REMOVED_AUTO_PTR" ./*.cpp

unpack zlib.tar.bz2
cd "$cache/build/zlib"
cp zlib.h zconf.h "$sysroot/include/"
archive z "-w -DHAVE_UNISTD_H" ./*.c

unpack yaml.tar.xz
cd "$cache/build/yaml"
cp -R include/yaml-cpp "$sysroot/include/"
archive yaml-cpp "-w -DYAML_CPP_STATIC_DEFINE -Iinclude -Isrc" src/*.cpp

echo "$stamp" >"$sysroot/stamp"
