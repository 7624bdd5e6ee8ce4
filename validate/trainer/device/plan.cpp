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
  refuse(p.context > 1, where, "cuts no sequence: it has no context parallelism", "context = 1");
  refuse(p.reduce != workloads::ReduceWhen::last, where, "reduces gradients once per step",
         "reduce = \"last\"");
  refuse(p.tensor > job.model.kv_heads, where, "does not copy kv heads",
         "take a tensor degree of at most kv_heads");
  const bool sharded = p.data != workloads::DataParallel::ddp;
  refuse(sharded && job.model.hidden % p.shards() != 0, where,
         "cuts every parameter tensor in equal shards",
         "take a data or shard degree that divides the hidden size");
}

void check_software(const TrainerJob& job, const std::string& where) {
  const workloads::Software& s = job.software;
  refuse(job.plan.recompute_every != 1, where, "recomputes every layer or none",
         "leave recompute_every out");
  refuse(s.fusion != workloads::Fusion::own || s.products.packed || !s.recompute_stops ||
             s.data.flat_parameters != workloads::FlatParameters::fsdp2 ||
             s.data.reduce_copy_compute ||
             s.optimizer.kernel != workloads::OptimizerKernel::fused || s.tensor.overlap ||
             s.pipeline.sync || !s.pipeline.interleaved_overlap || s.data.autocast ||
             s.data.gather_overlap,
         where, "does what software \"stepcast-trainer\", or \"-lanes\" or \"-cuda\" of it, says",
         "leave the values of that software");
  const workloads::Precision& p = job.precision;
  refuse(p.compute == workloads::Dtype::tf32 || p.compute == workloads::Dtype::fp8, where,
         "computes in fp32 on the host, in bf16 or fp16 on a GPU", "change precision.compute");
  refuse(p.recipe != workloads::Recipe::none || p.moments != workloads::Dtype::fp32, where,
         "computes in one precision and keeps its moments in fp32",
         "leave recipe and moments out of [precision]");
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
      first_stage(at.pipeline == 0),
      last_stage(at.pipeline == job.plan.pipeline - 1),
      shards(elements(job.plan.shards())),
      shard(elements(at.data) % shards),
      split(job.plan.tensor > 1),
      sequence_parallel(split && job.plan.sequence_parallel),
      has_root(first_stage || last_stage),
      parameters(
          workloads::stage_parameters(job.model, job.plan, job.precision, false, at.pipeline)) {
  if (sequence_parallel) local_tokens = tokens / elements(job.plan.tensor);
  std::int64_t before = 0;
  for (std::int64_t part = 0; part < job.plan.parts(); ++part) {
    const std::int64_t here = workloads::layers_of_part(job.model.layers, job.plan, part);
    if (part % job.plan.pipeline == at.pipeline) {
      chunks.push_back({.layers = elements(here),
                        .first_here = layers,
                        .first_layer = before,
                        .first = part == 0,
                        .last = part == job.plan.parts() - 1});
      layers += elements(here);
    }
    before += here;
  }
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

std::int64_t RankShare::layer_of_unit(std::size_t unit) const {
  const std::size_t layer = layer_here(unit);
  for (const ChunkShare& chunk : chunks)
    if (layer < chunk.first_here + chunk.layers)
      return chunk.first_layer + static_cast<std::int64_t>(layer - chunk.first_here);
  throw BrokenPromise("a layer of this rank");
}

}  // namespace stepcast::validate
