#include "sim/inputs/own_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/scenario/model_members.hpp"

namespace stepcast::sim {
namespace {

using workloads::DataParallel;
using workloads::Recompute;

/// What the words of trainer_words.cpp mean (Use::read), as this plan has it. `usual`: nothing is
/// lost where a stack has no word for it.
struct Meaning {
  std::string_view about;
  std::string value;
  bool usual;
};

std::string number(std::int64_t value) { return std::to_string(value); }

std::string projections(const Scenario& s) {
  std::string out;
  for (const auto& [name, target] : lora_target_names)
    if (s.model.lora.targets.has(target))
      out += (out.empty() ? "" : ", ") + std::string(name) + "_proj";
  return "[" + out + "]";
}

bool half_type(const Scenario& s) { return s.precision.compute == workloads::Dtype::bf16; }

std::vector<Meaning> meanings_of(const Scenario& s, bool megatron) {
  const auto& plan = s.plan;
  const bool full = plan.recompute == Recompute::full, adapted = s.model.lora.rank > 0;
  const bool four = s.model.lora.base == workloads::LoraBase::nf4 ||
                    s.model.lora.base == workloads::LoraBase::nf4_double;
  std::vector<Meaning> out{{"micro", number(s.batch.micro_batch), false},
                           {"accumulation", number(s.batch.micro_batches), megatron},
                           {"bf16", true_or_false(half_type(s)), half_type(s)},
                           {"tensor", number(plan.tensor), plan.tensor == 1},
                           {"pipeline", number(plan.pipeline), plan.pipeline == 1},
                           {"ring", number(plan.context), true},
                           {"expert", number(plan.expert.degree), plan.expert.degree == 1},
                           {"virtual", number(plan.virtual_stages), plan.virtual_stages == 1},
                           {"lora_rank", number(s.model.lora.rank), !adapted},
                           {"lora_targets", projections(s), true},
                           {"bits4", "true", !four},
                           {"bits", "4", !four}};
  if (megatron) {
    out.push_back({"global", number(s.global_batch), false});
    out.push_back({"zero1", true_or_false(plan.data == DataParallel::zero1), true});
    out.push_back({"sequence_parallel", true_or_false(plan.sequence_parallel), plan.tensor == 1});
    out.push_back(
        {"megatron_recompute", full ? "full" : "selective", plan.recompute == Recompute::none});
    return out;
  }
  const DataMesh mesh = data_mesh(s);
  out.push_back({"recompute", true_or_false(full), true});
  out.push_back({"recompute_off", true_or_false(!full), true});
  const bool sharded = plan.data == DataParallel::zero2 || plan.data == DataParallel::zero3;
  out.push_back({"fsdp_version", "2", !sharded});
  out.push_back({"reshard", true_or_false(plan.data == DataParallel::zero3), !sharded});
  out.push_back({"shard", number(mesh.shard), mesh.replicate == 1 || !sharded});
  out.push_back({"replicate", number(mesh.replicate), mesh.replicate == 1 || !sharded});
  return out;
}

std::string name_for(WordTables tables, std::string_view about) {
  for (const LaunchWords& words : tables)
    for (const LaunchWord& word : words)
      if (word.use == Use::read && word.key == about) return std::string(word.name);
  return "";
}

Launch trainer_words_of(const Scenario& s, LaunchWords own, const std::string& file,
                        bool megatron) {
  Launch out;
  const LaunchWords tables[] = {own, trainer_words()};
  std::string text, nested;
  for (const auto& [about, value, usual] : meanings_of(s, megatron)) {
    const bool trivial = usual && (about != "recompute" && about != "recompute_off");
    if (trivial) continue;
    const std::string name = name_for(megatron ? WordTables(tables, 1) : WordTables(tables), about);
    const bool says_nothing = about == "recompute" || about == "recompute_off" || about == "bits" ||
                              about == "bits4" || about == "accumulation";
    if (name.empty()) {
      if (!says_nothing)
        out.notes.push_back(fmt::format("{} = {} has no word there.", about, value));
    } else if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      nested += fmt::format("  {}: {}\n", name.substr(dot + 1), value);
    } else {
      text += fmt::format("{}: {}\n", name, value);
    }
  }
  if (!nested.empty()) text += "fsdp_config:\n" + nested;
  out.files.push_back({file, text, "laid over your own configuration"});
  return out;
}

std::string swift_arguments(const std::string& yaml) {
  std::string out;
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
    std::string line = yaml.substr(at, end - at);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos)
      out += "--" + line.substr(0, colon) + " " + line.substr(colon + 2) + "\n";
    at = end + 1;
  }
  return out;
}

Launch verl_words_of(const Scenario& s) {
  Launch out;
  const bool megatron = s.software.framework == "megatron-core";
  std::string text;
  const auto set = [&](std::string_view name, const auto& value) {
    text += fmt::format("actor_rollout_ref.actor.{}={}\n", name, value);
  };
  set("ppo_micro_batch_size_per_gpu", s.batch.micro_batch);
  if (megatron) {
    set("megatron.tensor_model_parallel_size", s.plan.tensor);
    set("megatron.pipeline_model_parallel_size", s.plan.pipeline);
    set("megatron.context_parallel_size", s.plan.context);
    if (s.model.experts.count > 0) {
      set("megatron.expert_model_parallel_size", s.plan.expert.degree);
      set("megatron.expert_tensor_parallel_size", s.plan.expert_tensor());
    }
    if (s.plan.recompute != Recompute::none)
      set("megatron.override_transformer_config.recompute_granularity",
          s.plan.recompute == Recompute::full ? "full" : "selective");
  } else {
    set("strategy", s.software.data.fsdp1() ? "fsdp" : "fsdp2");
    set("ulysses_sequence_parallel_size", s.plan.context);
    set("fsdp_config.reshard_after_forward", s.plan.data == DataParallel::zero3 ? "True" : "False");
    if (s.plan.data != DataParallel::ddp && s.plan.shards() < s.plan.copies())
      set("fsdp_config.fsdp_size", s.plan.shards());
    text += fmt::format("actor_rollout_ref.model.enable_gradient_checkpointing={}\n",
                        s.plan.recompute == Recompute::full ? "True" : "False");
    if (s.plan.tensor * s.plan.pipeline > 1)
      out.why_not = "verl has tensor and pipeline degrees over Megatron alone";
  }
  if (!out.why_not.empty()) return out;
  out.files.push_back({"verl.overrides", text, "behind your own command: $(cat verl.overrides)"});
  return out;
}

}  // namespace

Launch own_words_of(const Scenario& s, std::string_view stack) {
  const bool megatron = s.software.framework == "megatron-core";
  if (stack == "verl") return verl_words_of(s);
  if (stack == "axolotl") return trainer_words_of(s, axolotl_words(), "axolotl.yaml", false);
  if (stack == "llama-factory")
    return trainer_words_of(s, llama_factory_words(), "llama_factory.yaml", megatron);
  expects(stack == "swift", "a stack that is told in its own words");
  Launch out = trainer_words_of(s, swift_words(), "swift.args", megatron);
  std::string& text = out.files[0].text;
  if (const std::size_t nested = text.find("fsdp_config:"); nested != std::string::npos) {
    text.resize(nested);
    out.notes.emplace_back("How states are sharded is --deepspeed's to say, or --fsdp's.");
  }
  text = swift_arguments(text);
  return out;
}

}  // namespace stepcast::sim
