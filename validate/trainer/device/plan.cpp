#include "validate/trainer/device/plan.hpp"

#include "engine/check.hpp"

namespace stepcast::validate {
namespace {

using workloads::ParallelPlan;
using workloads::TransformerShape;

std::size_t elements(std::int64_t count) { return static_cast<std::size_t>(count); }

void refuse(bool wrong, const std::string& where, const std::string& what,
            const std::string& hint) {
  if (wrong) throw InputError(where, "the trainer " + what, hint);
}

void check_model(const TransformerShape& m, const std::string& where) {
  refuse(m.norm != workloads::Norm::rmsnorm || m.activation != workloads::Activation::swiglu ||
             !m.rope || m.biases,
         where, "trains Llama-like models only",
         "norm = \"rmsnorm\", activation = \"swiglu\", rope = true, biases = false");
  refuse(m.head_dim % 2 != 0, where, "turns pairs of a head's elements", "take an even head_dim");
}

void check_plan(const TrainerJob& job, const std::string& where) {
  const ParallelPlan& p = job.plan;
  refuse(p.data == workloads::DataParallel::zero1, where, "has no zero1",
         "take ddp, zero2 or zero3");
  refuse(p.virtual_stages > 1 || p.context > 1, where, "has no virtual stages and cuts no sequence",
         "virtual_stages = 1, context = 1");
  refuse(p.shard_replicas() > 1, where, "shards over all replicas", "leave out shard_degree");
  refuse(p.reduce != workloads::ReduceWhen::last, where, "reduces gradients once per step",
         "reduce = \"last\"");
  refuse(p.tensor > job.model.kv_heads, where, "does not copy kv heads",
         "take a tensor degree of at most kv_heads");
  const bool sharded = p.data != workloads::DataParallel::ddp;
  refuse(sharded && job.model.hidden % p.data_degree != 0, where,
         "cuts every parameter tensor in equal shards",
         "take a data degree that divides the hidden size");
}

void check_software(const TrainerJob& job, const std::string& where) {
  const workloads::Software& s = job.software;
  refuse(job.plan.recompute_every != 1, where, "recomputes every layer or none",
         "leave recompute_every out");
  refuse(s.fusion != workloads::Fusion::own || s.products.packed || !s.recompute_stops ||
             s.data.flat_parameters != workloads::FlatParameters::fsdp2 ||
             s.data.reduce_copy_compute ||
             s.optimizer.kernel != workloads::OptimizerKernel::fused || s.tensor.overlap ||
             s.pipeline.sync || s.data.autocast || s.data.gradient_overlap,
         where, "does what software \"stepcast-trainer\" or \"stepcast-trainer-cuda\" says",
         "leave the values of that software");
  const workloads::Precision& p = job.precision;
  refuse(p.compute == workloads::Dtype::tf32 || p.compute == workloads::Dtype::fp8, where,
         "computes in fp32 on the host, in bf16 or fp16 on a GPU", "change precision.compute");
  refuse(p.gradient_reduce != workloads::Dtype::fp32, where, "sums gradients in fp32",
         "gradient_reduce = \"fp32\"");
  refuse(p.loss_scaling != (p.compute == workloads::Dtype::fp16), where,
         "scales the loss for fp16 alone", "leave loss_scaling out");
}

}  // namespace

TrainerJob job_of(const sim::Scenario& s) {
  TrainerJob job{s.model, s.plan, s.batch, s.precision, s.software, {}};
  job.learning.seed = s.run.seed;
  return job;
}

void check(const TrainerJob& job, const std::string& where) {
  workloads::check(job.model, job.plan, job.batch, where);
  check_model(job.model, where);
  check_plan(job, where);
  check_software(job, where);
}

RankShare::RankShare(const TrainerJob& job, std::int64_t rank)
    : tokens(elements(job.batch.micro_batch * job.batch.sequence)),
      local_tokens(tokens),
      hidden(elements(job.model.hidden)),
      at(workloads::coordinates_of(job.plan, rank)),
      layers(workloads::layers_of_part(job.model.layers, job.plan, at.pipeline)),
      first_layer(0),
      first_stage(at.pipeline == 0),
      last_stage(at.pipeline == job.plan.pipeline - 1),
      split(job.plan.tensor > 1),
      sequence_parallel(split && job.plan.sequence_parallel),
      has_root(first_stage || last_stage),
      parameters(workloads::stage_parameters(job.model, job.plan, false, at.pipeline)) {
  if (sequence_parallel) local_tokens = tokens / elements(job.plan.tensor);
  for (std::int64_t stage = 0; stage < at.pipeline; ++stage)
    first_layer += workloads::layers_of_part(job.model.layers, job.plan, stage);
  const workloads::RankWidths widths(job.model, job.plan.tensor);
  query = elements(widths.query);
  kv = elements(widths.kv);
  ffn = elements(widths.ffn);
  vocab = {at.tensor * widths.vocab, widths.vocab};
  attention = {.batch = job.batch.micro_batch,
               .sequence = job.batch.sequence,
               .heads = widths.heads,
               .kv_heads = widths.kv_heads,
               .head_dim = job.model.head_dim,
               .causal = true};
}

}  // namespace stepcast::validate
