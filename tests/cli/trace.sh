# stepcast-validate trace as a user calls it: results, messages and exit codes.
# Usage: trace.sh FOLDER_OF_PROGRAMS SOURCE_FOLDER
set -u
program=$1/stepcast-validate
# shellcheck source=tests/cli/shared/expect.sh
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

fail() {
  echo "$1"
  failures=$((failures + 1))
}

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

# trace RANK LATE: four steps of 100 ms with the scenario's calls; the all-reduce starts LATE ms
# after the first product.
trace() {
  awk -v rank="$1" -v late="$2" 'BEGIN {
    printf "{\"deviceProperties\": [{\"name\": \"NVIDIA A100-SXM4-80GB\"}],"
    printf "\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}, \"traceEvents\": [{}", rank
    for (step = 0; step < 4; ++step) {
      at = 100000 * step
      gpu = "\"ph\": \"X\", \"pid\": 0"
      printf ",\n{%s, \"cat\": \"gpu_user_annotation\", \"name\": \"ProfilerStep#%d\", ", gpu, step
      printf "\"ts\": %d, \"dur\": 90000}", at
      printf ",\n{%s, \"cat\": \"kernel\", \"name\": \"nvjet_hsh\", ", gpu
      printf "\"ts\": %d, \"dur\": %d}", at, 30000 + 1000 * late
      for (call = 1; call < 465 + 22; ++call)
        printf ",{%s, \"cat\": \"kernel\", \"name\": \"%s\", \"ts\": %d, \"dur\": 1}", gpu,
          call < 465 ? "nvjet_hsh" : "flash_fwd_kernel", at
      printf ",\n{%s, \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum\", ", gpu
      printf "\"ts\": %d, \"dur\": %d, \"args\": ", at + 30000 + 1000 * late, 40000 - 1000 * late
      printf "{\"Process Group Name\": \"0\", \"In msg nelems\": 8, \"dtype\": \"Float\"}}"
      for (call = 1; call < 88; ++call) {
        printf ",{%s, \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum\", ", gpu
        printf "\"ts\": %d, \"dur\": 0, \"args\": {\"Process Group Name\": \"0\"}}", at + 70000
      }
    }
    print "]}"
  }'
}
trace 0 0 >"$work/rank0.json"
trace 1 10 >"$work/rank1.json"
gzip -k "$work/rank1.json"

run="--scenario $work/run.toml"
# shellcheck disable=SC2086  # two words
{
  expect 0 'Traces of 2 ranks, 2 steps each' trace "$work/rank0.json" "$work/rank1.json.gz" $run
  expect 0 'of it waiting for peers *ms *5.00' trace "$work/rank0.json" "$work/rank1.json.gz" $run \
    --report "$work/trace.html"
  "$python" "$2/tests/cli/shared/read_page.py" html "$work/trace.html" ||
    fail "the page of a trace"
  expect 0 'Warning: .*rank0.json is of 2 ranks, the scenario of 8 GPUs' trace "$work/rank0.json" $run
  expect 0 'Warning: .*rank0.json is of NVIDIA A100' trace "$work/rank0.json" $run
  expect 0 '"measured_step_time_s": 0.\(1,\|09999\)' trace "$work/rank0.json" $run --json
  expect 5 'error' trace "$work/rank0.json" $run --fail-above 0.001
  expect 0 'error' trace "$work/rank0.json" $run --fail-above 1e9

  for i in 1 2 3 4; do
    echo " iteration $i/ 9 | elapsed time per iteration (ms): ${i}00.0 | global batch size: 8 |"
  done >"$work/megatron.log"
  expect 0 'Log of Megatron-LM: median of 3 printed steps' trace "$work/megatron.log" $run
  expect 0 '"measured_step_time_s": 0.\(3,\|3000\|2999\)' trace "$work/megatron.log" "$work/rank0.json" $run --json
  printf 'step: 1  loss: 2.0  memory: 40.10GiB(42.1%%)  tps: 40,960\n' >"$work/titan.log"
  expect 0 '"measured_step_time_s": 0.\(1,\|09999\)' trace "$work/titan.log" $run --json

  head -c 900 "$work/rank0.json" >"$work/short.json"
  expect 3 'short.json:byte .*too early, the profiler may still' trace "$work/short.json" $run
  head -c 90 "$work/rank1.json.gz" >"$work/short.json.gz"
  expect 3 'gzip data ends too early' trace "$work/short.json.gz" $run
  echo '{"steps": []}' >"$work/other.json"
  expect 3 'has no traceEvents' trace "$work/other.json" $run
  printf '{"traceEvents": "\377\376"}' >"$work/latin.json"
  expect 3 'latin.json:byte 18: is not UTF-8' trace "$work/latin.json" $run
  : >"$work/empty.json"
  expect 3 'is empty' trace "$work/empty.json" $run
  expect 3 'cannot be opened' trace "$work/none.json" $run
  expect 3 'is a directory' trace "$work" $run
  expect 3 'no step of a known framework' trace "$2/README.md" $run
  expect 3 'is of rank 0, as is' trace "$work/rank0.json" "$work/rank0.json" $run
  expect 3 'second log' trace "$work/titan.log" "$work/megatron.log" $run
  expect 3 'lower --skip' trace "$work/rank0.json" $run --skip 3
  expect 2 'no percentage' trace "$work/rank0.json" $run --fail-above 5x
  expect 2 'is no such number' trace "$work/rank0.json" $run --skip some
}
expect 3 'is a sweep of' trace "$work/rank0.json" --scenario "$2/scenarios/model_parallel_256.toml"

# Without a scenario: what the files say, written beside them.
stepcast=$1/stepcast
mkdir "$work/logs"
cp "$2"/tests/validate/trace/*.log "$work/logs"
megatron=$work/logs/megatron.log
expect 3 'nobody says model.name (llama3-8b), model.sequence (8192), batch.global (256)' \
  trace "$work/rank0.json"
expect 3 'nobody says cluster.node' trace "$megatron"
test ! -e "$work/logs/run.toml" || fail 'half a scenario was written'
expect 0 'run.toml: as-logged on 32 x h100' trace "$megatron" --set cluster.node=dgx-h100
"$stepcast" run "$work/logs/run.toml" >/dev/null || fail 'run.toml does not run'
expect 0 'step  *ms  *1,640' trace "$megatron" --scenario "$work/logs/run.toml"
expect 0 'FLOP/s  *231' trace "$megatron" --scenario "$work/logs/run.toml"
expect 0 'Warning: .*has plan.tensor = 2, the scenario 4' \
  trace "$megatron" --scenario "$work/logs/run.toml" --set plan.tensor=4
expect 0 'run.toml: as-logged on 32' trace "$megatron" --set cluster.node=dgx-h100
expect 0 'The scenario that was read is in no file: .*run.toml: says something else' \
  trace "$work/logs/torchtitan.log"
grep -q as-logged "$work/logs/run.toml" || fail 'run.toml was overwritten'
expect 3 'says something else' trace "$work/logs/torchtitan.log" --out "$work/logs/run.toml"
expect 0 'titan.toml: llama3-8b on 8 x h100' \
  trace "$work/logs/torchtitan.log" --out "$work/logs/titan.toml"
expect 0 'tokens/s/GPU  *7,750' trace "$work/logs/torchtitan.log" --out "$work/logs/titan.toml"
expect 0 'MFU  *%  *45.4' trace "$work/logs/torchtitan.log" --out "$work/logs/titan.toml"
expect 0 'as-logged on 16 x a100' trace "$work/logs/nemo.log" --set cluster.node=dgx-a100 \
  --out "$work/logs/nemo.toml"
"$stepcast" run "$work/logs/nemo.toml" >/dev/null || fail 'nemo.toml does not run'
expect 7 'cannot be' trace "$megatron" --set cluster.node=dgx-h100 --out "$work/none/run.toml"
# shellcheck disable=SC2086
expect 2 'out keeps a scenario that is read' trace "$megatron" $run --out "$work/x.toml"

# A timeline of ours is the scenario that it was made from, and no other.
for file in own.json own.json.gz; do
  "$stepcast" run "$work/run.toml" --timeline "$work/$file" >/dev/null || fail "no $file"
  # shellcheck disable=SC2086
  expect 0 'gemm  *465  *465 .*+0.0 %' trace "$work/$file" $run --fail-above 0.001
done
gzip -t "$work/own.json.gz" || fail 'own.json.gz is no gzip'
llama="--scenario $work/logs/titan.toml"
# shellcheck disable=SC2086
{
  expect 0 'Verdict: this trace is not this scenario: 465 products against [0-9]' \
    trace "$work/own.json" $llama
  expect 5 'Verdict' trace "$work/own.json" $llama --fail-above 1e9
  expect 0 '"verdict": "this trace is not' trace "$work/own.json" $llama --json
  expect 0 '"step_time_error": null' trace "$work/own.json" $llama --json
  expect 0 '"verdict": null' trace "$work/own.json" $run --json
  expect 3 'has 1 whole step' trace "$work/own.json" $run --skip 1
  expect 3 'give it alone' trace "$work/own.json" "$work/rank0.json" $run
}
if "$program" trace "$work/own.json" --scenario "$work/logs/titan.toml" | grep -q '[+-][0-9.]* %'; then
  fail 'errors against a verdict'
fi
expect 2 'which files' trace
expect 0 'usage: stepcast validate trace FILE' trace --help
exit $((failures > 0))
