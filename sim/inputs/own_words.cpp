#include "sim/inputs/own_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/launch/other_words.hpp"
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

/// What FSDP has no word for.
bool by_deepspeed(const Scenario& s) {
  const bool offloads = s.plan.offload.optimizer > 0 && s.software.framework == "deepspeed";
  return s.plan.data == DataParallel::zero1 || offloads;
}

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
                           {"", number(plan.context), plan.context == 1},
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
    out.push_back({"megatron_recompute",
                   full                                     ? "full"
                   : plan.recompute == Recompute::selective ? "selective"
                                                            : "none",
                   plan.recompute == Recompute::none});
    if (s.model.experts.count == 0) return out;
    using enum workloads::Dispatcher;
    const auto kind = plan.expert.dispatcher;
    out.push_back({"expert_tensor", number(plan.expert_tensor()), true});
    out.push_back({"dispatcher",
                   kind == all_to_all   ? "alltoall"
                   : kind == all_gather ? "allgather"
                                        : "flex",
                   kind == all_to_all});
    return out;
  }
  out.push_back({"recompute", true_or_false(full), true});
  out.push_back({"recompute_off", true_or_false(!full), true});
  const bool sharded = plan.data == DataParallel::zero2 || plan.data == DataParallel::zero3;
  const bool by_fsdp = sharded && !by_deepspeed(s);
  const DataMesh mesh = by_fsdp ? data_mesh(s) : DataMesh{};
  const bool whole = plan.data == DataParallel::zero3;
  out.push_back({"fsdp", whole ? "full_shard auto_wrap" : "shard_grad_op auto_wrap", !by_fsdp});
  out.push_back({"fsdp_version", "2", !by_fsdp});
  out.push_back({"reshard", true_or_false(whole), !by_fsdp});
  out.push_back({"offload_states", true_or_false(plan.offload.optimizer > 0), !by_fsdp});
  out.push_back({"shard", number(mesh.shard), mesh.replicate == 1 || !by_fsdp});
  out.push_back({"replicate", number(mesh.replicate), mesh.replicate == 1 || !by_fsdp});
  return out;
}

/// `about` empty: context ranks, by how they exchange keys and values.
std::string name_for(WordTables tables, std::string_view about, const Scenario& s) {
  if (about.empty()) {
    const bool heads = s.software.attention.exchange == workloads::ContextExchange::all_to_all;
    for (const char* one : {heads ? "ulysses" : "ring", "context"})
      if (const std::string name = name_for(tables, one, s); !name.empty()) return name;
    return "";
  }
  for (const LaunchWords& words : tables)
    for (const LaunchWord& word : words)
      if (word.use == Use::read && word.key == about && word.until == 0)
        return std::string(word.name);
  return "";
}

/// The one of two ways to shard that the plan does not take, said to be none: what a file says
/// of it would stand beside the other.
std::string left_out(const Scenario& s, LaunchWords own) {
  const bool fsdp = s.plan.data != DataParallel::ddp && !by_deepspeed(s);
  if (fsdp) return "deepspeed: null\n";
  std::string out = by_deepspeed(s) ? "deepspeed: deepspeed.json\n" : "deepspeed: null\n";
  out += "fsdp: null\nfsdp_config: null\n";
  for (const char* name : {"fsdp_version", "dp_shard_size", "dp_replicate_size"})
    if (std::ranges::find(own, std::string_view(name), &LaunchWord::name) != own.end())
      out += std::string(name) + ": null\n";
  return out;
}

std::string sequence_word(LaunchWords own) {
  const auto found = std::ranges::find_if(own, [](const LaunchWord& word) {
    return word.use == Use::count && word.key == "model.sequence";
  });
  expects(found != own.end(), "a stack with a word for the longest sequence");
  return std::string(found->name);
}

Launch trainer_words_of(const Scenario& s, LaunchWords own, const std::string& file,
                        bool megatron) {
  Launch out;
  const bool swift = own.data() == swift_words().data();
  if (!megatron && s.plan.recompute != Recompute::full && s.plan.recompute != Recompute::none)
    out.why_not = "gradient_checkpointing is of all layers or none";
  if (!out.why_not.empty()) return out;
  const LaunchWords tables[] = {own, trainer_words()};
  std::string text = fmt::format("{}: {}\n", sequence_word(own), s.batch.sequence), nested;
  constexpr std::string_view silent[] = {"recompute", "recompute_off", "bits", "bits4",
                                         "accumulation"};
  for (const auto& [about, value, usual] : meanings_of(s, megatron)) {
    const bool said = !usual || megatron || about.starts_with("recompute");
    const bool other = (about == "fsdp" && own.data() == axolotl_words().data()) ||
                       (about == "recompute" && !name_for({&own, 1}, "recompute_off", s).empty());
    if (!said || other) continue;
    const WordTables known(tables, megatron ? 1 : 2);
    // Context ranks of its Trainer exchange heads, those of Megatron have another word.
    const bool heads = swift && !megatron && about.empty();
    const std::string name = name_for(known, heads ? "ulysses" : about, s);
    if (name.empty()) {
      const bool lost = !usual && std::ranges::find(silent, about) == std::end(silent);
      if (lost && out.why_not.empty())
        out.why_not =
            fmt::format("{} = {} has no word there", about.empty() ? "context" : about, value);
    } else if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      nested += fmt::format("  {}: {}\n", name.substr(dot + 1), value);
    } else {
      text += fmt::format("{}: {}\n", name, value);
    }
  }
  if (!out.why_not.empty()) return out;
  if (!nested.empty()) text += "fsdp_config:\n" + nested;
  if (!megatron && !swift) text += left_out(s, own);
  out.files.push_back({file, text, "laid over your own configuration"});
  if (megatron || swift || !by_deepspeed(s)) return out;
  Launch json = deepspeed_launch(s);
  out.why_not = json.why_not;
  if (json.files.empty()) return out.files.clear(), out;
  json.files[0].use = "beside it";
  out.files.push_back(std::move(json.files[0]));
  return out;
}

/// ms-swift has configurations of DeepSpeed by name, in place of FSDP.
std::string with_own_deepspeed(const Scenario& s, std::string text) {
  if (const std::size_t fsdp = text.find("fsdp: "); fsdp != std::string::npos) text.resize(fsdp);
  const bool off = s.plan.offload.optimizer > 0;
  if (s.plan.data == DataParallel::ddp) return text;
  return text +
         fmt::format("deepspeed: zero{}{}\n", zero_stage(s.plan.data), off ? "_offload" : "");
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

constexpr Refusal verl_refusals[] = {
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.plan.tensor * s.plan.pipeline > 1;
     },
     [](const Scenario&) {
       return std::string("verl has tensor and pipeline degrees over Megatron alone");
     }},
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.plan.copies() > 1 &&
              s.plan.data != DataParallel::zero2 && s.plan.data != DataParallel::zero3;
     },
     [](const Scenario&) {
       return std::string("verl's FSDP shards gradients as well: zero2 or zero3");
     }},
    {[](const Scenario& s) {
       return s.software.framework != "megatron-core" && s.plan.recompute != Recompute::full &&
              s.plan.recompute != Recompute::none;
     },
     [](const Scenario&) {
       return std::string("enable_gradient_checkpointing is of all layers or none");
     }},
    {[](const Scenario& s) { return s.plan.pipeline > 1 && !equal_parts(s); },
     [](const Scenario&) { return std::string("plan.stage_layers has no words of verl here"); }},
};

/// KEY=VALUE; "++": over a key or beside those that its files have.
class VerlWords {
 public:
  explicit VerlWords(const Scenario& scenario) : s_(scenario) {}

  std::string text() {
    actor("ppo_micro_batch_size_per_gpu", s_.batch.micro_batch);
    // What is taken instead where use_dynamic_bsz is on.
    const std::int64_t split = megatron() ? 1 : s_.plan.context;
    actor("ppo_max_token_len_per_gpu",
          (s_.batch.micro_batch * s_.batch.sequence + split - 1) / split);
    if (megatron())
      by_megatron();
    else
      by_fsdp();
    return out_;
  }

 private:
  template <class T>
  void set(const std::string& name, const T& value) {
    const bool open = name.find(".override_") != std::string::npos;
    out_ +=
        fmt::format("{}{}={}\n", open ? "++" : "", written_word(verl_words(), name).name, value);
  }
  template <class T>
  void actor(const std::string& name, const T& value) {
    set("actor_rollout_ref.actor." + name, value);
  }
  bool megatron() const { return s_.software.framework == "megatron-core"; }
  static const char* python(bool value) { return value ? "True" : "False"; }

  void by_megatron() {
    const auto& plan = s_.plan;
    const std::string table = "megatron.", layers = table + "override_transformer_config.";
    actor(table + "tensor_model_parallel_size", plan.tensor);
    actor(table + "pipeline_model_parallel_size", plan.pipeline);
    actor(table + "virtual_pipeline_model_parallel_size",
          plan.virtual_stages > 1 ? number(plan.virtual_stages) : "null");
    actor(table + "context_parallel_size", plan.context);
    if (plan.tensor > 1) actor(table + "sequence_parallel", python(plan.sequence_parallel));
    actor(table + "use_distributed_optimizer", python(plan.data != DataParallel::ddp));
    if (plan.context > 1) actor(layers + "cp_comm_type", context_exchange_word(s_));
    if (s_.model.experts.count > 0) experts(table, layers);
    recompute(layers);
    const std::string optimizer = "optim.override_optimizer_config.";
    const double share = plan.offload.optimizer;
    actor(optimizer + "optimizer_cpu_offload", python(share > 0));
    if (share == 0) return;
    actor(optimizer + "optimizer_offload_fraction", share);
    actor(optimizer + "overlap_cpu_optimizer_d2h_h2d", python(plan.offload.optimizer_overlap));
  }

  void experts(const std::string& table, const std::string& layers) {
    using enum workloads::Dispatcher;
    const auto kind = s_.plan.expert.dispatcher;
    const bool flex = kind == node_aware || kind == nvlink_domain;
    actor(table + "expert_model_parallel_size", s_.plan.expert.degree);
    actor(table + "expert_tensor_parallel_size", s_.plan.expert_tensor());
    actor(layers + "moe_token_dispatcher_type", flex                 ? "flex"
                                                : kind == all_gather ? "allgather"
                                                                     : "alltoall");
    if (flex)
      actor(layers + "moe_flex_dispatcher_backend", kind == node_aware ? "deepep" : "hybridep");
    actor(layers + "moe_shared_expert_overlap", python(s_.plan.expert.shared_overlap));
  }

  void recompute(const std::string& layers) {
    const bool full = s_.plan.recompute == Recompute::full;
    const bool parts = !s_.plan.recompute_modules.empty();
    const bool some = parts || s_.plan.recompute == Recompute::selective;
    actor(layers + "recompute_granularity", full ? "full" : some ? "selective" : "null");
    if (full) {
      actor(layers + "recompute_method", "uniform");
      actor(layers + "recompute_num_layers", 1);
    } else if (some) {
      actor(layers + "recompute_modules",
            "[" + (parts ? recompute_module_words(s_, ",") : std::string("core_attn")) + "]");
    }
  }

  void by_fsdp() {
    const bool second = !s_.software.data.fsdp1();
    const bool part = s_.plan.data != DataParallel::ddp && s_.plan.shards() < s_.plan.copies();
    actor("strategy", second ? "fsdp2" : "fsdp");
    actor("ulysses_sequence_parallel_size", s_.plan.context);
    actor("fsdp_config.reshard_after_forward", python(s_.plan.data != DataParallel::zero2));
    actor("fsdp_config.fsdp_size", part ? s_.plan.shards() : -1);
    if (second) actor("fsdp_config.offload_policy", python(s_.plan.offload.optimizer > 0));
    set("actor_rollout_ref.model.enable_gradient_checkpointing",
        python(s_.plan.recompute == Recompute::full));
  }

  const Scenario& s_;
  std::string out_;
};

Launch verl_words_of(const Scenario& s) {
  Launch out;
  out.why_not = refused(s, verl_refusals);
  if (!out.why_not.empty()) return out;
  out.notes.push_back(
      fmt::format("{} sequences an update are ppo_mini_batch_size x rollout.n of your own command.",
                  s.global_batch));
  out.files.push_back(
      {"verl.overrides", VerlWords(s).text(), "behind your own command: $(cat verl.overrides)"});
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
  if (out.files.empty()) return out;
  std::string& text = out.files[0].text;
  if (!megatron) text = with_own_deepspeed(s, text);
  text = swift_arguments(text);
  return out;
}

std::string deepspeed_over(std::string_view theirs, std::string_view plan) {
  nlohmann::ordered_json out = parsed_ordered_json(theirs);
  for (const LaunchWord& word : deepspeed_words()) {
    if (word.use == Use::ignored || word.use == Use::unsaid) continue;
    std::string path = "/" + std::string(word.name);
    std::ranges::replace(path, '.', '/');
    const nlohmann::ordered_json::json_pointer at(path), table = at.parent_pointer();
    if (out.contains(at) && out[table].is_object()) out[table].erase(at.back());
    // A device without its other words is none.
    if (word.name.ends_with(".device") && out.contains(table))
      out[table.parent_pointer()].erase(table.back());
  }
  out.merge_patch(parsed_ordered_json(plan));
  return json_text(out, 2) + "\n";
}

}  // namespace stepcast::sim
