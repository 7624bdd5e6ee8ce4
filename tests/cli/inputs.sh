#!/bin/sh
# Launch files of other frameworks as scenarios: read, completed, converted, refused.
#   inputs.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"
files=$2/scenarios/launch
fail() {
  echo "$1"
  failures=$((failures + 1))
}

# Each example makes a step, with no more than the machine beside it; --ignore-memory, because
# whether it fits is another question.
while read -r file options; do
  set --
  for one in $(echo "$file" | tr , ' '); do set -- "$@" "$files/$one"; done
  expect 0 '^step time ' run "$@" --gpu h100 $options --ignore-memory --quiet
done <<END
qwen3_30b_megatron.sh
axolotl_lora.yaml --nodes 1
deepspeed_auto.json --nodes 1 --model llama3-8b --sequence 4096 --local-batch 1
deepspeed_chat.sh
verl_grpo.sh
verl_sft.sh
llama_factory_full.yaml --nodes 1
llama_factory_v1.yaml --nodes 1
trl_sft.yaml,fsdp2.yaml
swift_megatron.sh
torchtitan_llama3_70b.toml --nodes 8
torchtitan_registry.py --nodes 2
bridge_overrides.yaml --nodes 2 --model qwen3-8b
nanotron_1b.yaml
neox_1b.yaml
foundry_mpt.yaml --nodes 1
END

# How it was read is said, and all that is missing at once.
expect 0 'Read as the YAML of Axolotl: ' run "$files/axolotl_lora.yaml" --gpu h100 --nodes 1
expect 3 'give it: --model llama3-8b --sequence 8192 --gpu h100 --nodes 2 --global-batch 256' \
  run "$files/deepspeed_auto.json"
sed 's/^\[model\]/[model]\nconverters = ["mx"]/' "$files/torchtitan_llama3_70b.toml" >"$work/mx.toml"
expect 3 'give it: --nodes 2; and besides: h100-sxm5-80gb cannot run recipe "mxfp8"' \
  run "$work/mx.toml" --gpu h100
expect 3 'does not say cluster.node, give it: --gpu h100' run "$files/verl_grpo.sh"
echo 'python3 -m verl.trainer.main_generation model.path=Qwen/Qwen3-8B' >"$work/samples.sh"
expect 3 'calls a program of verl that trains nothing' run "$work/samples.sh" --gpu h100
echo 'torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048' \
  '--num-attention-heads 16 --seq-length 2048 --micro-batch-size 4 --global-batch-size 64' \
  '--vocab-size 50257 --bf16' >"$work/learned.sh"
expect 3 'nothing says how many, give model.max_positions, --max-position-embeddings of Megatron' \
  run "$work/learned.sh" --gpu h100
sed 's/^bf16: auto/bf16: auto\nno_such_word: 3/' "$files/axolotl_lora.yaml" >"$work/odd.yaml"
expect 0 'Not understood: no_such_word = 3' run "$work/odd.yaml" --gpu h100 --nodes 1

# The scenario that was read, written and run again, is the same step.
expect 0 '^step time ' run "$files/trl_sft.yaml" "$files/fsdp2.yaml" --gpu h100 \
  --scenario-out "$work/read.toml"
step_of() { "$program" run "$@" --quiet 2>/dev/null | grep '^step time'; }
[ "$(step_of "$work/read.toml")" = "$(step_of "$files/trl_sft.yaml" "$files/fsdp2.yaml" --gpu h100)" ] ||
  fail "the scenario that was written is another than the one that was run"

# So is that of a scenario's file and the options beside it, and of options alone.
expect 0 '^step time ' run "$work/read.toml" --recompute full --scenario-out "$work/other.toml"
[ "$(step_of "$work/other.toml")" = "$(step_of "$work/read.toml" --recompute full)" ] ||
  fail "options are not in the scenario that was written"
options="--model llama3-8b --gpu h100 --gpus 16 --data zero3 --local-batch 1 --sequence 4096"
expect 0 '^step time ' run $options --scenario-out "$work/asked.toml"
[ "$(step_of "$work/asked.toml")" = "$(step_of $options)" ] ||
  fail "the scenario of options alone is another than theirs"

# Nothing of a script is executed.
cat >"$work/evil.sh" <<END
#!/bin/bash
X=\$(touch $work/executed)
\`touch $work/executed\`
touch $work/executed
torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 128 \\
  --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 --vocab-size 512 \\
  --micro-batch-size 1 --global-batch-size 8 --bf16 --tensor-model-parallel-size \$TP
END
expect 0 'Only a shell knows: tensor_model_parallel_size = \$TP' run "$work/evil.sh" --gpu h100
[ ! -e "$work/executed" ] || fail "a script was executed"

# From one framework to another and back.
expect 0 '^#SBATCH --nodes=2$' convert "$files/qwen3_30b_megatron.sh" --to torchtitan --gpu h100 \
  --data zero3 --pipeline 1 --job slurm
expect 0 '^fsdp_config:$' convert "$files/torchtitan_registry.py" --to trl --gpu h100 --nodes 2 \
  --model qwen3-8b --set plan.expert=1
expect 0 '^tensor = 8$' convert "$files/torchtitan_llama3_70b.toml" --to toml --gpu h100 --nodes 8
expect 0 '"reshard_after_forward": true' convert "$files/torchtitan_llama3_70b.toml" --to fsdp2 \
  --gpu h100 --nodes 8
expect 3 'the configuration of DeepSpeed has no tensor, context or pipeline degree' \
  convert "$files/torchtitan_llama3_70b.toml" --to deepspeed --gpu h100 --nodes 8
expect 0 '^micro_batch_size: 2$' convert "$files/axolotl_lora.yaml" --to axolotl --gpu h100 \
  --nodes 1 --micro-batch 2
expect 0 '^actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4$' convert \
  "$files/verl_grpo.sh" --to verl --gpu h100 --micro-batch 4
expect 0 '^data.micro_batch_size_per_gpu=4$' convert "$files/verl_sft.sh" --to verl --gpu h100 \
  --micro-batch 4
expect 0 '^--expert_model_parallel_size 8$' convert "$files/swift_megatron.sh" --to swift \
  --gpu h100
expect 0 '^cutoff_len\|^per_device_train_batch_size: 1$' convert \
  "$files/llama_factory_full.yaml" --to llama-factory --gpu h100 --nodes 1
# Of LLaMA-Factory's generations a file stays what it is.
expect 0 '^launch .*llama_factory_v1.yaml' search "$files/llama_factory_v1.yaml" --gpu h100 \
  --nodes 1 --limit 1
"$program" convert "$files/llama_factory_v1.yaml" --to llama-factory-v1 --gpu h100 --nodes 1 \
  2>/dev/null >"$work/over.yaml"
[ "$(step_of "$work/over.yaml" "$files/llama_factory_v1.yaml" --gpu h100 --nodes 1)" = \
  "$(step_of "$files/llama_factory_v1.yaml" --gpu h100 --nodes 1)" ] ||
  fail "what is laid over a v1 file is another step"
mkdir -p "$work/factory"
cp "$files/llama_factory_full.yaml" "$work/factory/sft.yaml"
echo 'NNODES=1 llamafactory-cli train sft.yaml cutoff_len=1024' >"$work/factory/run.sh"
expect 0 'of 1,024 tokens' run "$work/factory/run.sh" --gpu h100 --nodes 1 --ignore-memory

"$program" convert "$files/qwen3_30b_megatron.sh" --to megatron --gpu h100 --job slurm \
  --out "$work/job" >/dev/null 2>&1
expect 0 '^step time ' run "$work/job/job.sbatch" --gpu h100
[ "$(step_of "$work/job/job.sbatch" --gpu h100)" = \
  "$(step_of "$files/qwen3_30b_megatron.sh" --gpu h100)" ] ||
  fail "the job that was written is another step than the script that was read"

# What no plan has is the user's own, in a file of its own before the plan's.
expect 0 '^# megatron.args: .* pretrain_gpt.py \$(cat own.args) \$(cat megatron.args)$' launch \
  "$files/qwen3_30b_megatron.sh" --gpu h100
for line in '--lr 1e-4' '--rotary-base 1000000' '--tokenizer-model Qwen/Qwen3-30B-A3B'; do
  grep -q -- "^$line\$" "$work/job/own.args" || fail "own.args lacks: $line"
done

expect 0 'own.args lacks what only your shell knows: --data-path ' launch \
  "$files/qwen3_30b_megatron.sh" --gpu h100

for line in 'learning_rate: 2.0e-5' 'dataset_name: my/chats' 'model_name_or_path: Qwen/Qwen3-8B'; do
  expect 0 "^$line\$" launch "$files/trl_sft.yaml" "$files/fsdp2.yaml" --gpu h100
done

# A job of each framework is read with the files that it names, which lie beside it.
plan="--model llama3-8b --gpu h100 --nodes 2 --sequence 4096 --global-batch 64 --micro-batch 1"
while read -r framework data kind; do
  rm -rf "$work/made"
  "$program" launch $plan --framework "$framework" --data "$data" --recompute full --job "$kind" \
    --out "$work/made" >/dev/null 2>&1
  for job in "$work"/made/job.sbatch "$work"/made/run.sh; do
    [ ! -e "$job" ] ||
      [ "$(step_of "$job" --gpu h100 --framework "$framework" --ignore-memory)" = \
        "$(step_of $plan --framework "$framework" --data "$data" --recompute full --ignore-memory)" ] ||
      fail "the job for $framework that was written is another step: $kind"
  done
done <<END
megatron-core@0.18 zero1 torchrun
nemo@25.11 zero1 slurm
nemo@26.06 zero1 torchrun
torchtitan@2025 zero3 slurm
torchtitan@2026 zero3 torchrun
pytorch-fsdp2 zero3 slurm
END
"$program" launch $plan --framework trl --data zero3 --job slurm --out "$work/trl" >/dev/null 2>&1
expect 3 'does not say cluster.node, give it: --gpu h100' run "$work/trl/job.sbatch"

# Options of a job are looked at before anything is computed.
expect 2 'banana is no time of Slurm' launch $plan --job slurm --job-time banana
expect 2 'job-time is of --job slurm, give that too' search $plan --job-time 1

# Searched as any scenario.
expect 0 'on 16 x h100-sxm5-80gb, 256 sequences' search "$files/qwen3_30b_megatron.sh" --gpu h100 --limit 2 --quiet

# What a search of a file finds is written in the file's own format, to be laid over it; plans
# that it has no words for are not tried.
expect 0 'fixed: tensor 1, pipeline 1, recompute_every 1$' search "$files/verl_grpo.sh" --gpu h100 \
  --nodes 1 --limit 2 --quiet
expect 0 '(--out DIR writes verl.overrides)$' search "$files/verl_grpo.sh" --gpu h100 --nodes 1 \
  --limit 2 --quiet
expect 0 '^  tensor 1 2$' search "$files/verl_grpo.sh" --gpu h100 --nodes 1 --limit 2 --quiet \
  --fix plan.tensor='[1,2]'
expect 0 '(--out DIR writes axolotl.yaml)$' search "$files/axolotl_lora.yaml" --gpu h100 --nodes 1 \
  --limit 2 --quiet
expect 0 '^launch .*cat verl.overrides' search "$files/verl_grpo.sh" --gpu h100 --limit 2 --quiet
"$program" launch "$files/verl_grpo.sh" --gpu h100 --data zero2 --recompute none --out "$work/verl" \
  >/dev/null 2>&1
expect 0 '^plan  *zero2 8 ' run "$work/verl/verl.overrides" "$files/verl_grpo.sh" --gpu h100 \
  --ignore-memory
expect 0 '^# megatron.args: ' launch "$files/qwen3_30b_megatron.sh" --gpu h100

# What is no format of these.
echo 'colour: blue' >"$work/other.yaml"
expect 3 'neither a scenario nor a launch file' run "$work/other.yaml"
printf 'base_model: x\n  y: [1\n' >"$work/broken.yaml"
expect 3 'broken.yaml:[0-9]*: is no YAML' run "$work/broken.yaml"
expect 2 'which file?' convert

exit $((failures > 0))
