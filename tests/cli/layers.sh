#!/bin/sh
# validate layers: measured layers of experts beside predicted ones.
#   layers.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
table=$2/validate/layers/moe_layers.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

fail() {
  echo "layers.sh: $1"
  exit 1
}

"$programs/stepcast-validate" layers --fail-above 15 >"$work/text" ||
  fail "the median error is above 15 %"
grep -q '^forward and backward' "$work/text" || fail "no score"
[ "$(grep -c '^MGML-' "$work/text")" = 12 ] || fail "not every row is told"
"$programs/stepcast-validate" layers "$table" --fail-above 0 >/dev/null &&
  fail "no forecast misses by nothing"

"$programs/stepcast-validate" layers --json >"$work/json"
"$python" - "$work/json" <<'EOF' || fail "the JSON is not as documented"
import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["rows"]) == 12
for row in report["rows"]:
    parts = [row[way][part] for way in ("forward", "backward")
             for part in ("products_s", "exchange_s", "others_s", "idle_s")]
    measured = row["measured_forward_s"] + row["measured_backward_s"]
    assert abs(sum(parts) / measured - 1 - row["error"]) < 1e-9, row
EOF

# A row's scenario is one that runs, its experts without a gate.
"$programs/stepcast-validate" layers --show MGML-0001 >"$work/row.toml"
grep -q 'activation = "gelu"' "$work/row.toml" || fail "the benchmark's experts have a gate"
"$programs/stepcast" run "$work/row.toml" >/dev/null || fail "a row's scenario does not run"

sed 's/,4096,1,bf16/,4096,1,int8/' "$table" >"$work/int8.csv"
"$programs/stepcast-validate" layers "$work/int8.csv" >"$work/refused"
grep -q 'is refused: precision int8' "$work/refused" || fail "a refused row does not say why"
sed '1s/hidden/width/' "$table" >"$work/unknown.csv"
code=0
"$programs/stepcast-validate" layers "$work/unknown.csv" >/dev/null 2>"$work/error" || code=$?
[ $code = 3 ] && grep -q 'unknown.csv:1' "$work/error" || fail "an unknown column is taken"
