#!/bin/sh
# The instruction gate fails where a case is above its count, names it, and passes where it is not.
#   gate.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gate() {
  printf 'case\tinstructions\tbest\nhelp\t%s\t%s\n' "$1" "$1" >"$work/counts.tsv"
  status=0
  python3 "$source/tests/bench/gate.py" "$programs" "$source" --counts "$work/counts.tsv" help \
    >"$work/said" 2>&1 || status=$?
  [ "$status" -ne 77 ] || { cat "$work/said"; exit 77; }
}
programs=$1
source=$2
gate 1000
[ "$status" -eq 1 ] && grep -q '^help .*ABOVE.*gate: help' "$work/said" ||
  { echo "a slower tree passes: exit $status"; cat "$work/said"; exit 1; }
gate 1000000000
[ "$status" -eq 0 ] || { echo "a faster tree fails: exit $status"; cat "$work/said"; exit 1; }
