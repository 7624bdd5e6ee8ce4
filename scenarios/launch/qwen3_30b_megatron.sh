#!/bin/bash
# A launch script in the shape of those that Megatron-LM's users have: Qwen3-30B-A3B.
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-2}
DATA_PATH=$1
TP=1
PP=2
EP=8

DISTRIBUTED_ARGS=(
  --nproc_per_node $GPUS_PER_NODE
  --nnodes $NNODES
  --node_rank ${SLURM_NODEID:-0}
)

MODEL_ARGS=(
  --use-mcore-models
  --num-layers 48
  --hidden-size 2048
  --ffn-hidden-size 6144
  --num-attention-heads 32
  --kv-channels 128
  --group-query-attention
  --num-query-groups 4
  --qk-layernorm
  --swiglu
  --normalization RMSNorm
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --position-embedding-type rope
  --rotary-base 1000000
  --seq-length 4096
  --max-position-embeddings 40960
  --attention-dropout 0.0
  --hidden-dropout 0.0
)

MOE_ARGS=(
  --num-experts 128
  --moe-router-topk 8
  --moe-ffn-hidden-size 768
  --moe-grouped-gemm
  --moe-token-dispatcher-type alltoall
  --moe-permute-fusion
  --moe-router-load-balancing-type aux_loss
  --moe-aux-loss-coeff 1e-3
)

TRAINING_ARGS=(
  --micro-batch-size 1
  --global-batch-size 256
  --bf16
  --lr 1e-4
  --min-lr 1e-5
  --train-iters 1000
  --clip-grad 1.0
  --recompute-granularity full
  --recompute-method uniform
  --recompute-num-layers 1
)

PARALLEL_ARGS=(
  --tensor-model-parallel-size $TP
  --pipeline-model-parallel-size $PP
  --expert-model-parallel-size $EP
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
)

if [ -n "${WANDB_API_KEY:-}" ]; then
  TRAINING_ARGS+=(--wandb-project qwen3)
fi

torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
  ${MODEL_ARGS[@]} \
  ${MOE_ARGS[@]} \
  ${TRAINING_ARGS[@]} \
  ${PARALLEL_ARGS[@]} \
  --tokenizer-type HuggingFaceTokenizer \
  --tokenizer-model Qwen/Qwen3-30B-A3B \
  --data-path $DATA_PATH \
  --save checkpoints --log-interval 10
