# Stages that may go slower at the same step, and whole runs in `why` and `goodput`.
#   slack.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

pipeline="--model llama2-13b --gpu h100 --nodes 4 --data zero1 --tensor 2 --pipeline 4"
pipeline="$pipeline --micro-batch 1 --global-batch 64 --framework megatron-lm"
run="--tokens 2T --price 2.5 --set run_goal.today=2026-11-23"
flat="--model llama2-7b --gpu h100 --nodes 2 --data zero2 --local-batch 1"

"$python" - "$program" "$pipeline" "$run" "$flat" <<'END' || failures=$((failures + 1))
import json, subprocess, sys

pipeline, run, flat = sys.argv[2:5]

def ask(verb, words):
    return json.loads(subprocess.run([sys.argv[1], verb, *words.split(), "--json"],
                                     check=True, capture_output=True, text=True).stdout)

def check(slack, stages):
    assert len(slack["stages"]) == stages
    assert slack["step_ps"] <= slack["slowed_step_ps"] <= 1.001 * slack["step_ps"] + 1
    assert 0 <= slack["gpu_energy_saved"] < 0.3
    for stage in slack["stages"]:
        # The cube root of 175 W of 300 W, where the law of clocks was last measured.
        assert (175 / 300) ** (1 / 3) - 1e-9 <= stage["pace"] <= 1
        assert stage["slack_ps"] >= 0 and stage["slowed_gpu_w"] <= stage["gpu_w"] * 1.001
        # A pace in clocks: 1.83 GHz is what a data sheet's 989 TFLOP/s of 132 SMs stand for.
        assert stage["clock_hz"] <= 989.4e12 / (4096 * 132) * 1.001 * stage["pace"]
    saved = sum(s["gpu_w"] for s in slack["stages"]) * slack["step_ps"]
    then = sum(s["slowed_gpu_w"] for s in slack["stages"]) * slack["slowed_step_ps"]
    assert abs(1 - then / saved - slack["gpu_energy_saved"]) < 1e-9

even = ask("why", pipeline)["slack"]
check(even, 4)
# A stage with half as many layers again as each of the others decides; those can all go slower.
uneven = ask("why", pipeline + " --set plan.stage_layers=[9,13,9,9]")["slack"]
check(uneven, 4)
assert uneven["stages"][1]["pace"] > 0.99 and uneven["stages"][1]["slack_ps"] == 0
for s in (0, 3):
    assert uneven["stages"][s]["pace"] < 0.85 and uneven["stages"][s]["slack_is_more"]
assert uneven["stages"][2]["slack_ps"] > 0
assert uneven["gpu_energy_saved"] > even["gpu_energy_saved"]
assert "slack" not in ask("why", flat)

# The whole run is the same whoever is asked.
why, plain = ask("why", f"{pipeline} {run}"), ask("run", f"{pipeline} {run}")
assert why["run"] == plain["run"], (why["run"], plain["run"])
assert "run" not in ask("why", flat)
failing = "--set failures.rates=rsc-1"
assert ask("goodput", f"{flat} {failing}")["failures"] == ask("run", f"{flat} {failing}")["failures"]
END

# shellcheck disable=SC2086 # several words
{
  expect 0 '^stages that may go slower  *slack  *clock ' why $pipeline
  expect 0 'GPUs. energy is .* % less' why $pipeline $run
  expect 0 'stages that may go slower, and what that saves: stepcast why' run $pipeline $run
  expect 0 '^whole run  *2.00T tokens' why $pipeline $run
  expect 0 '^  cost  *.* USD' why $flat $run
  expect 0 '^  goodput (ETTR) ' goodput $flat
  expect 0 '^whole run ' goodput $flat $run
  "$program" why $pipeline | grep -qE 'takes ([0-9.]+ m?s) instead of \1( |$)' && {
    echo 'a step that takes as long as before is told as another'
    failures=$((failures + 1))
  }
  "$program" run $pipeline $run | grep -q '^stages that may go slower' && {
    echo 'slack that nobody asked for'
    failures=$((failures + 1))
  }
}
expect 0 'goodput (ETTR)' goodput "$2/scenarios/failures_llama3.toml"
expect 2 'which scenario' goodput
expect 2 'goodput is that of one run' goodput "$2/scenarios/weak_scaling.toml"
expect 4 'the plan needs' goodput --model llama2-70b --gpu h100 --nodes 1 --data ddp --local-batch 1
exit $((failures > 0))
