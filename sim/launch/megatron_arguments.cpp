// Arguments of pretrain_gpt.py. Names were read in NVIDIA/Megatron-LM: megatron/arguments.py at
// 00129014 (2022) and megatron/training/arguments.py at 000c4ac2 (2025, of core 0.15), and for
// Megatron-DeepSpeed in microsoft/Megatron-DeepSpeed: examples_deepspeed/rebase/
// ds_pretrain_gpt_1.3B.sh at 77ecb167 and pretrain_llama2_distributed.sh at b644fba3. What only the
// last of them has is written for releases from there on.
#include "sim/launch/megatron_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/launch/argument_text.hpp"
#include "sim/launch/forms.hpp"
#include "workloads/plan/rank_parameters.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recipe;
using workloads::Recompute;

using Release = MegatronRelease;
constexpr Release year_2022{2022, 0};  // sequence parallelism, selective recompute: b83477a3
constexpr Release core = megatron_core;

bool is_deepspeed(const Scenario& s) { return is_megatron_deepspeed(s); }
bool before(const Scenario& s, Release release) { return megatron_release(s) < release; }
std::string named(const Scenario& s) { return framework_and_version(s); }

/// Whether the release of Megatron's core has an argument; older ones and DeepSpeed's have none of
/// what is asked here.
bool has(const Scenario& s, std::string_view argument) {
  return s.software.framework == "megatron-core" && ArgumentText(s).has(argument);
}

/// zero2 and zero3 of Megatron's own FSDP, which wants no CUDA_DEVICE_MAX_CONNECTIONS=1.
bool runs_megatron_fsdp(const Scenario& s) {
  return s.software.data.use_megatron_fsdp &&
         (s.plan.data == DataParallel::zero2 || s.plan.data == DataParallel::zero3);
}

bool middle_is_equal(const std::vector<std::int64_t>& layers) {
  return std::adjacent_find(layers.begin() + 1, layers.end() - 1, std::not_equal_to<>()) ==
         layers.end() - 1;
}

constexpr Refusal megatron_refusals[] = {
    {[](const Scenario& s) { return asks_gpipe(s); },
     [](const Scenario& s) { return named(s) + " runs 1f1b, not gpipe"; }},
    {[](const Scenario& s) { return s.plan.context > 1 && (is_deepspeed(s) || before(s, core)); },
     [](const Scenario& s) { return named(s) + " has no --context-parallel-size"; }},
    {[](const Scenario& s) {
       return s.plan.sequence_parallel && s.plan.tensor > 1 &&
              (is_deepspeed(s) || before(s, year_2022));
     },
     [](const Scenario& s) { return named(s) + " has no --sequence-parallel"; }},
    {[](const Scenario& s) {
       return s.plan.recompute == Recompute::selective && (is_deepspeed(s) || before(s, year_2022));
     },
     [](const Scenario& s) { return named(s) + " has no selective recompute"; }},
    {[](const Scenario& s) { return s.plan.virtual_stages > 1 && is_deepspeed(s); },
     [](const Scenario& s) { return named(s) + " has no virtual stages"; }},
    {[](const Scenario& s) {
       return !s.stage_layers.empty() && !equal_parts(s) && is_deepspeed(s);
     },
     [](const Scenario& s) {
       return named(s) + " cuts the layers by its own rule, not by plan.stage_layers";
     }},
    {[](const Scenario& s) {
       return !equal_parts(s) && !is_deepspeed(s) && !has(s, "decoder-first-pipeline-num-layers");
     },
     [](const Scenario& s) {
       return fmt::format("{} cuts {} layers into {} equal parts alone", named(s), s.model.layers,
                          s.plan.parts());
     }},
    {[](const Scenario& s) {
       return !equal_parts(s) && !is_deepspeed(s) && !has(s, "pipeline-model-parallel-layout") &&
              (s.plan.virtual_stages > 1 || !middle_is_equal(part_layers(s)));
     },
     [](const Scenario& s) {
       return named(s) + " says first and last stage alone: no --pipeline-model-parallel-layout";
     }},
    {[](const Scenario& s) {
       return s.plan.data != DataParallel::ddp && s.plan.shards() < s.plan.copies() &&
              !has(s, "num-distributed-optimizer-instances");
     },
     [](const Scenario& s) {
       return named(s) + " shards over all data ranks: no plan.shard_degree";
     }},
    {[](const Scenario& s) {
       return s.plan.optimizer == workloads::Optimizer::muon && before(s, {2024, 16});
     },
     [](const Scenario& s) { return named(s) + " has no Muon: it came with core 0.16"; }},
    {[](const Scenario& s) { return s.model.objective == workloads::Objective::masked; },
     [](const Scenario&) { return std::string("BERT has a training script of its own"); }},
    {[](const Scenario& s) { return !megatron_model_refusal(s).empty(); }, megatron_model_refusal},
    {[](const Scenario& s) {
       return runs_megatron_fsdp(s) && !has(s, "use-custom-fsdp") && !has(s, "use-megatron-fsdp");
     },
     [](const Scenario& s) { return named(s) + " has no FSDP of its own: 0.12 is the first"; }},
};

std::string_view megatron_recipe(Recipe recipe) {
  switch (recipe) {
    case Recipe::none:
      break;
    case Recipe::fp8_delayed:
      return "delayed";
    case Recipe::fp8_current:
      return "tensorwise";
    case Recipe::fp8_block:
      return "blockwise";
    case Recipe::mxfp8:
      return "mxfp8";
    case Recipe::nvfp4:
      return "nvfp4";
  }
  throw BrokenPromise("no recipe of Megatron");
}

class MegatronArguments {
 public:
  explicit MegatronArguments(const Scenario& scenario) : s_(scenario), out_(scenario) {}

  ArgumentText write() {
    write_megatron_model(s_, out_);
    degrees();
    if (s_.model.experts.count > 0) experts();
    stages();
    data();
    recompute();
    precision();
    recipe();
    if (is_deepspeed(s_)) deepspeed();
    return std::move(out_);
  }

 private:
  void flag(std::string_view name) { out_.flag(name); }
  template <class T>
  void set(std::string_view name, const T& value) {
    out_.set(name, value);
  }
  void note(std::string text) { out_.notes.push_back(std::move(text)); }
  bool before(Release release) const { return sim::before(s_, release); }
  bool old() const { return is_deepspeed(s_) || before(core); }

  void degrees() {
    const auto& plan = s_.plan;
    set("tensor-model-parallel-size", plan.tensor);
    set("pipeline-model-parallel-size", plan.pipeline);
    if (!old()) set("context-parallel-size", plan.context);
    if (plan.sequence_parallel && plan.tensor > 1) flag("sequence-parallel");
    set("micro-batch-size", s_.batch.micro_batch);
    set("global-batch-size", s_.global_batch);
  }

  /// Of Megatron core's arguments.py, by name as of core 0.12 to 0.15 (recalled, 2026).
  void experts() {
    const auto& e = s_.model.experts;
    const auto& plan = s_.plan.expert;
    set("num-experts", e.count);
    set("moe-router-topk", e.per_token);
    set("moe-ffn-hidden-size", e.ffn);
    if (e.shared_ffn > 0) set("moe-shared-expert-intermediate-size", e.shared_ffn);
    if (e.shared_gate) flag("moe-shared-expert-gate");
    if (e.score == workloads::RouterScore::sigmoid) set("moe-router-score-function", "sigmoid");
    if (e.score_bias) flag("moe-router-enable-expert-bias");
    if (e.groups > 1) {
      set("moe-router-num-groups", e.groups);
      set("moe-router-group-topk", e.group_limit);
    }
    if (const std::string which = expert_frequency(s_); !which.empty())
      set("moe-layer-freq", "'" + which + "'");
    set("expert-model-parallel-size", plan.degree);
    set("expert-tensor-parallel-size", s_.plan.expert_tensor());
    dispatcher();
    flag("moe-grouped-gemm");
    if (plan.capacity_factor > 0.0) set("moe-expert-capacity-factor", plan.capacity_factor);
    if (plan.pad_to_capacity) flag("moe-pad-expert-input-to-capacity");
    if (plan.shared_overlap) flag("moe-shared-expert-overlap");
    if (plan.overlap) flag("overlap-moe-expert-parallel-comm");
    if (plan.delay_wgrad) flag("delay-wgrad-compute");
    if (s_.software.experts.fused_permute) flag("moe-permute-fusion");
    if (s_.software.experts.fused_router) flag("moe-router-fusion");
    if (s_.plan.routing.kind == workloads::RoutingKind::balanced)
      flag("moe-router-force-load-balancing");
    if (stated_routing(s_)) note(routing_note());
  }

  void dispatcher() {
    using enum workloads::Dispatcher;
    const workloads::Dispatcher kind = s_.plan.expert.dispatcher;
    const bool flex = kind == node_aware || kind == nvlink_domain;
    set("moe-token-dispatcher-type", flex ? "flex" : kind == all_gather ? "allgather" : "alltoall");
    if (!flex) return;
    if (out_.has("moe-enable-deepep") && kind == node_aware) return flag("moe-enable-deepep");
    set("moe-flex-dispatcher-backend", kind == node_aware ? "deepep" : "hybridep");
  }

  void recompute_modules() {
    set("recompute-granularity", "selective");
    set("recompute-modules", recompute_module_words(s_, " "));
  }

  void stages() {
    const auto& plan = s_.plan;
    if (plan.pipeline == 1 || is_deepspeed(s_)) return;
    const auto layers = part_layers(s_);
    if (!equal_parts(s_)) return uneven(layers);
    if (plan.virtual_stages == 1) return;
    if (old() || !out_.has("num-virtual-stages-per-pipeline-rank"))
      set("num-layers-per-virtual-pipeline-stage", layers.front());
    else
      set("num-virtual-stages-per-pipeline-rank", plan.virtual_stages);
  }

  void uneven(const std::vector<std::int64_t>& layers) {
    if (s_.plan.virtual_stages > 1 || !middle_is_equal(layers))
      return set("pipeline-model-parallel-layout", pipeline_layout(layers));
    const std::int64_t middle = layers.size() > 2 ? layers[1] : layers.back();
    if (layers.front() != middle) set("decoder-first-pipeline-num-layers", layers.front());
    if (layers.back() != middle) set("decoder-last-pipeline-num-layers", layers.back());
  }

  void data() {
    const auto& plan = s_.plan;
    if (is_deepspeed(s_)) return;
    if (plan.data != DataParallel::ddp) flag("use-distributed-optimizer");
    if (runs_megatron_fsdp(s_)) megatron_fsdp();
    if (plan.data != DataParallel::ddp && plan.shards() < plan.copies())
      set("num-distributed-optimizer-instances", plan.shard_replicas());
    if (before(core)) return;
    if (s_.software.data.gradient_overlap) flag("overlap-grad-reduce");
    if (s_.software.data.gather_overlap && plan.data != DataParallel::ddp)
      flag("overlap-param-gather");
    if (plan.tensor_overlap == workloads::TensorOverlap::userbuffers && plan.tensor > 1)
      flag("tp-comm-overlap");
    context_exchange();
    if (s_.software.loss.fused && out_.has("cross-entropy-loss-fusion"))
      flag("cross-entropy-loss-fusion");
    optimizer_offload();
    optimizer();
  }

  /// Adam is what it takes unasked; Muon from 0.16 on.
  void optimizer() {
    using enum workloads::Optimizer;
    if (s_.plan.optimizer == sgd) set("optimizer", "sgd");
    if (s_.plan.optimizer != muon) return;
    const bool owners = s_.plan.data != DataParallel::ddp && before({2024, 18});
    set("optimizer", owners ? "dist_muon" : "muon");
  }

  void context_exchange() {
    if (s_.plan.context > 1 && out_.has("cp-comm-type"))
      set("cp-comm-type", context_exchange_word(s_));
  }

  /// Megatron core 0.12 and later (recalled, 2026).
  void optimizer_offload() {
    const auto& offload = s_.plan.offload;
    if (offload.optimizer == 0.0) return;
    flag("optimizer-cpu-offload");
    set("optimizer-offload-fraction", offload.optimizer);
    if (offload.optimizer_overlap) flag("overlap-cpu-optimizer-d2h-h2d");
    if (s_.precision.moments != Dtype::bf16) flag("use-precision-aware-optimizer");
  }

  void megatron_fsdp() {
    flag(out_.has("use-custom-fsdp") ? "use-custom-fsdp" : "use-megatron-fsdp");
    set("data-parallel-sharding-strategy",
        s_.plan.data == DataParallel::zero3 ? "optim_grads_params" : "optim_grads");
    flag("no-gradient-accumulation-fusion");
    if (out_.has("use-megatron-fsdp")) out_.old_set("ckpt-format", "fsdp_dtensor");
  }

  void recompute() {
    if (!s_.plan.recompute_modules.empty()) return recompute_modules();
    if (s_.plan.recompute == Recompute::none) return;
    if (is_deepspeed(s_) || before(year_2022)) {
      flag("checkpoint-activations");
    } else if (s_.plan.recompute == Recompute::selective) {
      set("recompute-granularity", "selective");
      return;
    } else {
      full_recompute();
    }
    if (s_.plan.recompute_every > 1 && (is_deepspeed(s_) || before(year_2022)))
      note(fmt::format("plan.recompute_every = {}: it recomputes every layer.",
                       s_.plan.recompute_every));
  }

  void full_recompute() {
    const std::int64_t every = s_.plan.recompute_every;
    const std::int64_t most = std::ranges::max(part_layers(s_));
    set("recompute-granularity", "full");
    const std::int64_t layers = (most + every - 1) / every;
    set("recompute-method", layers < most ? "block" : "uniform");
    set("recompute-num-layers", layers < most ? layers : 1);
    if (every > 1) note(first_layers_note(s_));
  }

  void precision() {
    const Dtype compute = s_.precision.compute, reduce = s_.precision.gradient_reduce;
    const bool half = compute == Dtype::bf16 || compute == Dtype::fp16;
    if (compute == Dtype::bf16) flag("bf16");
    if (compute == Dtype::fp16) flag("fp16");
    if (is_deepspeed(s_)) return;
    if (half && reduce == Dtype::fp32) return flag("accumulate-allreduce-grads-in-fp32");
    if (compute == Dtype::bf16 && reduce == compute && !old() && out_.has("grad-reduce-in-bf16"))
      return flag("grad-reduce-in-bf16");
    const Dtype summed = compute == Dtype::fp16 ? Dtype::fp16 : Dtype::fp32;
    if (reduce != summed) note(other_reduction(s_, summed));
    if (compute == Dtype::bf16 && reduce != summed) flag("accumulate-allreduce-grads-in-fp32");
  }

  /// Read in public scripts of 2025 and 2026 that call pretrain_gpt.py; delayed scaling is the
  /// oldest recipe, and what --fp8-format alone means.
  void recipe() {
    const workloads::Precision& p = s_.precision;
    if (p.moments == Dtype::bf16) {
      flag("use-precision-aware-optimizer");
      set("exp-avg-dtype", "bf16");
      set("exp-avg-sq-dtype", "bf16");
    }
    if (p.recipe == Recipe::none) return;
    const bool four = p.recipe == Recipe::nvfp4;
    const bool mixed = p.recipe == Recipe::fp8_delayed || p.recipe == Recipe::fp8_current;
    set(four ? "fp4-format" : "fp8-format", four ? "e2m1" : mixed ? "hybrid" : "e4m3");
    if (p.recipe != Recipe::fp8_delayed)
      set(four ? "fp4-recipe" : "fp8-recipe", megatron_recipe(p.recipe));
    if (p.fp8_parameters) flag(four ? "fp4-param-gather" : "fp8-param-gather");
    if (p.bf16_first_layers + p.bf16_last_layers > 0) {
      flag("first-last-layers-bf16");
      set("num-layers-at-start-in-bf16", p.bf16_first_layers);
      set("num-layers-at-end-in-bf16", p.bf16_last_layers);
    }
  }

  void deepspeed() {
    flag("deepspeed");
    out_.old_set("deepspeed_config", "deepspeed.json");
    set("zero-stage", zero_stage(s_.plan.data));
    if (s_.plan.pipeline == 1) out_.old_flag("no-pipeline-parallel");
    if (s_.plan.recompute == Recompute::full) out_.old_flag("deepspeed-activation-checkpointing");
  }

  const Scenario& s_;
  ArgumentText out_;
};

}  // namespace

std::int64_t zero_stage(DataParallel data) { return static_cast<std::int64_t>(data); }

std::string pipeline_layout(const std::vector<std::int64_t>& layers) {
  std::string out = "E";
  for (std::size_t i = 0; i < layers.size(); ++i)
    out += (i > 0 ? "|" : "") + std::string(static_cast<std::size_t>(layers[i]), 't');
  return out + "L";
}

Launch megatron_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, megatron_refusals);
  if (!out.why_not.empty()) return out;
  ArgumentText arguments = MegatronArguments(s).write();
  out.notes = std::move(arguments.notes);
  const auto common =
      is_deepspeed(s) ? common_notes(s, {"software.gradient_overlap", "software.ddp_bucket_bytes"})
                      : common_notes(s, {"software.gradient_overlap", "software.gather_overlap",
                                         "software.use_megatron_fsdp", "software.permute_fused",
                                         "software.router_fused", "software.fused_loss",
                                         "software.context_exchange"});
  out.notes.insert(out.notes.end(), common.begin(), common.end());
  const bool one_connection =
      !runs_megatron_fsdp(s) && !s.plan.expert.overlap && (s.plan.tensor > 1 || s.plan.context > 1);
  out.files.push_back({"megatron.args", std::move(arguments.text),
                       (one_connection ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "") +
                           torchrun(s, "pretrain_gpt.py $(cat megatron.args)")});
  return out;
}

}  // namespace stepcast::sim
