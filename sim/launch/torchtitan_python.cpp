// torchtitan since 2026: a module of Python with one function that changes fields of the nearest
// one of a registry, because the kind of recompute and the cut of stages have no words on its
// command line. Fields and since when: torchtitan_words.cpp; models/*/__init__.py and distributed/
// activation_checkpoint.py were read at b5bcd76 (2026-08).
#include <fmt/format.h>

#include <algorithm>

#include "sim/launch/forms.hpp"
#include "sim/launch/torchtitan_registry.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recipe;
using workloads::Recompute;

constexpr Refusal python_refusals[] = {
    {[](const Scenario& s) { return registered_model(s.model.name) == nullptr; },
     [](const Scenario& s) { return "torchtitan of 2026 has no model like " + s.model.name; }},
    {[](const Scenario& s) {
       return s.plan.recompute == Recompute::full && s.plan.recompute_every > 1;
     },
     [](const Scenario&) {
       return std::string("torchtitan of 2026 recomputes every layer or operators of each");
     }},
    // models/common/moe_sharding.py: experts lie on ranks of their own, or are cut as all else.
    {[](const Scenario& s) {
       return s.model.experts.count > 0 && s.plan.expert.degree > 1 && s.plan.expert_tensor() > 1;
     },
     [](const Scenario&) {
       return std::string(
           "torchtitan of 2026 cuts no expert between tensor ranks beside expert ranks: "
           "expert_tensor = 1");
     }},
    {[](const Scenario& s) {
       return s.model.experts.count > 0 && s.plan.expert.degree == 1 &&
              s.plan.expert_tensor() != s.plan.tensor;
     },
     [](const Scenario&) {
       return std::string(
           "torchtitan of 2026 cuts experts between all tensor ranks where they have none of "
           "their own: expert_tensor");
     }},
};

std::string python_bool(bool value) { return value ? "True" : "False"; }

std::string converter_of(Recipe recipe) {
  if (recipe == Recipe::mxfp8) return "MXFP8LinearConverter";
  if (recipe == Recipe::nvfp4) return "NVFP4LinearConverter";
  return "Float8LinearConverter";
}

class PythonModule {
 public:
  PythonModule(const Scenario& scenario, const RegisteredModel& model) : s_(scenario), m_(model) {}

  std::string text() {
    body();
    std::string out = imports_;
    out += fmt::format("from torchtitan.models.{} import model_registry\n", m_.module);
    out += fmt::format("from torchtitan.models.{}.config_registry import {}\n\n\n", m_.module,
                       m_.function);
    out += fmt::format("def stepcast_plan():\n    config = {}()\n", m_.function);
    return out + body_ + "    return config\n";
  }

 private:
  template <class T>
  void set(std::string_view field, const T& value) {
    body_ +=
        fmt::format("    config.{} = {}\n", written_word(torchtitan_words(), field).name, value);
  }
  void word(std::string_view field, std::string_view value) {
    set(field, fmt::format("\"{}\"", value));
  }

  void body() {
    model();
    training();
    degrees();
    if (s_.plan.pipeline > 1) stages();
    recompute();
    set("compile.enable", python_bool(s_.software.compiled()));
    if (std::ranges::count(s_.changed, "software.loss_chunks") > 0)
      set("loss.num_chunks", s_.software.loss.chunks);
    if (s_.plan.tensor_overlap == workloads::TensorOverlap::async_tp)
      set("compile.enable_async_tensor_parallel", "True");
  }

  void model() {
    std::string arguments = fmt::format("\"{}\"", m_.flavor);
    if (s_.model.experts.count > 0) arguments += ", moe_comm_backend=\"" + backend() + "\"";
    if (s_.precision.recipe != Recipe::none) {
      const std::string name = converter_of(s_.precision.recipe);
      imports_ += "from torchtitan.components.quantization import " + name + "\n";
      arguments += fmt::format(", converters=[{}.Config()]", name);
    }
    set("model_spec", "model_registry(" + arguments + ")");
  }

  std::string backend() const {
    using enum workloads::Dispatcher;
    const auto kind = s_.plan.expert.dispatcher;
    return kind == node_aware ? "deepep" : kind == nvlink_domain ? "hybridep" : "standard";
  }

  void training() {
    set("training.max_context_length", s_.batch.sequence);
    set("training.num_tokens_per_microbatch_per_dp_rank", s_.batch.micro_batch * s_.batch.sequence);
    set("training.num_tokens_per_train_step", s_.global_batch * s_.batch.sequence);
    word("training.mixed_precision_param", torch_dtype(s_.precision.compute));
    word("training.mixed_precision_reduce", "float32");
  }

  void degrees() {
    const DataMesh mesh = data_mesh(s_);
    set("parallelism.data_parallel_replicate_degree", mesh.replicate);
    set("parallelism.data_parallel_shard_degree", mesh.shard);
    set("parallelism.tensor_parallel_degree", s_.plan.tensor);
    set("parallelism.context_parallel_degree", s_.plan.context);
    set("parallelism.pipeline_parallel_degree", s_.plan.pipeline);
    if (s_.plan.tensor > 1)
      set("parallelism.enable_sequence_parallel", python_bool(s_.plan.sequence_parallel));
    if (s_.plan.data != DataParallel::ddp && mesh.shard * s_.plan.context > 1)
      word("parallelism.fsdp_reshard_after_forward",
           s_.plan.data == DataParallel::zero3 ? "always" : "never");
    if (s_.model.experts.count == 0) return;
    set("parallelism.expert_parallel_degree", s_.plan.expert.degree);
    if (s_.plan.routing.kind == workloads::RoutingKind::balanced)
      set("debug.moe_force_load_balance", "True");
  }

  void stages() {
    set("parallelism.num_pp_microbatches", s_.batch.micro_batches);
    if (s_.plan.schedule == workloads::Schedule::listed)
      word("parallelism.pipeline_parallel_schedule_csv", s_.plan.orders.list->file);
    else
      word("parallelism.pipeline_parallel_schedule", schedule());
    std::string parts;
    std::int64_t layer = 0;
    const auto layers = part_layers(s_);
    for (std::size_t part = 0; part < layers.size(); ++part) {
      std::string names = part == 0 ? "\"tok_embeddings\"" : "";
      for (std::int64_t i = 0; i < layers[part]; ++i, ++layer)
        names += (names.empty() ? "" : ", ") + fmt::format("\"layers.{}\"", layer);
      if (part + 1 == layers.size()) names += ", \"norm\", \"lm_head\"";
      parts += "        [" + names + "],\n";
    }
    set("parallelism.module_fqns_per_model_part", "[\n" + parts + "    ]");
  }

  std::string schedule() const {
    if (const std::string torch = torch_schedule(s_.plan.schedule); !torch.empty()) return torch;
    if (s_.plan.schedule == workloads::Schedule::gpipe) return "GPipe";
    return s_.plan.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B";
  }

  void recompute() {
    const bool full = s_.plan.recompute == Recompute::full;
    const bool operators = operators_again(s_.plan, s_.software);
    if (!full && !operators) return set("activation_checkpoint", "None");
    const std::string kind = full ? "FullAC" : "SelectiveAC";
    imports_ += "from torchtitan.distributed.activation_checkpoint import " + kind + "\n";
    set("activation_checkpoint", kind + ".Config()");
  }

  const Scenario& s_;
  const RegisteredModel& m_;
  std::string imports_, body_;
};

std::vector<std::string> python_notes(const Scenario& s) {
  std::vector<std::string> out;
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  if (s.model.tied_embeddings && registered_model(s.model.name)->module == "qwen3_5")
    out.emplace_back("model.tied_embeddings: torchtitan's qwen3_5 has a head of its own.");
  if (s.precision.fp8_parameters)
    out.emplace_back("precision.fp8_parameters is not said: the converter's own field has it.");
  if (s.precision.gradient_reduce != Dtype::fp32) out.push_back(other_reduction(s, Dtype::fp32));
  if (stated_routing(s)) out.push_back(routing_note());
  if (s.model.mtp_layers > 0) out.emplace_back("model.mtp_layers: its models have none.");
  for (std::string& note : common_notes(s, {"software.fusion", "software.loss_chunks"}))
    out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch torchtitan_python_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, python_refusals);
  if (!out.why_not.empty()) return out;
  out.notes = python_notes(s);
  out.files.push_back({"stepcast_plan.py", PythonModule(s, *registered_model(s.model.name)).text(),
                       "PYTHONPATH=. " + torchrun(s,
                                                  "-m torchtitan.train --module stepcast_plan "
                                                  "--config stepcast_plan")});
  return out;
}

}  // namespace stepcast::sim
