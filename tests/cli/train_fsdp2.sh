#!/bin/sh
# The script that stepcast launch writes for FSDP2 builds the model of the forecast, cut and wrapped
# as the plan says: without torch, by a stand-in that keeps what it is asked.
#   train_fsdp2.sh FOLDER_OF_PROGRAMS SOURCE
set -u
program=$1/stepcast
. "$2/tests/cli/shared/expect.sh"
# shellcheck source=tests/cli/shared/python.sh
. "$2/tests/cli/shared/python.sh"

checks=$2/tests/cli/shared
number=0
"$program" show models --columns model,parameters >"$work/models"
# built MODEL OPTION...: what is written for these is what they say
built() {
  number=$((number + 1))
  "$program" launch --model "$@" --gpu h100 --framework pytorch-fsdp2@2.9 --sequence 2048 \
    --out "$work/$number" >"$work/answer" 2>&1 &&
    PYTHONDONTWRITEBYTECODE=1 "$python" "$checks/check_train_fsdp2.py" "$work/$number" \
      "$(awk -v model="$1" '$1 == model { gsub(",", ""); print $2 }' "$work/models")" || {
    echo "not as the plan says: $*"
    cat "$work/answer"
    failures=$((failures + 1))
  }
}

built llama3-8b --nodes 1 --global-batch 64 --data zero3 --set plan.prefetch=2
built llama2-70b --nodes 16 --global-batch 256 --data zero2 --tensor 8 --pipeline 4 \
  --virtual-stages 2 --recompute full --set plan.recompute_every=2
built llama2-7b --nodes 2 --global-batch 32 --data zero3 --pipeline 4 --virtual-stages 2 \
  --schedule zb_v --recompute selective
built gpt3-175b --nodes 8 --global-batch 64 --data ddp --tensor 8
built llama3-8b --nodes 4 --global-batch 32 --data zero3 --context 2 \
  --set plan.shard_degree=8 --recompute ops
built llama2-7b --nodes 1 --global-batch 8 --data zero3 --set software.fusion=compiled

# What the script has not is said, and fsdp.json stands alone.
expect 0 'train_fsdp2.py has not weights that two stages share' launch --model gpt3-175b --gpu h100 \
  --nodes 16 --global-batch 64 --framework pytorch-fsdp2 --data zero3 --pipeline 8 --sequence 2048
expect 0 'plan.mlp_tiles = 4 is not said' launch --model llama3-8b --gpu h100 --nodes 1 \
  --global-batch 8 --framework pytorch-fsdp2 --set plan.mlp_tiles=4
expect 0 'precision.masters = false is not said' launch --model llama3-8b --gpu h100 --nodes 1 \
  --global-batch 8 --framework pytorch-fsdp2 --set precision.masters=false
expect 0 '^# fsdp.json: .* your_script.py fsdp.json' launch --model llama2-7b --gpu h100 --nodes 1 \
  --global-batch 8 --framework pytorch-fsdp1

exit $((failures > 0))
