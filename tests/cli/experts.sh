#!/bin/sh
# Models of experts through the program: a step, its memory and exchange, what is refused and why.
#   experts.sh FOLDER_OF_PROGRAMS SOURCE
set -eu
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mixtral="--model mixtral-8x7b --gpu h100 --nodes 8 --data zero1 --framework megatron-core \
  --pipeline 4 --global-batch 256 --sequence 4096"
step() { "$stepcast" run $mixtral --json "$@" | sed -n 's/^ *"step_time_s": \([0-9.]*\),*$/\1/p'; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

"$stepcast" run $mixtral --expert 8 >"$work/text"
grep -q "^exposed comm.*expert [0-9]" "$work/text" || grep -q "exposed comm\..*expert [0-9]" "$work/text"
grep -qi "memory" "$work/text"

# The exchange is exposed time, and leaving the host out of every layer saves some.
"$stepcast" run $mixtral --expert 8 --json >"$work/json"
exposed=$(sed -n 's/^ *"expert": \([0-9.e-]*\),*$/\1/p' "$work/json" | head -n 1)
less 0 "$exposed"
plain=$(step --expert 8)
less "$(step --expert 8 --set software.host_sync=none)" "$plain"
less "$(step --expert 8 --set routing.kind=balanced)" "$plain"
less "$plain" "$(step --expert 8 --set routing.kind=max_violation --set routing.max_violation=0.5)"

# Ranks that are alike run once: the same picosecond.
"$stepcast" run $mixtral --expert 8 --check-fold >"$work/folded"

# The exchange under another micro-batch: it waits for SMs there, so that on one node, where there is
# little to hide, it may cost a fiftieth. Ranks that are alike run once.
interleaved="--expert 8 --set plan.virtual_stages=2 --set software.tensor_overlap=false"
apart=$(step $interleaved)
beside=$(step $interleaved --expert-overlap)
most=$(awk -v a="$apart" 'BEGIN { print 1.02 * a }')
less "$beside" "$most"
less "$(step $interleaved --expert-overlap --set plan.delay_wgrad=true)" "$most"
"$stepcast" run $mixtral $interleaved --expert-overlap --check-fold >"$work/folded"
"$stepcast" run $mixtral $interleaved --expert-overlap --json --out "$work/beside" >"$work/a"
"$stepcast" run "$work/beside/scenario.toml" --json >"$work/b"
[ "$(grep step_time_s "$work/a")" = "$(grep step_time_s "$work/b")" ]

# A resolved scenario gives the same step, its routing and plan included.
"$stepcast" run $mixtral --expert 8 --set routing.seed=7 --json --out "$work/out" >"$work/a"
"$stepcast" run "$work/out/scenario.toml" --json >"$work/b"
[ "$(grep step_time_s "$work/a")" = "$(grep step_time_s "$work/b")" ]

# Counts out of a file.
{ echo tokens; for n in 13 10 10 10 10 10 10 7; do echo $n; done; } >"$work/counts.csv"
cat >"$work/counts.toml" <<END
[model]
name = "mixtral-8x7b"
sequence = 4096
[cluster]
node = "dgx-h100"
nodes = 8
[plan]
data = "zero1"
pipeline = 4
expert = 8
[routing]
kind = "counts"
counts = "counts.csv"
[batch]
global = 256
[software]
framework = "megatron-core"
END
"$stepcast" run "$work/counts.toml" --json >"$work/counts"
less "$plain" "$(sed -n 's/^ *"step_time_s": \([0-9.]*\),*$/\1/p' "$work/counts")"

refused() { # TEXT OPTIONS
  text=$1
  shift
  status=0
  "$stepcast" run --model mixtral-8x7b --gpu h100 --nodes 8 --global-batch 256 --sequence 4096 "$@" \
    >/dev/null 2>"$work/refusal" || status=$?
  [ "$status" -eq 3 ] && grep -q "$text" "$work/refusal" || {
    cat "$work/refusal" >&2
    echo "expected: $text" >&2
    exit 1
  }
}
megatron="--data zero1 --framework megatron-core --pipeline 4"
refused "expert degree 3 does not divide the model's experts 8" $megatron --expert 3
refused "does not divide the ranks of a pipeline stage, 16" $megatron --expert 8 --expert-tensor 4
refused "pytorch-fsdp2 .* has no layers of experts" --data zero3 --framework pytorch-fsdp2
refused "pad_to_capacity without capacity_factor" $megatron --set plan.pad_to_capacity=true
refused "without sequence_parallel" $megatron --expert 4 --tensor 2
refused "shared_expert_overlap without shared experts" $megatron --expert 8 \
  --set plan.shared_expert_overlap=true
refused "in a pipeline with one chunk per stage" $megatron --expert 8 --expert-overlap
refused "expert_overlap beside recompute of the exchange" $megatron --expert 8 --expert-overlap \
  --set plan.virtual_stages=2 --set plan.recompute=full
refused "delay_wgrad without expert_overlap" $megatron --expert 8 --set plan.delay_wgrad=true
refused "expert_overlap without tokens that are sent" $megatron --expert-overlap
refused "CUDA_DEVICE_MAX_CONNECTIONS" --data zero1 --framework megatron-core --expert 4 --tensor 2 \
  --sequence-parallel --expert-overlap
refused "hides no exchange" --data zero2 --framework torchtitan --expert 8 --expert-overlap
status=0
"$stepcast" run --model llama2-7b --gpu h100 --nodes 1 --data zero1 --framework megatron-core \
  --local-batch 1 --sequence 4096 --expert 8 >/dev/null 2>"$work/dense" || status=$?
[ "$status" -eq 3 ] && grep -q "expert degree 8 without experts" "$work/dense"
