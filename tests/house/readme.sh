#!/bin/sh
# The README shows what the program prints: every ```console block of README.md that begins with
# "$ build/release/stepcast ..." is run with the programs of PROGRAMS, and the rest of the block is
# its standard output.
#   readme.sh check PROGRAMS    fails with the difference
#   readme.sh update PROGRAMS   writes what the programs print into README.md
set -eu
mode=$1
programs=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."

fresh=$(mktemp)
output=$(mktemp)
trap 'rm -f "$fresh" "$output"' EXIT

num_blocks=0
in_block=no
while IFS= read -r line || [ -n "$line" ]; do
  if [ "$in_block" = opened ]; then
    case $line in
      '$ build/release/stepcast '*)
        printf '%s\n' "$line" >>"$fresh"
        command="$programs/${line#\$ build/release/}"
        if ! sh -c "$command" >"$output" 2>"$output.err" </dev/null; then
          echo "README.md: this command of the README failed: ${line#\$ }"
          cat "$output" "$output.err"
          rm -f "$output.err"
          exit 1
        fi
        rm -f "$output.err"
        awk 1 "$output" >>"$fresh"  # ends the last line if the program did not
        num_blocks=$((num_blocks + 1))
        in_block=replaced
        continue
        ;;
      *) in_block=kept ;;
    esac
  fi
  case "$in_block:$line" in
    no:'```console') in_block=opened ;;
    replaced:'```' | kept:'```') in_block=no ;;
    replaced:*) continue ;;
  esac
  printf '%s\n' "$line" >>"$fresh"
done <README.md

if [ "$num_blocks" -eq 0 ]; then
  echo "README.md: no block with a command and its output"
  exit 1
fi
case $mode in
  check)
    if ! diff -u README.md "$fresh"; then
      echo "README.md no longer shows what the program prints: ./dev readme"
      exit 1
    fi
    ;;
  update) cat "$fresh" >README.md ;;
  *) echo "usage: readme.sh check|update PROGRAMS" >&2; exit 2 ;;
esac
