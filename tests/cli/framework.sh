#!/bin/sh
# What a framework makes of a plan: which one is taken unasked, who reduces gradients when, what it
# cannot run, and what would bring a plan into memory.
#   framework.sh FOLDER_OF_PROGRAMS
set -eu
stepcast=$1/stepcast
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*"
  exit 1
}
plan="run --model llama2-7b --gpu h100 --nodes 8 --global-batch 256 --micro-batches 4 --sequence 2048"
deepspeed='software.framework="deepspeed"'

# Gradients accumulate over 4 micro-batches: DeepSpeed reduces those that it shards each time.
memory() {
  "$stepcast" $plan --json --set "$deepspeed" "$@" | awk -F'[:,]' '/"memory_gib_per_gpu"/ { print $2 }'
}
falls() {
  awk "BEGIN { exit !($2 < $1) }" || fail "memory does not fall from $1 to $2: $3"
}
zero1=$(memory --data zero1)
zero2=$(memory --data zero2)
zero3=$(memory --data zero3)
falls "$zero1" "$zero2" "zero1 to zero2"
falls "$zero2" "$zero3" "zero2 to zero3"
[ "$zero3" = "$(memory --data zero3 --set 'plan.reduce="each"')" ] || fail "zero3 does not reduce each"
falls "$(memory --data zero3 --set 'plan.reduce="last"')" "$zero3" "reduce last to each"
"$stepcast" $plan --data zero3 --set "$deepspeed" --set 'plan.reduce="last"' 2>&1 |
  grep -q '^warning .*keeps whole gradients' || fail "whole gradients are kept in silence"

# A framework is named with its version, and whether it was asked for.
"$stepcast" $plan --data zero3 >"$work/text"
grep -q '^framework  *pytorch-fsdp2 2.3, chosen by default for zero3$' "$work/text" || fail "default"
grep -q '^cluster .*NCCL 2.20.5)' "$work/text" || fail "NCCL of PyTorch 2.3"
"$stepcast" $plan --data zero3 --set "$deepspeed" | grep -q '^framework  *deepspeed 0.18$' || fail "named"
"$stepcast" $plan --data ddp --set 'sweep.plan.data=["ddp","zero1"]' --quiet --ignore-memory |
  grep -q '^pytorch-ddp 2.3, chosen by default for ddp, the first of the sweep; NCCL ' ||
  fail "the framework of a sweep"

# What a framework cannot run is refused with what it can.
refused() {
  code=0
  "$stepcast" $plan --data zero3 --set "$1" >"$work/text" 2>&1 || code=$?
  [ $code -eq 3 ] && grep -q "$2" "$work/text" || fail "$1: $code $(cat "$work/text")"
}
refused 'software.framework="megatron-core"' 'cannot run data = "zero3".*use_megatron_fsdp = true'
refused 'software.framework="llm-c"' 'cannot run data = "zero3", it runs ddp, zero1'
"$stepcast" $plan --data zero3 --set 'software.framework="megatron-core"' \
  'software.use_megatron_fsdp=true' >/dev/null || fail "Megatron-FSDP"

# A plan that does not fit is told what does, and that is so.
big="run --model llama2-7b --gpu h100 --nodes 1 --data zero2 --local-batch 8"
code=0
"$stepcast" $big >"$work/text" || code=$?
[ $code -eq 4 ] || fail "8 sequences at once: $code"
size=$(sed -n 's/.*it fits with micro-batch \([0-9]*\) (\([0-9.]*\) GiB, [0-9.]* %).*/\1/p' "$work/text")
need=$(sed -n 's/.*it fits with micro-batch \([0-9]*\) (\([0-9.]*\) GiB, [0-9.]* %).*/\2/p' "$work/text")
[ -n "$size" ] || fail "no advice: $(cat "$work/text")"
"$stepcast" $big --micro-batch "$size" | grep -q "^memory per GPU  *$need GiB" || fail "wrong advice"
