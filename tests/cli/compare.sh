#!/bin/sh
# compare as a user calls it: scenarios, results and traces in any mix, what-ifs, one scenario on
# several machines, and mistakes.
#   compare.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"
cd "$work" || exit 1

fail() {
  echo "$1"
  failures=$((failures + 1))
}

cat >a.toml <<END
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
nodes = 2
[batch]
global = 32
END
sed 's/^nodes = 2/&\n[plan]\ndata = "zero3"\ntensor = 2/' a.toml >b.toml
sed 's/^global = 32/global = 16/' a.toml >smaller.toml
"$program" run a.toml --out kept >a.txt
"$program" run b.toml --json >b.json
"$program" run a.toml --timeline timeline.json >again.txt

# Two scenarios: the parts with the largest difference first, each changed key with its share.
expect 0 '^A  a.toml  *16  *[0-9]* ms' compare a.toml b.toml
expect 0 '^compute .*+' compare a.toml b.toml
expect 0 '^none in any: .*bubble' compare a.toml b.toml
expect 0 '^changed from A to B  *from  *to  *alone  *share' compare a.toml b.toml
expect 0 '^plan.data  *zero2  *zero3  *+' compare a.toml b.toml
expect 0 'mean over 2 orders .*(Shapley), 4 runs' compare a.toml b.toml
expect 0 '^P(order): from .* pairs of measured plans' compare a.toml b.toml
# Configurations of DeepSpeed are scenarios, not results.
ds() {
  printf '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": %s},' "$1"
  printf ' "bf16": {"enabled": true}, "train_batch_size": 32}\n'
}
ds 2 >two.json
ds 3 >three.json
expect 0 '^plan.data  *zero2  *zero3  *+' compare two.json three.json --model llama2-7b \
  --sequence 4096 --gpu h100 --nodes 2 --ignore-memory
expect 3 'does not say model.name' compare two.json three.json --gpu h100 --nodes 2
# The first column of parts is sorted: what comes first differs most.
"$program" compare a.toml b.toml --json >compared.json
"$python" - <<'END' || fail "the JSON does not add up"
import json
c = json.load(open("compared.json"))
way, (a, b) = c["ways"][0], c["sides"]
ps = lambda seconds: round(seconds * 1e12)
whole = ps(way["to_s"]) - ps(way["from_s"])
assert sum(ps(change["share_s"]) for change in way["changes"]) == whole
assert ps(b["step_time_s"]) - ps(a["step_time_s"]) == whole
inside = "interference_s"
parts = sum(ps(v) for k, v in b["differences_s"].items() if k != inside)
assert abs(parts - whole) < 10
assert way["every_order"] and 0.5 < b["order_probability"] <= 1
END

# Two results in JSON name every key that their scenarios differ in, of any table.
for set in 'power.cap="400 W"' 'nccl.NCCL_ALGO="Ring"' 'cluster.node.nic="100 Gbit/s"'; do
  "$program" run b.toml --set "$set" --json >changed.json
  expect 0 "^  changed.${set%%=*} " compare b.json changed.json
done

# Experts and low precision are causes as any other: keys with shares, and what-ifs.
cat >experts.toml <<END
[model]
name = "mixtral-8x7b"
sequence = 4096
[cluster]
node = "dgx-h100"
nodes = 4
[plan]
data = "zero1"
pipeline = 2
expert = 8
recompute = "full"
[batch]
global = 64
[precision]
recipe = "fp8_current"
[software]
framework = "megatron-core"
END
sed 's/^expert = 8/expert = 4/; s/fp8_current/none/' experts.toml >other.toml
expect 0 '^plan.expert  *8  *4  *[-+]' compare experts.toml other.toml
expect 0 '^precision.recipe  *fp8_current  *none  *[-+]' compare experts.toml other.toml
expect 0 '^exposed expert comm' compare experts.toml other.toml
expect 0 '^software.host_sync = none  *-' compare experts.toml --what-if "software.host_sync = none"
expect 0 '^precision.recipe = none  *[-+]' compare experts.toml --what-if "precision.recipe = none"

# A result without its scenario names the keys alone; with it, shares as well.
expect 0 '^  plan.data  "zero2" -> "zero3"' compare a.toml b.json
expect 0 'no shares: a result alone cannot be run again' compare a.toml b.json
expect 0 '^plan.tensor  *1  *2  *does not fit: +' compare kept b.toml
expect 0 '^plan.tensor  *1  *2  *does not fit: +' compare kept/results.json b.toml
"$program" compare kept b.toml | sed 1,3d | grep -v '^[AB] ' >of_result.txt
"$program" compare a.toml b.toml | sed 1,3d | grep -v '^[AB] ' >of_scenario.txt
cmp of_result.txt of_scenario.txt || fail "a kept result is not its scenario"

# Three at once, one of them the same as another; the points of a sweep; their results.
expect 0 '^C  b.json' compare a.toml b.toml b.json
expect 0 '^changed from A to B$\|^plan.data' compare a.toml b.toml b.json
printf '[sweep]\n"plan.tensor" = [1, 2, 4]\n' | cat a.toml - >sweep.toml
expect 0 '^C  tensor 4 ' compare sweep.toml
"$program" sweep sweep.toml --json --quiet >sweep.json
expect 0 '^B  sweep.json#3 ' compare a.toml sweep.json#3
expect 3 'holds the 3 points of a sweep, name one: sweep.json#1' compare a.toml sweep.json
expect 3 'has no point 4' compare a.toml sweep.json#4

# Other tokens: compared per token, and said.
expect 0 'per token' compare a.toml smaller.toml
expect 0 'tokens of a step: A 131,072, B 65,536; times and differences are of as many as A has' \
  compare a.toml smaller.toml

# A measured trace: only what it can tell, and whether the bar of the forecast holds it.
if [ -x "$1/stepcast-validate" ]; then
  "$1/stepcast-validate" trace timeline.json --scenario a.toml --json >trace.json ||
    fail "no trace"
  expect 0 '^B  trace.json (measured) ' compare a.toml trace.json
  expect 0 '^exposed comm. and waiting' compare a.toml trace.json
  expect 0 "B was measured: it lies in A's error bar" compare a.toml trace.json
fi

# What if: alone, together, and what is between them. A key without effect is named.
expect 0 '^gpu.tensor_peak x2  *-.* -' compare a.toml --what-if 'gpu.tensor_peak x2'
expect 0 '^node.nic = 800 Gbit/s' \
  compare a.toml --what-if 'gpu.tensor_peak x2' --what-if 'node.nic = 800 Gbit/s'
expect 0 'their interaction is' \
  compare a.toml --what-if 'gpu.tensor_peak x2' --what-if 'node.nic = 800 Gbit/s'
expect 0 '^gpu.fp8_peak x2  *no effect' compare a.toml --what-if 'gpu.fp8_peak x2'
expect 0 'B: cluster.node.gpu.fp8_peak has no effect here: no product is computed in fp8' \
  compare a.toml --what-if 'gpu.fp8_peak x2'
expect 0 '^gpu.memory x1  *no effect' compare a.toml --what-if 'gpu.memory x1'
expect 0 '^no shares: all together have no answer' compare a.toml --what-if 'plan.tensor = 3'
# A plan that no longer fits is a row with its reason.
expect 0 '^B  gpu.memory / 4  refused: the plan needs' compare a.toml --what-if 'gpu.memory / 4'
expect 0 '^gpu.memory / 4  does not fit' compare a.toml --what-if 'gpu.memory / 4'

# Every cause left out: alone, and their overlap.
expect 0 '^jitter  *no effect  *0' compare b.toml --without all
expect 0 '^bandwidth  *-.* -' compare b.toml --without all
expect 0 'their overlap is' compare b.toml --without all
expect 0 '^C  sharing' compare b.toml --without latency,sharing

# A what-if is a key of a scenario: a sweep's axis, or one run's.
expect 0 '^ *gpu.tensor_peak x2 ' \
  sweep a.toml --quiet --set 'sweep.what_if=["none", "gpu.tensor_peak x2"]'
expect 0 '^B  what_if gpu.tensor_peak x2' \
  compare a.toml --set 'sweep.what_if=["none", "gpu.tensor_peak x2"]'
"$program" run a.toml --set 'what_if="gpu.tensor_peak x2"' --json | sed '/"changed"/,/}/d' >if.json
"$program" run a.toml --set 'cluster.node.gpu.tensor_peak="1978.8 TFLOP/s"' --json |
  sed '/"changed"/,/}/d' >set.json
cmp if.json set.json || fail "a what-if is not the key that it sets"

# One scenario on several machines; what does not fit is a row, and no failure unless all are.
expect 0 '^A  v100  refused: the plan needs' \
  compare --model llama2-7b --nodes 2 --local-batch 2 --gpu v100,a100,h100
expect 0 '^C  h100 .*-' compare --model llama2-7b --nodes 2 --local-batch 2 --gpu v100,a100,h100
expect 0 '^changed from B to C: cluster.node  dgx-a100 -> dgx-h100' \
  compare --model llama2-7b --nodes 2 --local-batch 2 --gpu v100,a100,h100
expect 0 '^B  a.toml llama2-13b' compare a.toml --model llama2-7b,llama2-13b
expect 4 '^A  a.toml v100  refused' compare a.toml --global-batch 1024 --gpu v100,h100

# Changes that are impossible alone are one; the picture is SVG.
printf '[software]\nframework = "megatron-core"\n' | sed 's/zero3/zero1/' b.toml - >megatron.toml
expect 0 '^plan.data + software  *zero2 + pytorch-fsdp2' compare a.toml megatron.toml
"$program" compare a.toml megatron.toml --svg way.svg >way.txt
grep -q '^<svg\|^<?xml' way.svg || fail "no picture"
grep -q 'plan.data + software' way.svg || fail "the picture does not name the changes"

# Mistakes.
expect 2 'what is there to compare?' compare
expect 2 'what is there to compare?' compare a.toml
expect 2 'both --what-if and --without' compare a.toml --without all --what-if 'gpu.memory x2'
expect 2 'changes one scenario' compare a.toml b.toml --what-if 'gpu.memory x2'
expect 2 'changes one scenario' compare b.json --what-if 'gpu.memory x2'
expect 2 'options change scenarios' compare b.json b.json --nodes 2
expect 2 'both --gpu and --model name several' \
  compare a.toml --gpu a100,h100 --model llama2-7b,llama2-13b
expect 3 "unknown key 'gpu.tensr_peak' in a what-if, did you mean 'gpu.tensor_peak'" \
  compare a.toml --what-if 'gpu.tensr_peak x2'
expect 3 "'none' changes nothing" compare a.toml --what-if none
expect 3 "cannot be 'lateny', did you mean 'latency'" compare a.toml --without lateny
expect 3 'cannot be opened' compare a.toml nowhere.toml
expect 3 'is no result of stepcast' compare a.toml compared.json
expect 3 "unknown model 'llama2-7c'" compare --model llama2-7c --nodes 2 --local-batch 2 --gpu a100,h100
echo '{"half": ' >half.json
expect 3 'half.json: is no JSON' compare a.toml half.json
"$program" collective all_reduce --gpu h100 --bytes 1MiB --json >collective.json
expect 3 'is the result of a collective, training steps are compared' compare a.toml collective.json
expect 7 'nowhere/way.svg' compare a.toml b.toml --svg nowhere/way.svg

exit $((failures > 0))
