#!/bin/bash
# In the shape of verl's examples: demonstrations on one node, by its FSDP trainer.
set -x
nproc_per_node=${1:-8}

torchrun --standalone --nnodes=1 --nproc_per_node=$nproc_per_node \
  -m verl.trainer.fsdp_sft_trainer \
  data.train_files=$HOME/data/train.parquet \
  data.train_batch_size=128 \
  data.micro_batch_size_per_gpu=2 \
  data.max_length=4096 \
  model.partial_pretrain=Qwen/Qwen3-8B \
  model.enable_gradient_checkpointing=True \
  ulysses_sequence_parallel_size=2 \
  use_remove_padding=true \
  optim.lr=1e-5 \
  trainer.total_epochs=2 $@
