#!/bin/sh
# No prediction moves unseen: step and collective times of the studies against tests/golden, to the
# last digit, whatever the compiler. A commit that moves one runs `golden.sh FOLDER_OF_PROGRAMS
# SOURCE update` and says in CHANGES.md which moved, by how much, and why it is nearer the truth.
#   [STEPCAST=PROGRAM] golden.sh FOLDER_OF_PROGRAMS SOURCE [update]
set -eu
stepcast=${STEPCAST:-$1/stepcast}
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

for study in weak_scaling model_parallel_256 hardware_generations context_lengths collectives; do
  "$stepcast" sweep "$source/scenarios/$study.toml" --json --quiet |
    awk -F'[:,]' '/"(step_time_s|time_us|power_w_per_gpu|memory_gib_per_gpu)"/ {
      gsub(/[ "]/, ""); print $1, $2 }
      /"refused"/ { print "refused" }' >"$work/$study.txt"
  golden=$source/tests/golden/$study.txt
  if [ "${3-}" = update ]; then
    cp "$work/$study.txt" "$golden"
  elif ! diff -u "$golden" "$work/$study.txt"; then
    failures=$((failures + 1))
  fi
done
exit $((failures > 0))
