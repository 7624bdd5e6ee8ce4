#include "validate/diagnose/causes.hpp"

#include <fmt/format.h>

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

constexpr CauseWords cause_words[] = {
    {CauseKind::slow_rank, "slow_rank", "a slow GPU",
     "take its node out, or swap the GPU; before that, reset clocks and look at its cooling",
     "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC,PCI on that node; one product of 8192^3 on every GPU"},
    {CauseKind::slow_link, "slow_link", "transfers are slow",
     "look for a NIC at a lower rate, GPUDirect that is off, sockets in the place of InfiniBand",
     "NCCL_DEBUG=INFO shows NET/IB and GDRDMA; all_reduce_perf of nccl-tests over pairs of nodes"},
    {CauseKind::wrong_protocol, "wrong_protocol", "NCCL runs another protocol or algorithm",
     "remove NCCL_PROTO, NCCL_ALGO and NCCL_P2P_DISABLE from the environment, or a tuner's file",
     "env | grep NCCL; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,TUNING for one step"},
    {CauseKind::launch_blocking, "launch_blocking", "the host waits for every kernel",
     "unset CUDA_LAUNCH_BLOCKING and TORCH_DISTRIBUTED_DEBUG=DETAIL, and leave anomaly detection",
     "env | grep -E 'LAUNCH_BLOCKING|DISTRIBUTED_DEBUG'; in the trace, launches that take as long "
     "as their kernels"},
    {CauseKind::host_bound, "host_bound", "the host launches slower than the GPU computes",
     "fewer, larger kernels: torch.compile, CUDA graphs, a larger micro-batch; bind the processes "
     "to the cores of their GPU's socket",
     "in the trace, the time from a launch to its kernel: near zero where the host is late"},
    {CauseKind::host_pause, "host_pause", "the host stands still now and then",
     "gc.disable() and gc.collect() every few hundred steps on all ranks at once; no other process "
     "on those cores",
     "py-spy dump of the named rank; gc.callbacks with the time; pidstat -w on its node"},
    {CauseKind::data_loader, "data_loader", "the GPU waits between steps",
     "more workers, pinned memory and prefetching in the data loader; no print, .item() or "
     "metrics' synchronisation in every step",
     "run ten steps with one batch that stays in memory: the step time without data loading"},
    {CauseKind::stalls, "stalls", "some steps are much longer",
     "checkpoint and evaluate less often, or asynchronously; collect garbage at the same step on "
     "every rank",
     "the period beside the intervals of saving, evaluation and logging"},
    {CauseKind::drift, "drift", "steps grow longer over the run",
     "look for what grows: temperature, fragmentation of memory, sequence lengths, a log file",
     "nvidia-smi dmon -s pucm over an hour; torch.cuda.memory_stats() at both ends"},
    {CauseKind::recompute, "recompute", "activations are computed again",
     "recompute less, where the memory allows it",
     "the forward attention kernels of a step: twice the layers' number"},
    {CauseKind::stage_imbalance, "stage_imbalance", "pipeline stages are unequal",
     "give the longest stage fewer layers: embedding, head and loss count as layers",
     "the busy time of one rank of each stage"},
    {CauseKind::expert_imbalance, "expert_imbalance", "some experts have more tokens",
     "a stronger balancing loss or router bias, a capacity factor",
     "tokens per expert, logged for one step"},
    {CauseKind::unfused, "unfused", "more kernels than expected",
     "the fused norm, rotary embedding, loss and optimizer of the framework, or torch.compile",
     "the kernels' names: elementwise and reduction kernels between the products"},
    {CauseKind::slow_attention, "slow_attention", "attention runs a slow kernel",
     "flash attention: check that it is installed and that mask, head width and dtype allow it",
     "the attention kernels' names in the trace: flash, fmha or cudnn"},
    {CauseKind::fp32_products, "fp32_products", "products run in fp32",
     "bf16 autocast or bf16 weights; where fp32 is meant, allow TF32",
     "the products' names: sgemm or s1688 in the place of bf16"},
    {CauseKind::slow_kernels, "slow_kernels", "kernels take longer than expected",
     "dimensions that are multiples of 128, newer cuBLAS and cuDNN, a larger micro-batch",
     "the slowest kind's kernels one by one: stepcast validate trace shows each kind"},
    {CauseKind::clocks, "clocks", "all GPUs compute slower",
     "raise the power cap, or expect the capped rate: stepcast run --power-cap",
     "nvidia-smi -q -d POWER,PERFORMANCE,CLOCK during the run"},
    {CauseKind::copies, "copies", "copies that the step does not need",
     "look for .contiguous(), .to(), .cpu() and casts in the model's code; pinned memory, "
     "non_blocking",
     "the copies' stacks: profile with with_stack=True for one step"},
    {CauseKind::allocator, "allocator", "the allocator frees and asks again",
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or a little less memory",
     "torch.cuda.memory_stats()['num_alloc_retries'] before and after a step"},
    {CauseKind::waiting, "waiting", "waiting for late peers", "profile the ranks that come last",
     "traces of all ranks, given together"},
    {CauseKind::not_explained, "not_explained", "not explained", "", ""},
};
static_assert(std::size(cause_words) == num_causes);

struct Setting {
  CauseKind kind;
  std::string_view framework;  // its name begins so
  std::string_view text;
};

// Flags as the frameworks have them: Megatron-LM core_v0.14 megatron/training/arguments.py,
// torchtitan 0.2 job_config.py, transformers 4.57 TrainingArguments, DeepSpeed 0.17 (read 2026-11).
constexpr Setting framework_settings[] = {
    {CauseKind::recompute, "megatron", "drop --recompute-granularity full, or take selective"},
    {CauseKind::recompute, "nemo", "activations_checkpoint_granularity: selective or null"},
    {CauseKind::recompute, "torchtitan",
     "[activation_checkpoint] mode = \"selective\" or \"none\""},
    {CauseKind::recompute, "hf", "gradient_checkpointing=False"},
    {CauseKind::data_loader, "megatron", "--num-workers, --dataloader-type"},
    {CauseKind::data_loader, "hf", "dataloader_num_workers, dataloader_prefetch_factor"},
    {CauseKind::host_pause, "megatron", "--manual-gc --manual-gc-interval 100"},
    {CauseKind::host_pause, "torchtitan", "[training] gc_freq"},
    {CauseKind::stalls, "megatron", "--async-save, --save-interval, --eval-interval"},
    {CauseKind::stalls, "torchtitan", "[checkpoint] async_mode = \"async\", interval"},
    {CauseKind::stalls, "hf", "save_steps, eval_steps"},
    {CauseKind::host_bound, "megatron", "--cuda-graph-impl, CUDA_DEVICE_MAX_CONNECTIONS=1"},
    {CauseKind::host_bound, "torchtitan", "[compile] enable = true"},
    {CauseKind::host_bound, "hf", "torch_compile=True"},
    {CauseKind::stage_imbalance, "megatron",
     "--decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers"},
    {CauseKind::expert_imbalance, "megatron",
     "--moe-aux-loss-coeff, --moe-router-enable-expert-bias"},
    {CauseKind::slow_attention, "megatron", "--attention-backend flash"},
    {CauseKind::slow_attention, "hf", "attn_implementation=\"flash_attention_2\""},
    {CauseKind::fp32_products, "hf", "bf16=True, tf32=True"},
    {CauseKind::fp32_products, "megatron", "--bf16"},
};

}  // namespace

const CauseWords& words_of(CauseKind kind) {
  const CauseWords& found = cause_words[static_cast<std::size_t>(kind)];
  ensures(found.kind == kind, "causes stand in their order");
  return found;
}

std::string_view word_of(Surety surety) {
  constexpr std::string_view all[] = {"sure", "likely", "possible"};
  return all[static_cast<std::size_t>(surety)];
}

std::string milliseconds(double seconds) { return fmt::format("{:.1f} ms", 1e3 * seconds); }

std::string setting_of(CauseKind kind, std::string_view framework) {
  for (const Setting& setting : framework_settings)
    if (setting.kind == kind && framework.starts_with(setting.framework))
      return std::string(setting.text);
  return {};
}

}  // namespace stepcast::validate
