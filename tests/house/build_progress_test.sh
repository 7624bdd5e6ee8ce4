#!/bin/sh
# build_progress.sh tells time left from ninja's lines, lets errors through, and ends as the build.
set -eu
tool=$(dirname "$0")/build_progress.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "build_progress: $1"
  cat "$work/said"
  exit 1
}

status=0
printf '%s\n' '[1/60 1.02] Building CXX a.o' '[15/60 40.500] Building CXX b.o' \
  '[16/60 45.0] Building CXX c.o' 'FAILED: c.o' 'c.cpp:1: error: no' '[60/60 300.1] Linking x' \
  'exit 7' | CORES=2 sh "$tool" >"$work/said" || status=$?
[ $status -eq 7 ] || fail "exit $status instead of the build's 7"
# 60 steps of 5 s on two cores; 45 steps left at 15 in 40 s; within half a minute nothing more.
printf '%s\n' 'build: 60 steps, about 3 min on 2 cores where no compiler cache has them, else seconds' \
  'build: 15 of 60 steps, 2 min left' 'FAILED: c.o' 'c.cpp:1: error: no' \
  'build: 60 of 60 steps, 0 s left' >"$work/expected"
cmp -s "$work/said" "$work/expected" || fail "said something else"

printf '%s\n' '[2/20 4.0] Building a.o' 'warning: x' 'exit 0' | CORES=4 TERMINAL=1 sh "$tool" >"$work/said"
grep -q "$(printf '\r')" "$work/said" && grep -q '2 of 20 steps, 36 s left' "$work/said" ||
  fail "no line on a terminal"
grep -q '^warning: x' "$work/said" || tr '\r' '\n' <"$work/said" | grep -q 'warning: x' ||
  fail "a warning is gone"

# Nothing to do says nothing; a build that is killed is not one that passed.
printf '%s\n' '[1/1 0.1] Re-checking' 'exit 0' | CORES=2 sh "$tool" >"$work/said"
[ ! -s "$work/said" ] || fail "speaks of nothing"
status=0
printf '%s\n' '[1/60 1.0] Building a.o' | CORES=2 sh "$tool" >"$work/said" || status=$?
[ $status -eq 1 ] || fail "a build without an end: exit $status"
