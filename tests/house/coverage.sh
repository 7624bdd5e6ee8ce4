#!/bin/sh
# Prints what the tests of a build with clang's counters have run: lines and branches of each room,
# and the readers (functions read_..., parse_..., import_...) that none has called.
#   coverage.sh FOLDER_OF_PROGRAMS, in whose profiles/ the tests have left what they counted
set -eu
build=$1
cd "$(dirname "$0")/../.."
llvm-profdata-16 merge -sparse -o "$build/tests.profdata" "$build"/profiles/*.profraw
set --
for file in "$build"/stepcast "$build"/stepcast-* "$build"/stepcast_*.so "$build"/stepcast_replay \
  "$build"/test_*; do
  case $file in *.json | *.h5) continue ;; esac
  if [ -x "$file" ] && [ -f "$file" ]; then set -- "$@" -object "$file"; fi
done
shift # llvm-cov takes the first program without the word
folders="engine topology workloads sim calibrate validate"
cover() {
  verb=$1
  shift
  # shellcheck disable=SC2086
  llvm-cov-16 "$verb" "$@" -instr-profile="$build/tests.profdata" $folders
}
cover export -summary-only "$@" >"$build/coverage.json"
cover report -show-functions -show-branch-summary=false -Xdemangler=c++filt "$@" \
  >"$build/functions.txt"
python3 tests/house/coverage.py "$build/coverage.json" "$build/functions.txt"
