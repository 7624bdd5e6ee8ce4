#!/bin/sh
# How to start a plan with its framework: printed, written, read back as a scenario, refused.
#   launch.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

on_512="--model llama2-70b --gpu h100 --nodes 64 --sequence 4096 --global-batch 1024 --micro-batch 1"
megatron="--framework megatron-core@0.7 --data zero1 --tensor 4 --pipeline 8 --virtual-stages 5"

expect 0 '^# megatron.args: CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 64 ' \
  launch $on_512 $megatron
expect 0 '^--num-layers-per-virtual-pipeline-stage 2$' launch $on_512 $megatron
expect 0 '^module_fqns_per_model_part = \[\["tok_embeddings", "layers.0", ' \
  launch $on_512 --framework torchtitan@2025 --data zero3 --tensor 8 --pipeline 2
expect 0 '"reshard_after_forward": true' launch $on_512 --framework pytorch-fsdp2 --data zero3
expect 0 '"stage": 3' launch $on_512 --framework deepspeed --data zero3
expect 0 "always cut the sequence: sequence_parallel = true" \
  launch $on_512 --framework torchtitan@2025 --data zero3 --tensor 8

# What frameworks read, by Python's readers of the same formats.
for framework in torchtitan@2025 pytorch-fsdp2 deepspeed; do
  "$program" launch $on_512 --framework $framework --data zero3 --out "$work/read" >/dev/null
done
"$python" -c '
import json, sys, tomllib
torchtitan = tomllib.load(open(sys.argv[1] + "/torchtitan.toml", "rb"))
assert torchtitan["training"]["seq_len"] == 4096, torchtitan
assert json.load(open(sys.argv[1] + "/fsdp.json"))["fully_shard"]["reshard_after_forward"] is True
deepspeed = json.load(open(sys.argv[1] + "/deepspeed.json"))
assert deepspeed["zero_optimization"]["stage"] == 3
assert deepspeed["train_batch_size"] == 1024' "$work/read" || failures=$((failures + 1))

# Written files are the printed ones, and no other file is written over.
expect 0 '^megatron.args: ' launch $on_512 $megatron --out "$work/out"
"$program" launch $on_512 $megatron | grep -v '^#' | cmp -s - "$work/out/megatron.args" || {
  echo "the written file is not the printed one"
  failures=$((failures + 1))
}
expect 0 '^megatron.args: ' launch $on_512 $megatron --out "$work/out"
expect 7 "megatron.args: is there already and says something else" \
  launch $on_512 $megatron --context 2 --out "$work/out"
grep -q -- '--context-parallel-size 1' "$work/out/megatron.args" || {
  echo "megatron.args was written over"
  failures=$((failures + 1))
}

expect 3 "llm-c has no launch form here; megatron-core, " launch $on_512 --framework llm-c \
  --data ddp
expect 3 "runs 1f1b, not gpipe" launch $on_512 --framework megatron-core --data zero1 \
  --tensor 8 --pipeline 8 --schedule gpipe
expect 3 'a degree is "best"' launch $on_512 --framework megatron-core --data zero1 --tensor best
expect 2 "which scenario?" launch

# A scenario's file; the launch of a sweep is none.
cat >"$work/sweep.toml" <<END
[sweep]
plan.prefetch = [1, 2]
END
expect 3 "has a \[sweep\]" launch "$work/sweep.toml" $on_512 --framework torchtitan

# Beside a log of the run, stepcast validate trace makes the same scenario of it.
mkdir "$work/run"
cp "$work/out/megatron.args" "$work/run"
for step in 1 2 3; do
  echo " iteration $step/ 3 | elapsed time per iteration (ms): 9000.0 | global batch size: 1024 |"
done >"$work/run/train.log"
"$1/stepcast-validate" trace "$work/run/train.log" "$work/run/megatron.args" \
  --set cluster.node=dgx-h100 --set cluster.nodes=64 >"$work/answer" 2>&1
for line in 'tensor = 4' 'pipeline = 8' 'virtual_stages = 5' 'data = "zero1"' 'global = 1024'; do
  grep -q "^$line\$" "$work/run/run.toml" || {
    echo "run.toml read from megatron.args lacks: $line"
    failures=$((failures + 1))
  }
done

exit $((failures > 0))
