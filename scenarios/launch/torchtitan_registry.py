# In the shape of torchtitan's registries of 2026.
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.qwen3 import model_registry
from torchtitan.trainer import Trainer


def qwen3_moe() -> Trainer.Config:
    model_spec = model_registry("30B-A3B")
    return Trainer.Config(
        model_spec=model_spec,
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * 4096,
            max_context_length=4096,
        ),
        parallelism=ParallelismConfig(expert_parallel_degree=8),
        activation_checkpoint=FullAC.Config(),
    )
