# stepcast validate run as a user calls it: calibrates, trains, simulates the same and compares, on
# this machine. That it works, not how near: other programs run meanwhile. 77: skipped.
# Usage: trainer_circle.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
programs=$1
program=$programs/stepcast-validate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
# MPI leaves memory behind at its end, which is not ours to judge.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

skip() {
  echo "skipped: $1"
  exit 77
}
"$programs/stepcast-calibrate" run --device host --for /nowhere.toml --out "$work/t.h5" 2>&1 |
  grep -q OpenBLAS && skip "no OpenBLAS"
[ -x "$programs/stepcast-host-ranks" ] || skip "built without MPI"
command -v mpirun >/dev/null 2>&1 || skip "no mpirun on PATH"

cat >"$work/tiny.toml" <<'TOML'
title = "a tiny model"
[model]
name = "tiny"
layers = 2
hidden = 64
heads = 2
kv_heads = 2
head_dim = 32
ffn_hidden = 96
vocab = 128
norm = "rmsnorm"
activation = "swiglu"
rope = true
sequence = 32
[cluster]
node = "host"
[batch]
local = 2
[precision]
compute = "fp32"
gradient_reduce = "fp32"
[software]
framework = "stepcast-trainer"
[[sweep.point]]
"plan.data" = "zero2"
[[sweep.point]]
"plan.tensor" = 2
TOML

expect 2 'which scenario' run
expect 2 'is no percentage' run "$work/tiny.toml" --tolerance none
expect 3 'nowhere.toml' run "$work/nowhere.toml"
expect 0 'median |error|' run "$work/tiny.toml" --quick --table "$work/host.h5" \
  --out "$work/out" --report "$work" --steps 6 --warm-up 1
for line in 'step time' compute 'exposed communication' gemm attention adamw 'all_gather' memory; do
  grep -q "$line" "$work"/tiny_*.md || {
    echo "no \"$line\" in the report"
    failures=$((failures + 1))
  }
done

# Further off than the user allows: nothing is exact. All is calibrated already.
expect 5 'step time' run "$work/tiny.toml" --as-calibrated --table "$work/host.h5" --steps 6 \
  --warm-up 1 --tolerance 0 --out "$work/out" --report "$work/circle.html" --svg "$work/circle"
grep -q 'Training runs beside their simulation' "$work/circle.html" || {
  echo "no page of the run"
  failures=$((failures + 1))
}
[ -f "$work/circle/predicted_measured.svg" ] || {
  echo "no picture of the run"
  failures=$((failures + 1))
}
# Nothing is calibrated.
expect 3 'no such file' run "$work/tiny.toml" --as-calibrated --table "$work/none.h5" --steps 3 \
  --warm-up 1

# The simulator alone writes the same kind of timeline.
program=$programs/stepcast
expect 0 'step time' run "$work/out/points/0001.toml" --timeline "$work/simulated.json"
expect 7 'cannot be written' run "$work/out/points/0001.toml" --timeline /dev/full

"$python" - "$work/out" "$work/simulated.json" <<'PYTHON' || failures=$((failures + 1))
import json, sys
out, alone = sys.argv[1:]
events = json.load(open(out + "/points/0001.timeline.json"))["traceEvents"]
processes = [e for e in events if e["name"] == "process_name"]
names = {e["args"]["name"] for e in processes}
assert "measured rank 0" in names and "measured rank 1" in names, names
assert any(n.startswith("simulated rank 0") for n in names), names
pids = {e["pid"]: e["args"]["name"].split()[0] for e in processes}
of = lambda kind: {e["name"] for e in events if e["ph"] == "X" and pids[e["pid"]] == kind}
# The trainer does what the simulator says it does.
assert of("measured") == of("simulated"), of("measured") ^ of("simulated")
comparison = json.load(open(out + "/comparison.json"))
assert len(comparison["points"]) == 2
for point in comparison["points"]:
    assert point["step"]["measured_s"] > 0 and point["step"]["simulated_s"] > 0
    for row in point["kinds"] + point["collectives"]:
        assert row["measured_s"] > 0 and row["simulated_s"] > 0, row
assert json.load(open(alone))["traceEvents"]
PYTHON
exit $((failures > 0))
