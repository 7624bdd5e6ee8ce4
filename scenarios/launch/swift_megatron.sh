# In the shape of ms-swift's examples over Megatron.
NPROC_PER_NODE=8 \
megatron sft \
    --model Qwen/Qwen3-30B-A3B \
    --tuner_type full \
    --dataset mine.jsonl \
    --expert_model_parallel_size 8 \
    --tensor_model_parallel_size 1 \
    --micro_batch_size 1 \
    --global_batch_size 64 \
    --packing true \
    --max_length 4096 \
    --use_distributed_optimizer true \
    --recompute_granularity full \
    --recompute_method uniform \
    --recompute_num_layers 1 \
    --moe_permute_fusion true \
    --lr 1e-5
