#!/bin/sh
# stepcast search as a user calls it: the proof, fixed knobs, limits, files, mistakes; and "best" of a
# scenario, which calls the same.
#   search.sh FOLDER_OF_PROGRAMS
set -eu
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*"
  exit 1
}
expect() {
  code=$1
  shift
  set +e
  "$@" >"$work/stdout" 2>"$work/stderr"
  got=$?
  set -e
  [ "$got" -eq "$code" ] || fail "$* ended in $got: $(cat "$work/stdout" "$work/stderr")"
}
said() { grep -q -e "$1" "$work/stdout" "$work/stderr" || fail "no '$1' in $(cat "$work/stdout" "$work/stderr")"; }
proof_said() { # of lines that were broken, as one
  tr -s '\n ' ' ' <"$work/stdout" | grep -q -e "$1" || fail "no '$1' in $(cat "$work/stdout")"
}
field() { # of JSON on stdout, the first of that name
  awk -F': ' -v key="\"$1\"" '$1 ~ key { sub(/,$/, "", $2); print $2; exit }' "$work/stdout"
}
step="--model llama2-7b --gpu h100 --nodes 2 --global-batch 64 --framework pytorch-fsdp2 --quiet"
small="$step --fix plan.reduce=software --fix plan.prefetch=1 --fix plan.recompute_every=1"

expect 0 "$stepcast" search $small
said '^optimal among [0-9,]* legal plans of this space: [0-9,]* do not fit[, 0-9a-z]* (nearest:'
proof_said 'cannot come within 5.00 % of'
said '^launch '

# The best of the search is what `run` says of that plan, and no other plan of the space beats it.
expect 0 "$stepcast" search $small --json
best=$(field step_time_s)
[ "$(field proven)" = true ] || fail "not proven"
legal=$(field legal)
sum=$(($(field do_not_fit) + $(field left_out) + $(field cannot_be_launched) + $(field simulated) +
  $(field not_simulated)))
[ "$sum" -eq "$legal" ] || fail "$sum of $legal plans are told of"
expect 0 "$stepcast" search $small --out "$work/out"
for file in search.json search.txt plans.svg best.toml fsdp.json; do
  [ -s "$work/out/$file" ] || fail "no $file"
done
expect 0 "$stepcast" run "$work/out/best.toml" --json
[ "$(field step_time_s)" = "$best" ] || fail "the best plan runs in $(field step_time_s), not $best"
expect 3 "$stepcast" search $small --out "$work/out"
said 'is there already'

# All of them, simulated: the same best.
expect 0 "$stepcast" search $small --fix plan.tensor=1 --json
proven=$(field step_time_s)
expect 0 "$stepcast" search $small --fix plan.tensor=1 --all --json
[ "$(field step_time_s)" = "$proven" ] || fail "trying every plan finds another"

# The user's own plan, knob by knob; a table as it is asked for.
expect 0 "$stepcast" search $small --data zero3 --top 3 --csv "$work/plans.csv"
said 'fixed: .*data zero3'
[ "$(wc -l <"$work/plans.csv")" -eq 4 ] || fail "three plans and their header: $(cat "$work/plans.csv")"
cat >"$work/own.toml" <<'TOML'
[model]
name = "llama2-7b"
[cluster]
node = "dgx-h100"
nodes = 2
[plan]
data = "zero3"
tensor = 4
[batch]
global = 64
micro_batch = 2
[software]
framework = "pytorch-fsdp2"
[space.plan]
tensor = [1, 2, 4]
pipeline = 1
recompute = "none"
TOML
expect 0 "$stepcast" search "$work/own.toml" --quiet
said '^your plan '
said 'plan.tensor .* 4 '

# Experts, recipes, schedules and graphs are knobs; what rules refuse is counted by rule.
experts="--model mixtral-8x7b --gpu h100 --nodes 2 --global-batch 64 --framework megatron-core \
  --data zero1 --tensor 1 --sequence 4096 --fix plan.reduce=software --fix plan.recompute_every=1 \
  --fix plan.shard_degree=0 --fix plan.prefetch=1 --fix plan.stage_layers=software --quiet"
expect 0 "$stepcast" search $experts --out "$work/experts"
said 'all: .*expert_tensor 1'
said 'not legal, of combinations of these values [0-9,]*, by the first rule broken:'
expect 0 "$stepcast" run "$work/experts/best.toml" --json
experts_best=$(field step_time_s)
expect 0 "$stepcast" search $experts --json --fix 'precision.recipe=["none", "fp8_current", "mxfp8"]' \
  --fix 'software.cuda_graphs=["none", "layers"]' --fix 'plan.capacity_factor=[0, 1.25]' \
  --fix 'plan.pad_to_capacity=[false, true]' --fix 'plan.dispatcher=["all_to_all", "node_aware"]' \
  --fix plan.pipeline=2 --fix plan.recompute=full --fix plan.expert=8
[ "$(field proven)" = true ] || fail "not proven"
awk -v a="$(field step_time_s)" -v b="$experts_best" 'BEGIN { exit !(a < b) }' ||
  fail "more to choose from, and slower than $experts_best"
said 'cannot run recipe \\"mxfp8\\"'
said 'pad_to_capacity without capacity_factor'
expect 0 "$stepcast" run "$work/experts/best.toml" --json --expert best --set precision.recipe=best \
  --set plan.dispatcher=best --set software.cuda_graphs=best
awk -v a="$(field step_time_s)" -v b="$experts_best" 'BEGIN { exit !(a < b) }' || fail "no better"
expect 3 "$stepcast" search --model mixtral-8x7b --gpu h100 --nodes 2 --global-batch 64 --quiet \
  --framework torchtitan --expert 8 --fix plan.dispatcher=all_gather
said 'no plan of this space is legal'
expect 3 "$stepcast" run --model mixtral-8x7b --gpu h100 --nodes 2 --global-batch 64 --expert 8 \
  --framework torchtitan --data zero2 --dispatcher all_gather
said 'torchtitan 2026 has no dispatcher "all_gather"'

# Limits leave a gap, and say so.
expect 0 "$stepcast" search $small --limit 8
proof_said 'still open'

# Nothing fits: the nearest three, and exit code 4.
expect 4 "$stepcast" search --model llama3-405b --gpu v100 --nodes 1 --global-batch 8 --quiet
said 'no plan fits; the nearest:'
[ "$(grep -c ' more than v100' "$work/stdout")" -eq 3 ] || fail "not three misses"

# What the framework cannot be told is no plan of its own.
expect 0 "$stepcast" search --model llama2-7b --gpu h100 --nodes 2 --global-batch 64 --quiet \
  --framework megatron-core@0.7 --data zero1 --fix plan.pipeline=4 --fix plan.recompute=none \
  --fix plan.reduce=software --fix batch.micro_batch=1 --fix plan.shard_degree=0 --all
said 'cuts 32 layers into 32 equal parts alone'
said '^launch .*megatron.args'

# Mistakes have a place and a suggestion.
expect 3 "$stepcast" search $small --fix plan.tensr=4
said "did you mean 'plan.tensor'"
expect 3 "$stepcast" search $small --fix plan.data=zero4
said "did you mean 'zero"
expect 2 "$stepcast" search $small --fix plan.tensor
expect 2 "$stepcast" search $small --objective dollars-per-token
expect 0 "$stepcast" search $small --fix plan.tensor=1 --objective dollars-per-token --price "2.5 USD/h"
said 'USD per'
expect 0 "$stepcast" search $small --fix plan.tensor=1 --objective joules-per-token
said 'energy'

# --top is the search's own, not of its table alone: fewer plans to order, less to simulate.
expect 0 "$stepcast" search $small --fix plan.tensor=1 --top 20 --json
many=$(field simulated)
expect 0 "$stepcast" search $small --fix plan.tensor=1 --top 1 --json
[ "$(field simulated)" -lt "$many" ] || fail "--top 1 simulates $(field simulated), --top 20 $many"

# "best" in a scenario is the same search over the keys that say so.
expect 0 "$stepcast" run $step --tensor best --set plan.data=best --micro-batch best --json
run_best=$(field step_time_s)
expect 0 "$stepcast" search $small --json --allow-tp-across-nodes --fix plan.pipeline=1 \
  --fix plan.virtual_stages=1 --fix plan.recompute=none --fix plan.sequence_parallel=false \
  --fix plan.shard_degree=0 --fix plan.stage_layers=software
[ "$(field step_time_s)" = "$run_best" ] || fail "best of run $run_best, of search $(field step_time_s)"
expect 3 "$stepcast" run $step --tensor most
said 'or "best"'
