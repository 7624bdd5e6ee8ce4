#!/bin/sh
# validate published: a few rows of the shipped table through the whole program.
#   published.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
cd "$work"

fail() {
  echo "published.sh: $1"
  exit 1
}

table=$root/validate/published/training.csv
{ head -1 "$table"; grep -E '^(FMSF|JAXT|MISC)-' "$table"; grep -m 2 '^MZOO-' "$table"; } >rows.csv
"$programs/stepcast-validate" published rows.csv --quiet --out report >text
grep -q 'step-time error' text || fail "no table of errors"
grep -q 'mixture of experts' text || fail "the refused rows are not told"
for file in rows.csv report.json report.md figure.svg; do
  [ -s "report/$file" ] || fail "no report/$file"
done

"$programs/stepcast-validate" published rows.csv --quiet --json >report.json
"$python" - <<'EOF' || fail "the JSON is not as documented"
import json
report = json.load(open("report.json"))
assert set(report) == {"summary", "sources", "by_degree", "rows"}
keys = {"id", "measured_step_time_s", "predicted_step_time_s", "error", "memory_gib_per_gpu", "refused"}
predicted = 0
for row in report["rows"]:
    assert keys <= set(row), row
    if row["predicted_step_time_s"] is None:
        assert row["refused"], row
        continue
    predicted += 1
    error = row["predicted_step_time_s"] / row["measured_step_time_s"] - 1
    assert abs(error - row["error"]) < 1e-9, row
assert predicted > 8 and report["summary"]["predicted"] > 8
assert 0 < report["summary"]["mean_source_median"] < 1
EOF

"$programs/stepcast-validate" published what_ran --quiet --json >ran.json
"$python" - <<'EOF' || fail "what ran does not add up"
import json
report = json.load(open("ran.json"))
ran = report["summary"]["what_ran"]
assert ran["ran"] + ran["died"] + ran["not_entered"] + ran["aside"] == len(report["rows"]) == 256
assert ran["refused_ran"] <= ran["ran"] and ran["foreseen_died"] <= ran["died"]
for figure in "allocated", "reserved", "smi", "step":
    assert 0 < ran[figure + "_median"] < 1, figure
verdicts = [row["verdict"] for row in report["rows"]]
for verdict in "refused_ran", "foreseen_died", "not_entered", "aside":
    assert verdicts.count(verdict) == ran[verdict], verdict
EOF
{ head -1 "$root/validate/published/what_ran.csv"; grep '^FMSB-06' "$root/validate/published/what_ran.csv"; } >own.csv
"$programs/stepcast-validate" published own.csv --quiet >own || fail "a file of what_ran's columns"
grep -q '^10 rows: ' own || fail "a file of what_ran's columns is not told as what ran"

"$programs/stepcast-validate" published rows.csv --quiet --by-degree | grep -q '^by degree' ||
  fail "no errors by degree"
"$programs/stepcast-validate" published sweep --quiet --only ULTR-OOM-00 >oom
grep -q 'rows that ran out of memory are predicted not to fit' oom || fail "who ran out is not told"
"$programs/stepcast-validate" published modern --quiet --only MBVC-000 >modern
grep -q '^MoE mxfp8 ' modern || fail "experts in mxfp8 on racks are not scored by kind"
"$programs/stepcast-validate" published modern --show MBVC-0024 >hybrids 2>&1 &&
  fail "a hybrid of Mamba has a scenario"
grep -q 'layers that differ, which the columns do not say' hybrids || fail "hybrids are not refused by name"
"$programs/stepcast-validate" published modern --show MBVC-0002 >rack.toml
grep -q 'gpus_per_domain = 64' rack.toml || fail "256 GPUs of racks are not 64 of each"
"$programs/stepcast" run rack.toml --ignore-memory >/dev/null ||
  fail "the scenario of a modern row does not run"
"$programs/stepcast-validate" published modern --show MBVC-0041 >overlap.toml
grep -q '^expert_overlap = true' overlap.toml && grep -q '^tensor_overlap = false' overlap.toml ||
  fail "a row that hides its exchange does not"
"$programs/stepcast-validate" published modern --show MBRG-0245 >plain.toml
grep -q "^expert_overlap = false" plain.toml || fail "a row hides an exchange unasked"

"$programs/stepcast-validate" published rows.csv --show JAXT-0011 >row.toml
"$programs/stepcast" run row.toml --ignore-memory >/dev/null || fail "the scenario of a row does not run"

sed 's/^FMSF-0001/FMSF-0002/' rows.csv >twice.csv
code=0
"$programs/stepcast-validate" published twice.csv 2>error || code=$?
[ "$code" = 3 ] || fail "a doubled id gives exit code $code"
grep -q '^twice.csv:[0-9]*: id FMSF-0002 stands twice' error || fail "no file and line: $(cat error)"
code=0
"$programs/stepcast-validate" published rows.csv --quiet --fail-above 0.01 >/dev/null || code=$?
[ "$code" = 5 ] || fail "--fail-above gives exit code $code"
