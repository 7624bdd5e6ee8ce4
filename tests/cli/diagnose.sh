# stepcast diagnose as a user calls it: verdicts, causes, exit codes, every input of
# docs/diagnose.md.
# Usage: diagnose.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

fail() {
  echo "$1"
  failures=$((failures + 1))
}

# A log of Megatron-LM as it should be, slower, with a step that sticks out now and then.
cp "$2"/tests/validate/trace/*.log "$work"
log=$work/megatron.log
node="--set cluster.node=dgx-h100 --no-alternatives"
# shellcheck disable=SC2086  # several words
{
  expect 8 '^Slower than [0-9]* % of such runs: .* a step where .* is expected' diagnose "$log" $node
  expect 8 '"slower": true' diagnose "$log" $node --json
  expect 8 'not explained' diagnose "$log" $node --report "$work/page.html"
  "$python" "$2/tests/cli/shared/read_page.py" html "$work/page.html" ||
    fail 'the page of a diagnosis'
}
expect 3 'nobody says cluster.node' diagnose "$log"
expect 0 '^As expected\|^Faster' diagnose "$work/torchtitan.log" --no-alternatives \
  --out "$work/titan.toml"

# A list of steps for a scenario that is given: usual steps of MS, every tenth of LONG.
cat >"$work/run.toml" <<'TOML'
[model]
name = "llama2-1b"
[cluster]
node = "dgx-h100"
nodes = 1
[plan]
data = "ddp"
[batch]
local = 1
TOML
steps() {
  awk -v ms="$1" -v long="$2" 'BEGIN {
    for (i = 1; i <= 60; ++i)
      printf " iteration %d/ 99 | elapsed time per iteration (ms): %s | global batch size: 8 |\n",
        i, i % 10 == 0 ? long : ms
  }'
}
usual=$("$program" run "$work/run.toml" --json |
  "$python" -c 'import json, sys; print(1e3 * json.load(sys.stdin)["step_time_s"])')
run="--scenario $work/run.toml --no-alternatives"
steps "$usual" "$usual" >"$work/usual.log"
steps "$usual" "$(echo "$usual" | awk '{ print 4 * $1 }')" >"$work/stalls.log"
# shellcheck disable=SC2086
{
  expect 0 '^As expected' diagnose "$work/usual.log" $run
  expect 8 'one every 10 steps' diagnose "$work/stalls.log" $run
  expect 8 'async-save' diagnose "$work/stalls.log" $run --set software.framework=megatron-core
}

# What stands around it: an environment, NCCL's and nvidia-smi's lines, one pasted text of all.
echo 'export NCCL_PROTO=LL' >"$work/env.sh"
{
  echo 'My run is slow, 1.4 times what I hoped for:'
  echo '```'
  steps "$(echo "$usual" | awk '{ print 1.4 * $1 }')" 0 | grep -v ' 0 |'
  echo '```'
  echo '```bash'
  echo 'CUDA_LAUNCH_BLOCKING=1 torchrun train.py'
  echo '```'
} >"$work/pasted.md"
printf '        SW Power Cap                      : Active\n' >"$work/smi.txt"
# shellcheck disable=SC2086
{
  expect 8 'CUDA_LAUNCH_BLOCKING=1, by the simulation' diagnose "$work/pasted.md" $run
  expect 0 'env.sh:1: NCCL_PROTO=LL: a sign of' diagnose "$work/usual.log" "$work/env.sh" $run
  expect 0 'SW Power Cap : Active: a sign of' \
    diagnose "$work/usual.log" "$work/smi.txt" $run
  expect 3 'no step of a known framework' diagnose "$work/usual.log" "$2/LICENSE" $run
  test=$2/tests/calibrate/fixtures/all_reduce_a100_8.log
  expect 0 'The network test is not compared: .* lists A100' \
    diagnose "$work/usual.log" "$test" $run --json
  expect 0 'allreduce of .* on 8 ranks takes .* times as long as expected' \
    diagnose "$work/usual.log" "$test" $run --set cluster.node=dgx-a100 --json
}

# Without a step: whether it fits, and what is expected; a question's text as it is pasted.
threads=$2/tests/validate/diagnose/threads
expect 4 'of memory a GPU where .* are there: it does not fit' \
  diagnose "$threads/31.md" --out "$work/31.toml" --no-alternatives
expect 0 'of memory a GPU of .*: it fits with' \
  diagnose "$threads/28.md" --out "$work/28.toml" --no-alternatives
expect 0 'CUDA_LAUNCH_BLOCKING=1: a sign of' \
  diagnose "$threads/28.md" --out "$work/28.toml" --no-alternatives
expect 3 'nobody says cluster.node' diagnose "$threads/38.md" --no-alternatives
expect 8 'a step of verl is 4 updates of the policy' \
  diagnose "$threads/29.md" --out "$work/29.toml" --no-alternatives
[ -z "$(find "$threads" -type f ! -name '*.md')" ] || fail "a scenario is left in $threads"

# Traces of eight ranks, of which one computes 1.3 times as long as the others.
"$program" run "$work/run.toml" --no-fold --timeline "$work/usual.json" >/dev/null
{
  cat "$work/run.toml"
  printf '[[noise.straggler]]\nrank = 5\nslowdown = 1.3\n'
} >"$work/straggler.toml"
"$program" run "$work/straggler.toml" --no-fold --timeline "$work/slow.json" \
  --timeline-ranks all >/dev/null || fail 'no timeline'
mkdir "$work/kineto"
"$python" "$2/tests/cli/shared/as_kineto.py" "$work/slow.json" "$work/kineto" || fail 'no traces'
# shellcheck disable=SC2086
{
  expect 0 '^As expected' diagnose "$work/usual.json" $run
  expect 8 '^a slow GPU .* sure  *5$' diagnose "$work/slow.json" $run
  expect 8 '"cause": "slow_rank"' diagnose "$work/slow.json" $run --json
  expect 8 '^a slow GPU .* sure  *5$' diagnose "$work"/kineto/rank*.json $run \
    --report "$work/slow.html"
  "$python" "$2/tests/cli/shared/read_page.py" html "$work/slow.html" || fail 'the page of ranks'
  expect 8 'One rank alone' diagnose "$work/kineto/rank0.json" $run
}
"$python" - "$work" "$program" <<'PYTHON' || fail 'causes add up to the gap'
import json, subprocess, sys
work, program = sys.argv[1:]
for name in ("slow.json", "stalls.log", "pasted.md"):
    out = subprocess.run([program, "diagnose", f"{work}/{name}", "--scenario", f"{work}/run.toml",
                          "--no-alternatives", "--json"], capture_output=True, text=True).stdout
    told = json.loads(out)
    gap = told["measured_s"] - told["expected_s"]["mean"]
    assert abs(sum(cause["seconds"] for cause in told["causes"]) - gap) < 1e-9 * gap, name
PYTHON

expect 2 'diagnose needs FILE' diagnose
expect 2 'is of runs with a known fault' diagnose "$work/usual.log" --faults 2
expect 0 'usage: stepcast diagnose \[FILE' diagnose --help
program=$1/stepcast-validate
expect 0 'healthy runs with noise: a cause is named on 0' diagnose --faults 5 --healthy 5
exit $((failures > 0))
