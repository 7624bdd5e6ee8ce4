#!/bin/sh
# Prints the files that fuzz/seeds.txt names for a reader; with a program, feeds each reader its own.
#   sh fuzz/seeds.sh READER | sh fuzz/seeds.sh --replay BUILD/stepcast_replay
set -eu
cd "$(dirname "$0")/.."
seeds_of() {
  sed -n "s/^$1 //p" fuzz/seeds.txt | tr ' ' '\n' | while read -r pattern; do
    for file in $pattern; do
      if [ -f "$file" ]; then echo "$file"; fi
    done
  done
}
if [ "$1" != --replay ]; then
  seeds_of "$1"
  exit 0
fi
grep -v '^#' fuzz/seeds.txt | cut -d' ' -f1 | while read -r reader; do
  # shellcheck disable=SC2046  # no name of the tree has a blank
  "$2" "$reader" $(seeds_of "$reader") || { echo "$reader fails"; exit 1; }
done
