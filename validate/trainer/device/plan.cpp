#include "validate/trainer/device/plan.hpp"

#include <algorithm>
#include <cmath>

#include "engine/check.hpp"
#include "workloads/plan/model_size.hpp"

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
  refuse(m.latent.kv_rank > 0 || m.qkv_biases || m.qk_norm || m.window > 0 || m.sinks ||
             m.mtp_layers > 0,
         where, "knows attention of whole rows without biases, norms or sinks, and one next token",
         "leave latent attention, qkv_biases, qk_norm, window, sinks and mtp_layers out");
  if (const char* what = workloads::attention_beyond_llama(m))
    refuse(true, where, std::string("does not train ") + what, "a model like Llama, with experts");
  refuse(m.head_dim % 2 != 0, where, "turns pairs of a head's elements", "take an even head_dim");
}

void check_plan(const TrainerJob& job, const std::string& where) {
  const ParallelPlan& p = job.plan;
  refuse(p.schedule != workloads::Schedule::gpipe && p.schedule != workloads::Schedule::one_f_one_b,
         where, "runs gpipe and 1f1b, plain or interleaved", "change schedule");
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

/// What of experts the trainer has.
void check_experts(const TrainerJob& job, const std::string& where) {
  const workloads::ExpertShape& m = job.model.experts;
  const ParallelPlan& p = job.plan;
  const workloads::ExpertPlan& e = p.expert;
  refuse(e.degree > 1 && m.count == 0, where, "has no experts to share in a dense model",
         "expert = 1");
  if (m.count == 0) return;
  refuse(m.per_token < 1 || m.per_token > m.count || m.ffn < 1, where,
         "sends a token to one expert at least, and to each once",
         "experts_per_token from 1 to experts, expert_ffn of 1 or more");
  refuse(m.shared_ffn > 0 || m.biases || m.score_bias || m.groups > 1, where,
         "has experts that are chosen, by their scores alone",
         "leave shared experts, biases and groups of experts out");
  refuse(p.tensor > 1 || p.expert_tensor() > 1, where, "cuts no layer of experts by tensor ranks",
         "tensor = 1, expert_tensor = 1");
  refuse(p.data == workloads::DataParallel::zero2 || p.data == workloads::DataParallel::zero3,
         where, "gathers no experts from shards", "data = \"ddp\" or \"zero1\"");
  refuse(p.shard_degree != 0, where, "shards experts over all their copies",
         "leave shard_degree out");
  refuse(m.count % e.degree != 0 || p.data_degree % e.degree != 0, where,
         "gives ranks of the data degree equally many experts",
         "take an expert degree that divides experts and the data degree");
  refuse(e.dispatcher != workloads::Dispatcher::all_to_all, where, "exchanges tokens by all-to-all",
         "dispatcher = \"all_to_all\"");
  refuse(e.pad_to_capacity && e.capacity_factor <= 0, where, "pads to a capacity it has to know",
         "give capacity_factor");
  refuse(e.shared_overlap || e.overlap || e.delay_wgrad || !p.recompute_modules.empty(), where,
         "does one thing of a layer of experts after the other, and recomputes it whole",
         "leave overlap of experts and recompute_modules out");
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
  check_experts(job, where);
  check_software(job, where);
}

namespace {

/// Rows of each expert, as Megatron core's moe_utils.py get_capacity() has it.
std::int64_t capacity_of(const TrainerJob& job, std::size_t chosen) {
  const double mean = static_cast<double>(chosen) / static_cast<double>(job.model.experts.count);
  return static_cast<std::int64_t>(std::ceil(mean * job.plan.expert.capacity_factor));
}

/// A token's k experts may all be here.
ExpertShare expert_share(const TrainerJob& job, std::int64_t rank, std::size_t tokens) {
  const workloads::ExpertShape& model = job.model.experts;
  const std::size_t all = elements(model.count), k = elements(model.per_token);
  ExpertShare share;
  share.choice = {.experts = model.count,
                  .per_token = model.per_token,
                  .sigmoid = model.score == workloads::RouterScore::sigmoid,
                  .capacity = capacity_of(job, tokens * k),
                  .padded = job.plan.expert.pad_to_capacity};
  share.ranks = elements(job.plan.expert.degree);
  share.rank = elements(rank) % share.ranks;
  share.here = all / share.ranks;
  share.copies = elements(job.plan.expert_copies());
  share.copy = elements(rank) / share.ranks % share.copies;
  share.ffn = elements(model.ffn);
  share.rows_out = tokens * k;
  share.rows_in = share.ranks * tokens * std::min(k, share.here);
  const std::size_t room = all * elements(share.choice.capacity);
  if (room == 0) return share;
  share.rows_out = share.choice.padded ? room : std::min(share.rows_out, room);
  share.rows_in = share.choice.padded ? room : std::min(share.rows_in, room);
  return share;
}

}  // namespace

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
  if (job.model.experts.count > 0) experts = expert_share(job, rank, tokens);
}

std::int64_t RankShare::layer_of_unit(std::size_t unit) const {
  const std::size_t layer = layer_here(unit);
  for (const ChunkShare& chunk : chunks)
    if (layer < chunk.first_here + chunk.layers)
      return chunk.first_layer + static_cast<std::int64_t>(layer - chunk.first_here);
  throw BrokenPromise("a layer of this rank");
}

bool RankShare::has_experts(std::size_t unit) const {
  return parameters.kinds.at(parameters.kind_of.at(layer_here(unit))).kind.experts();
}

const workloads::ParameterTensors& RankShare::tensors_of(std::size_t unit) const {
  return has_root && unit == 0 ? parameters.root : parameters.layer(layer_here(unit));
}

}  // namespace stepcast::validate
