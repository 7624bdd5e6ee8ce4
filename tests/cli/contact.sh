#!/bin/sh
# What a newcomer meets first: tables as they are asked for, refused plans in one line.
#   contact.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
stepcast=$programs/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "$*:"
  head -5 "$work/out" "$work/err"
  exit 1
}

# ends CODE COMMAND...: its exit code; what it prints is in $work/out and $work/err
ends() {
  wanted=$1
  shift
  code=0
  "$@" >"$work/out" 2>"$work/err" || code=$?
  [ "$code" = "$wanted" ] || fail "$*: exit $code, wanted $wanted"
}

says() {
  grep -q -e "$2" "$work/$1" || fail "no \"$2\" in $1"
}

silent() {
  if grep -q -e "$2" "$work/$1"; then fail "\"$2\" in $1"; fi
}

# python CHECKS ARGUMENTS...: rows are the lines of $work/table.csv
rows_hold() {
  /usr/bin/python3 -c '
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1] + "/table.csv")))
exec(sys.argv[2])' "$work" "$1" || fail "$1"
}

cat >"$work/plans.toml" <<'TOML'
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
[batch]
local = 1
[sweep]
"plan.tensor" = [1, 2, 3, 4]
"plan.recompute" = ["none", "full"]
"batch.micro_batch" = [1, 64]
TOML

# The CSV has every point and every number of the JSON, in full.
ends 0 "$stepcast" sweep "$work/plans.toml" --json --csv "$work/table.csv"
cp "$work/out" "$work/plans.json"
rows_hold '
points = json.load(open(sys.argv[1] + "/plans.json"))["points"]
assert len(rows) == len(points) == 16
for row, point in zip(rows, points):
    assert row["refused"] == point.get("refused", ""), row
    for key in ("step_time_s", "mfu", "memory_gib_per_gpu", "gpus"):
        assert (float(row[key] or -1)) == point.get(key, -1) or "refused" in point, (key, row)
    assert row["plan.tensor"] == str(point["sweep"]["plan.tensor"])
    if "step_time_s" in point:
        assert row["plan.schedule"] == point["plan"]["schedule"]'

# Refused points are one line; --refused shows each.
ends 0 "$stepcast" sweep "$work/plans.toml"
says out '^[0-9]* of 16 points refused: .*; --refused shows them$'
silent out 'refused: .*plans.toml:'
refused=$(sed -n 's/^\([0-9]*\) of 16 points refused.*/\1/p' "$work/out")
ends 0 "$stepcast" sweep "$work/plans.toml" --refused
[ "$(grep -c ' refused: ' "$work/out")" = "$refused" ] || fail "not $refused refused rows"
silent out 'points refused'

# Order, rows, columns: the fastest first.
ends 0 "$stepcast" sweep "$work/plans.toml" --sort step --top 2 --columns plan.tensor,step --csv -
cp "$work/out" "$work/table.csv"
rows_hold '
assert list(rows[0]) == ["plan.tensor", "step_time_s"] and len(rows) == 2
steps = sorted(p["step_time_s"] for p in json.load(open(sys.argv[1] + "/plans.json"))["points"]
               if "step_time_s" in p)
assert [float(row["step_time_s"]) for row in rows] == steps[:2]'
ends 0 "$stepcast" sweep "$work/plans.toml" --sort -step_time_s --csv "$work/table.csv"
rows_hold '
steps = [float(row["step_time_s"]) for row in rows if row["step_time_s"]]
assert steps == sorted(steps, reverse=True) and len(rows) == 16
assert not rows[-1]["step_time_s"]'
ends 2 "$stepcast" sweep "$work/plans.toml" --sort sttep
says err "no column 'sttep', did you mean"
ends 2 "$stepcast" sweep "$work/plans.toml" --sort step --json
ends 2 "$stepcast" run --model llama2-1b --gpu h100 --local-batch 1 --sort step
says err "is for the table of a \[sweep\]"
ends 7 "$stepcast" sweep "$work/plans.toml" --csv "$work/no/such/folder.csv"
says out 'points refused'

# One run is one row.
ends 0 "$stepcast" run --model llama2-1b --gpu h100 --local-batch 1 --csv - --columns gpus,mfu
cp "$work/out" "$work/table.csv"
rows_hold 'assert len(rows) == 1 and rows[0]["gpus"] == "8" and 0 < float(rows[0]["mfu"]) < 1'

# Collectives, lists of the catalogue, published runs: the same options.
ends 0 "$stepcast" collective all_reduce --gpu h100 --bytes 1GiB --csv "$work/table.csv"
rows_hold 'assert float(rows[0]["busbw_gb_per_s"]) > 100 and rows[0]["algorithm"]'
ends 0 "$stepcast" show gpus --sort -memory --top 3 --csv "$work/table.csv"
rows_hold '
assert len(rows) == 3 and rows[0]["gpu"] == "b200-sxm", rows
assert float(rows[0]["memory_gib"]) >= float(rows[1]["memory_gib"])'
[ "$(wc -l <"$work/out")" = 5 ] || fail "two lines of headings and three GPUs"
ends 0 "$stepcast" show keys --csv "$work/table.csv"
rows_hold 'assert any(row["key"] == "cluster.gpus" for row in rows)'
ends 2 "$stepcast" show clusters --top 3
ends 0 "$programs/stepcast-validate" published mlgv --quiet --sort -rows --csv "$work/table.csv"
rows_hold 'assert rows and 0 < float(rows[0]["median"]) < 10'
