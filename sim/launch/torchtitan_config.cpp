// torchtitan's TOML of 2024 and 2025. Names and since when: torchtitan_words.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "sim/files/toml_value.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/torchtitan_registry.hpp"
#include "sim/launch/words.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Dtype;
using workloads::Recompute;

/// Degrees stand under [training] and [experimental]; no accumulation, no choice of resharding.
bool of_2024(const Scenario& s) { return s.software.version == "2024"; }

/// Without pipeline stages parameters are resharded after forward, with them never: "default".
DataParallel usual_sharding(const Scenario& s) {
  return s.plan.pipeline > 1 ? DataParallel::zero2 : DataParallel::zero3;
}

constexpr Refusal torchtitan_refusals[] = {
    {[](const Scenario& s) { return !mesh_refusal(s).empty(); },
     [](const Scenario& s) { return mesh_refusal(s); }},
    {[](const Scenario& s) { return asks_gpipe(s) && s.plan.pipeline == 1; },
     [](const Scenario&) {
       return std::string("torchtitan has schedules of pipeline stages alone");
     }},
    {[](const Scenario& s) { return asks_gpipe(s) && s.plan.virtual_stages > 1; },
     [](const Scenario&) { return std::string("GPipe has one part of the model on each stage"); }},
    {not_torch_schedule, torch_schedule_refusal},
    {[](const Scenario& s) { return s.precision.compute == Dtype::fp16; },
     [](const Scenario&) { return std::string("torchtitan trains in bfloat16 or float32"); }},
    {[](const Scenario& s) {
       return s.plan.recompute == Recompute::selective && !operators_again(s.plan, s.software);
     },
     [](const Scenario&) {
       return std::string("torchtitan recomputes by operators, not the attention core");
     }},
    {[](const Scenario& s) {
       return of_2024(s) && s.plan.pipeline == 1 && s.batch.micro_batches > 1;
     },
     [](const Scenario&) {
       return std::string("torchtitan of 2024 has no gradient accumulation: take one micro-batch");
     }},
    {[](const Scenario& s) {
       return of_2024(s) && s.plan.data != DataParallel::ddp && s.plan.data != usual_sharding(s);
     },
     [](const Scenario& s) {
       return "torchtitan of 2024 reshards parameters after forward without pipeline stages alone: "
              "that is " +
              std::string(workloads::name_of(usual_sharding(s)));
     }},
};

bool has_experts(const Scenario& s) { return s.model.experts.count > 0; }

bool by_nccl(const Scenario& s) {
  return s.plan.expert.dispatcher == workloads::Dispatcher::all_to_all;
}

/// job_config.py says the first two; that of DeepEP is raised by parallelize.py of its models.
constexpr Refusal torchtitan_expert_refusals[] = {
    {[](const Scenario& s) {
       const std::int64_t tensor = s.plan.expert_tensor();
       return has_experts(s) && tensor != 1 && tensor != s.plan.tensor;
     },
     [](const Scenario&) {
       return std::string("torchtitan's expert_tensor is 1 or the tensor degree");
     }},
    {[](const Scenario& s) {
       return has_experts(s) && s.plan.expert.degree > 1 && s.plan.expert_tensor() == 1 &&
              s.plan.expert.degree % (s.plan.context * s.plan.tensor) != 0;
     },
     [](const Scenario& s) {
       return fmt::format("torchtitan's expert degree is a multiple of context x tensor, {}",
                          s.plan.context * s.plan.tensor);
     }},
    {[](const Scenario& s) { return has_experts(s) && !by_nccl(s) && s.plan.expert_tensor() > 1; },
     [](const Scenario& s) {
       return fmt::format("torchtitan's dispatcher \"{}\" has no expert_tensor",
                          name_of(s.plan.expert.dispatcher));
     }},
    {[](const Scenario& s) {
       return s.plan.expert.capacity_factor > 0 || s.plan.expert.pad_to_capacity;
     },
     [](const Scenario&) { return std::string("torchtitan drops no token: no capacity_factor"); }},
    {[](const Scenario& s) { return s.plan.expert.shared_overlap; },
     [](const Scenario&) {
       return std::string("torchtitan has no word for shared_expert_overlap");
     }},
};

TomlValue toml_count(std::int64_t value) { return {value, {}}; }
TomlValue word(std::string text) { return toml_text(std::move(text), {}); }
TomlValue yes_or_no(bool value) { return {value, {}}; }

/// A key of the table of words, so that the reader knows it.
void set_key(TomlValue& out, const std::string& name, TomlValue value) {
  set_path(out, std::string(written_word(torchtitan_words(), name).name), std::move(value));
}

/// Of 2024 it has Llama 3 alone.
TomlModel known_model(const Scenario& s) {
  const TomlModel out = toml_model(s.model.name);
  return of_2024(s) && out.module != "llama3" ? TomlModel{} : out;
}

/// "llama3-70b" is flavor 70B of model llama3.
void set_model(const Scenario& s, TomlValue& out) {
  const std::string& name = s.model.name;
  if (const TomlModel known = known_model(s); !known.model.empty()) {
    set_key(out, "model.name", word(std::string(known.module)));
    return set_key(out, "model.flavor", word(std::string(known.flavor)));
  }
  const std::size_t dash = name.find('-');
  std::string flavor = dash == std::string::npos ? name : name.substr(dash + 1);
  std::ranges::transform(flavor, flavor.begin(), [](unsigned char c) { return std::toupper(c); });
  set_key(out, "model.name", word(name.substr(0, dash)));
  set_key(out, "model.flavor", word(flavor));
}

/// "layers.4": where each part but the first begins.
TomlValue split_points(const Scenario& s) {
  TomlValue::Array out;
  std::int64_t first = 0;
  for (const std::int64_t layers : part_layers(s)) {
    if (first > 0) out.push_back(word(fmt::format("layers.{}", first)));
    first += layers;
  }
  return {std::move(out), {}};
}

/// The modules of each part, all of them.
TomlValue modules_of_parts(const Scenario& s) {
  TomlValue::Array out;
  const auto parts = part_layers(s);
  std::int64_t layer = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    TomlValue::Array names;
    if (part == 0) names.push_back(word("tok_embeddings"));
    for (std::int64_t i = 0; i < parts[part]; ++i, ++layer)
      names.push_back(word(fmt::format("layers.{}", layer)));
    if (part + 1 == parts.size())
      for (const char* last : {"norm", "output"}) names.push_back(word(last));
    out.push_back({std::move(names), {}});
  }
  return {std::move(out), {}};
}

std::string schedule_of(const Scenario& s) {
  if (const std::string torch = torch_schedule(s.plan.schedule); !torch.empty()) return torch;
  if (s.plan.schedule == workloads::Schedule::gpipe) return of_2024(s) ? "gpipe" : "GPipe";
  if (s.plan.virtual_stages > 1) return of_2024(s) ? "interleaved_1f1b" : "Interleaved1F1B";
  return of_2024(s) ? "1f1b" : "1F1B";
}

/// Points are named one by one: what layers_per_stage says counts embedding and head as layers.
void set_stages(const Scenario& s, TomlValue& out) {
  const std::string table = of_2024(s) ? "experimental." : "parallelism.";
  set_key(out, table + "pipeline_parallel_degree", toml_count(s.plan.pipeline));
  set_key(out, table + "context_parallel_degree", toml_count(s.plan.context));
  if (s.plan.pipeline == 1) return;
  if (s.plan.schedule == workloads::Schedule::listed)
    set_key(out, table + "pipeline_parallel_schedule_csv", word(s.plan.orders.list->file));
  else
    set_key(out, table + "pipeline_parallel_schedule", word(schedule_of(s)));
  if (of_2024(s)) {
    set_key(out, table + "pipeline_parallel_split_points", split_points(s));
    set_key(out, table + "pipeline_parallel_microbatches", toml_count(s.batch.micro_batches));
  } else {
    set_key(out, table + "module_fqns_per_model_part", modules_of_parts(s));
    set_key(out, table + "pipeline_parallel_microbatch_size", toml_count(s.batch.micro_batch));
  }
}

/// What one replica of the pipeline is handed at once: all micro-batches of its stages.
std::int64_t local_batch_size(const Scenario& s) {
  return s.batch.micro_batch * (s.plan.pipeline > 1 ? s.batch.micro_batches : 1);
}

void set_training(const Scenario& s, TomlValue& out) {
  const bool old = of_2024(s);
  set_key(out, "training.seq_len", toml_count(s.batch.sequence));
  set_key(out, old ? "training.batch_size" : "training.local_batch_size",
          toml_count(local_batch_size(s)));
  if (!old) set_key(out, "training.global_batch_size", toml_count(s.global_batch));
  set_key(out, "training.mixed_precision_param", word(torch_dtype(s.precision.compute)));
  set_key(out, "training.mixed_precision_reduce", word("float32"));
  if (old) set_key(out, "training.compile", yes_or_no(s.software.compiled()));
}

void set_degrees(const Scenario& s, TomlValue& out) {
  const std::string table = of_2024(s) ? "training." : "parallelism.";
  const DataMesh mesh = data_mesh(s);
  set_key(out, table + "data_parallel_replicate_degree", toml_count(mesh.replicate));
  set_key(out, table + "data_parallel_shard_degree", toml_count(mesh.shard));
  set_key(out, table + "tensor_parallel_degree", toml_count(s.plan.tensor));
  if (!of_2024(s) && s.plan.data != DataParallel::ddp && mesh.shard * s.plan.context > 1)
    set_key(out, "parallelism.fsdp_reshard_after_forward",
            word(s.plan.data == DataParallel::zero3 ? "always" : "never"));
  if (s.plan.tensor_overlap == workloads::TensorOverlap::async_tp)
    set_key(out,
            (of_2024(s) ? "experimental." : "parallelism.") +
                std::string("enable_async_tensor_parallel"),
            yes_or_no(true));
  set_stages(s, out);
}

void set_experts(const Scenario& s, TomlValue& out) {
  if (!has_experts(s)) return;
  const bool deepep = s.plan.expert.dispatcher == workloads::Dispatcher::node_aware;
  set_key(out, "parallelism.expert_parallel_degree", toml_count(s.plan.expert.degree));
  set_key(out, "parallelism.expert_tensor_parallel_degree", toml_count(s.plan.expert_tensor()));
  set_key(out, "parallelism.expert_parallel_comm_backend",
          word(by_nccl(s) ? "standard"
               : deepep   ? "deepep"
                          : "hybridep"));
  if (s.plan.routing.kind == workloads::RoutingKind::balanced)
    set_key(out, "debug.moe_force_load_balance", yes_or_no(true));
}

/// "selective" with a number recomputes every n-th layer in full.
void set_recompute(const Scenario& s, TomlValue& out) {
  const bool some = s.plan.recompute == Recompute::full && s.plan.recompute_every > 1;
  const bool selective = operators_again(s.plan, s.software);
  set_key(out, "activation_checkpoint.mode",
          word(some || selective                     ? "selective"
               : s.plan.recompute == Recompute::full ? "full"
                                                     : "none"));
  if (some || selective)
    set_key(out, "activation_checkpoint.selective_ac_option",
            word(some ? std::to_string(s.plan.recompute_every) : "op"));
}

/// torchao's converters of linear layers (torchtitan docs/float8.md, read 2026-11). The head is
/// among them unless it is filtered.
void set_recipe(const Scenario& s, TomlValue& out) {
  const workloads::Recipe recipe = s.precision.recipe;
  if (recipe == workloads::Recipe::none) return;
  const TomlValue narrow = yes_or_no(s.precision.fp8_parameters);
  const TomlValue head{TomlValue::Array{word("output")}, {}};
  const bool mx = recipe == workloads::Recipe::mxfp8;
  const std::string table = of_2024(s) ? "float8."
                            : mx       ? "quantize.linear.mx."
                                       : "quantize.linear.float8.";
  if (of_2024(s))
    set_key(out, "float8.enable_float8_linear", yes_or_no(true));
  else
    set_key(out, "model.converters",
            {TomlValue::Array{word(table.substr(0, table.size() - 1))}, {}});
  if (mx) {
    set_key(out, table + "recipe_name", word("mxfp8_cublas"));
  } else {
    set_key(out, table + "enable_fsdp_float8_all_gather", narrow);
    set_key(out, table + "precompute_float8_dynamic_scale_for_fsdp", narrow);
  }
  if (!of_2024(s)) set_key(out, table + "filter_fqns", head);
}

std::vector<std::string> torchtitan_notes(const Scenario& s) {
  std::vector<std::string> out;
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  if (s.plan.tensor > 1 && !s.plan.sequence_parallel)
    out.emplace_back(
        "torchtitan's tensor ranks always cut the sequence: sequence_parallel = true.");
  if (s.precision.gradient_reduce != Dtype::fp32) out.push_back(other_reduction(s, Dtype::fp32));
  if (known_model(s).model.empty())
    out.push_back(s.model.name + " must be made known to torchtitan (train_spec) first.");
  if (stated_routing(s)) out.push_back(routing_note());
  for (std::string& note : common_notes(s, {"software.fusion"})) out.push_back(std::move(note));
  return out;
}

}  // namespace

Launch torchtitan_launch(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, torchtitan_refusals);
  if (out.why_not.empty()) out.why_not = refused(s, torchtitan_expert_refusals);
  if (!out.why_not.empty()) return out;
  if (s.software.version == "2026") return torchtitan_python_launch(s);
  TomlValue file = toml_table({});
  set_model(s, file);
  set_training(s, file);
  set_degrees(s, file);
  set_experts(s, file);
  set_recompute(s, file);
  set_recipe(s, file);
  if (!of_2024(s)) set_key(file, "compile.enable", yes_or_no(s.software.compiled()));
  out.notes = torchtitan_notes(s);
  out.files.push_back(
      {"torchtitan.toml", write_toml(file),
       torchrun(s, of_2024(s) ? "train.py --job.config_file torchtitan.toml"
                              : "-m torchtitan.train --job.config_file torchtitan.toml")});
  return out;
}

}  // namespace stepcast::sim
