#!/bin/bash
# DeepSpeed-Chat, demonstrations: a small model on the GPUs of one node.
MODEL=${MODEL:-facebook/opt-1.3b}
STAGE=${STAGE:-2}
deepspeed --num_gpus 8 main.py \
  --data_path my/answers \
  --data_split 10,0,0 \
  --model_name_or_path $MODEL \
  --max_seq_len 1024 \
  --per_device_train_batch_size 8 \
  --gradient_accumulation_steps 2 \
  --gradient_checkpointing \
  --dtype bf16 \
  --zero_stage $STAGE \
  --deepspeed \
  --output_dir out
