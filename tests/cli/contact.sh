#!/bin/sh
# What a newcomer meets first: tables as they are asked for, refused plans in one line.
#   contact.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
programs=$1
stepcast=$programs/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

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

# rows_hold CHECKS: in Python; `rows` are the lines of $work/table.csv
rows_hold() {
  "$python" -c '
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
assert len(rows) == 3 and rows[0]["gpu"] in ("mi350x", "mi355x"), rows
assert float(rows[0]["memory_gib"]) >= float(rows[1]["memory_gib"])'
[ "$(wc -l <"$work/out")" = 5 ] || fail "two lines of headings and three GPUs"
ends 0 "$stepcast" show keys --csv "$work/table.csv"
rows_hold 'assert any(row["key"] == "cluster.gpus" for row in rows)'
ends 2 "$stepcast" show clusters --top 3
ends 2 "$stepcast" show gpus --sources --csv -
ends 0 "$stepcast" show gpus h100-sxm5-80gb --csv - --columns key,value
[ "$(head -n 1 "$work/out")" = key,value ] || fail "more than the CSV of an entry"
ends 0 "$programs/stepcast-validate" published mlgv --quiet --sort -rows --csv "$work/table.csv"
rows_hold 'assert rows and 0 < float(rows[0]["median"]) < 10'

# GPUs instead of nodes: whole nodes, or fewer than one; in place of a file's nodes.
run="$stepcast run --model llama2-1b --gpu h100 --local-batch 1"
ends 0 $run --nodes 4 --json
cp "$work/out" "$work/nodes.json"
ends 0 $run --gpus 32 --json
cmp "$work/nodes.json" "$work/out"
ends 0 $run --gpus 32 --nodes 4 --json
cmp "$work/nodes.json" "$work/out"
ends 0 $run --gpus 4
says out '4 x h100-sxm5-80gb (1 x dgx-h100'
ends 3 $run --gpus 500
says err '^--gpus: 500 GPUs are no whole nodes of 8 (dgx-h100), 496 or 504 are$'
ends 3 $run --gpus 32 --nodes 2
says err '32 GPUs are not 2 nodes of 8, give one of the two'
ends 3 $run --gpus 0
cat >"$work/two.toml" <<'TOML'
[model]
name = "llama2-1b"
[cluster]
node = "dgx-h100"
nodes = 2
[batch]
local = 1
TOML
ends 0 "$stepcast" run "$work/two.toml" --gpus 32
says out '32 x h100-sxm5-80gb (4 x dgx-h100'
(cat "$work/two.toml" && printf '[sweep]\n"cluster.nodes" = [1, 2]\n') >"$work/swept.toml"
ends 0 "$stepcast" run "$work/swept.toml" --gpus 32
says out '32 x h100-sxm5-80gb (4 x dgx-h100'
sed 's/^nodes = 2/gpus = 16/' "$work/two.toml" >"$work/gpus.toml"
ends 0 "$stepcast" run "$work/gpus.toml" --json
cp "$work/out" "$work/gpus.json"
ends 0 "$stepcast" run "$work/two.toml" --json
cmp "$work/gpus.json" "$work/out"
ends 0 "$stepcast" collective all_reduce --gpu h100 --gpus 16 --bytes 1MiB
says out '16 x h100'
ends 0 "$stepcast" show cluster "$work/two.toml" --gpus 64
says out '8 nodes'

# A run ends with the next question, which is for this very scenario.
ends 0 "$stepcast" run "$work/two.toml" --set 'title=my "own" run' --quiet
tail -n 1 "$work/out" >"$work/last"
says last "stepcast search $work/two.toml --set 'title=my \"own\" run'\$"
ends 4 "$stepcast" run --model llama2-70b --gpu h100 --local-batch 1 --data ddp
says out "plans that fit: stepcast search --gpu h100 --model llama2-70b --local-batch 1\$"
ends 0 "$stepcast" run "$work/two.toml" --json
silent out 'stepcast search'

# A mistyped verb is told; alone in a pipe the program prints its usage.
ends 2 "$stepcast" colective
says err "did you mean 'collective'?"
ends 2 "$stepcast"
says err '^usage: stepcast VERB'

# Alone on a terminal it names three commands, and each of them works.
if ! "$python" -c 'import pty; pty.openpty()' 2>/dev/null; then
  echo "a terminal: not tried, no /dev/pts"
  exit 0
fi
cat >"$work/terminal.py" <<'PY'
# terminal.py COMMAND...: runs it on a terminal of its own and prints what it says there.
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:  # the other end is closed
        break
    if not more:
        break
    said += more
sys.stdout.write(said.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
ends 2 "$python" "$work/terminal.py" "$stepcast"
sed -n 's/^  stepcast //p' "$work/out" >"$work/tries"
[ "$(wc -l <"$work/tries")" = 3 ] || fail "not three commands to try"
while read -r words; do
  # shellcheck disable=SC2086 # the words of a command
  ends 0 "$stepcast" $words
  [ "$(wc -l <"$work/out")" -ge 5 ] || fail "$words says little"
done <"$work/tries"
