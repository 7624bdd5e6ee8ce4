#!/bin/sh
# stepcast collective --stepped: both forms, their ratio and why they differ.
#   stepped.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

"$stepcast" collective all_gather --gpu a100 --nodes 4 --bytes 64MiB --stepped >"$work/ring.txt"
grep -q "^stepped .*one variable *stepped" "$work/ring.txt"
grep -q "ratio 1\.00" "$work/ring.txt"
grep -q "^busiest link  *node[0-9]*/nic[0-9]* > leaf" "$work/ring.txt"

# Without the option not a word of it; a tree says why it differs.
! "$stepcast" collective all_gather --gpu a100 --nodes 4 --bytes 64MiB | grep -q "stepped"
"$stepcast" collective all_reduce --gpu h100 --nodes 4 --bytes 64MiB --stepped |
  grep -q "filling .* chunk by chunk"

"$stepcast" collective all_to_all --gpu h100 --nodes 2 --bytes 64MiB --stepped --json \
  >"$work/both.json"
"$python" - "$work/both.json" <<'END'
import json, sys
both = json.load(open(sys.argv[1]))["stepped"]
assert abs(both["ratio"] - both["stepped_us"] / both["one_variable_us"]) < 1e-6
assert abs(sum(t["stepped_us"] for t in both["terms"]) - both["stepped_us"]) < 1e-3
assert abs(sum(t["one_variable_us"] for t in both["terms"]) - both["one_variable_us"]) < 1e-3
assert both["transfers"] == 16 * 15 and len(both["step_ends_us"]) == 15
assert 0.99 < both["ratio"] < 1.01 and 0 < both["busiest_use"] <= 1
END

# What has no stepped form says so and exits as for other bad input.
code=0
"$stepcast" collective all_gather --gpu h100 --nodes 512 --bytes 64MiB --stepped \
  >"$work/out" 2>"$work/error" || code=$?
[ "$code" -eq 3 ]
grep -q "4 million transfers" "$work/error"
