#!/bin/sh
# stepcast why: the edges of the critical path sum to the step that `run` shows.
#   why.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

small="--model llama2-7b --gpu h100 --nodes 2 --data zero2 --local-batch 1"
# shellcheck disable=SC2086 # several words
expect 0 "^step .* a chain of" why $small
# shellcheck disable=SC2086
expect 0 "\[noise\] is left out" why $small --set noise.kernel_sigma=0.01
expect 2 "which scenario" why
expect 2 "critical path is that of one step" why "$2/scenarios/weak_scaling.toml"
expect 4 "the plan needs" why --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1

"$python" - "$program" <<'END' || failures=$((failures + 1))
import json, subprocess, sys, tempfile

def ask(verb, words):
    return json.loads(subprocess.run([sys.argv[1], verb, *words.split(), "--json"],
                                     check=True, capture_output=True, text=True).stdout)

cases = (
    "--model llama2-7b --gpu h100 --nodes 4 --data zero3 --local-batch 1",
    "--model llama2-7b --gpu a100 --nodes 2 --data ddp --local-batch 1 --ignore-memory",
    "--model llama2-7b --gpu h100 --nodes 2 --data zero2 --local-batch 1 --no-fold",
    "--model llama2-70b --gpu h100 --nodes 16 --data zero1 --tensor 4 --pipeline 8"
    " --micro-batch 1 --global-batch 64 --framework megatron-lm",
)
for words in cases:
    step = ask("run", words.replace("--no-fold", ""))["step_time_s"]
    why = ask("why", words)
    assert abs(step / why["step_s"] - 1) < 1e-12, (words, step, why["step_s"])
    assert sum(e["length_ps"] for e in why["edges"]) == why["step_ps"], words
    assert sum(p["time_ps"] for p in why["parts"]) == why["step_ps"], words
    at = 0
    for edge in why["edges"]:
        assert edge["begin_ps"] == at, (words, edge)
        at += edge["length_ps"]
    pipelined = "--pipeline" in words
    assert (why["fill_s"] + why["drain_s"] > 0) == pipelined, (words, why["fill_s"])
    slopes = {row["quantity"]: row for row in why["slopes"]}
    gemm = slopes["GEMM rate"]
    assert -1 < gemm["elasticity"] < 0, (words, gemm)
    assert gemm["step_at_twice_s"] < why["step_s"] < gemm["step_at_half_s"], (words, gemm)
    assert why["frozen"], words

# Experts and low precision: their exchange and casts are quantities, what can be otherwise a lever.
experts = ("--model mixtral-8x7b --gpu h100 --nodes 4 --framework megatron-core --data zero1"
           " --pipeline 2 --expert 8 --global-batch 64 --sequence 4096 --ignore-memory")
why = ask("why", experts + " --recipe fp8_current")
assert any(p["what"].startswith("expert all_to_all") for p in why["parts"]), why["parts"]
slopes = {row["quantity"]: row for row in why["slopes"]}
for quantity, now in (("expert exchange", "all_to_all"), ("cast rate", "fp8_current")):
    row = slopes[quantity]
    assert row["now"] == now and -1 < row["elasticity"] < 0, row
    assert row["step_at_twice_s"] < why["step_s"] < row["step_at_half_s"], row
levers = {lever["key"]: lever["step_s"] for lever in why["levers"]}
assert levers['software.host_sync = "none"'] < why["step_s"], levers
assert levers['routing.kind = "balanced"'] < why["step_s"], levers
assert levers['precision.recipe = "none"'] == ask("run", experts)["step_time_s"], levers
assert why["assumptions"], why
dense = ask("why", cases[0])
assert "levers" not in dense and "assumptions" not in dense
assert not {"expert exchange", "cast rate"} & {row["quantity"] for row in dense["slopes"]}

with tempfile.TemporaryDirectory() as folder:
    file = folder + "/path.json"
    why = ask("why", cases[-1] + " --timeline " + file)
    with open(file) as written:
        events = json.load(written)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    path = [e for e in events if e["ph"] == "X" and names[e["pid"]].endswith("critical path")]
    assert len(path) == len(why["edges"])
    assert abs(sum(e["dur"] for e in path) / why["step_ps"] * 1e6 - 1) < 1e-9
    arrows = [sum(e["ph"] == end for e in events) for end in "sf"]
    assert arrows[0] == arrows[1] > 0, arrows
END
exit $((failures > 0))
