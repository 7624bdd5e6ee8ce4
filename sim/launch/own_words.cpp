#include "sim/launch/own_words.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/launch/forms.hpp"
#include "sim/launch/megatron_arguments.hpp"
#include "sim/launch/own_word_forms.hpp"
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

bool computes_in(const Scenario& s, workloads::Dtype type) { return s.precision.compute == type; }

/// transformers' and axolotl's word for an optimizer of that form; Adam's where it is asked for.
std::string optimizer_word(const Scenario& s, bool muon_has_own) {
  using enum workloads::Optimizer;
  const auto form = s.plan.optimizer;
  return form == adam_8bit               ? "adamw_bnb_8bit"
         : form == adafactor             ? "adafactor"
         : form == sgd                   ? "sgd"
         : form == muon && !muon_has_own ? "muon"
                                         : "adamw_torch";
}

/// Context ranks, by how they exchange keys and values, among the tables' words.
constexpr std::string_view context_ranks = "context ranks";

std::vector<Meaning> meanings_of(const Scenario& s, bool megatron, bool pure) {
  using enum workloads::Dtype;
  const auto& plan = s.plan;
  const bool full = plan.recompute == Recompute::full, adapted = s.model.lora.rank > 0;
  const bool four = s.model.lora.base == workloads::LoraBase::nf4 ||
                    s.model.lora.base == workloads::LoraBase::nf4_double;
  const bool eight = s.model.lora.base == workloads::LoraBase::int8;
  std::vector<Meaning> out{{"micro", number(s.batch.micro_batch), false},
                           {"accumulation", number(s.batch.micro_batches), megatron},
                           {"bf16", true_or_false(computes_in(s, bf16) && !pure), true},
                           {"fp16", true_or_false(computes_in(s, fp16)), !computes_in(s, fp16)},
                           {"tensor", number(plan.tensor), plan.tensor == 1},
                           {"pipeline", number(plan.pipeline), plan.pipeline == 1},
                           {context_ranks, number(plan.context), plan.context == 1},
                           {"expert", number(plan.expert.degree), plan.expert.degree == 1},
                           {"virtual", number(plan.virtual_stages), plan.virtual_stages == 1},
                           {"lora_rank", number(s.model.lora.rank), !adapted},
                           {"lora_targets", projections(s), !adapted},
                           {"lora_all", "false", !adapted},
                           {"bits4", "true", !four},
                           {"bits8", "true", !eight},
                           {"bits", four ? "4" : "8", !four && !eight}};
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

std::string name_for(WordTables tables, std::string_view about, const Scenario& s) {
  if (about == context_ranks) {
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

/// How it trains: adapters alone, or all weights, which half of the stacks do only where it is
/// said.
std::string adapter_words(const Scenario& s, LaunchWords own) {
  const bool on = s.model.lora.rank > 0;
  if (own.data() != axolotl_words().data())
    return fmt::format("{}: {}\n", name_for({&own, 1}, "adapted", s), on ? "lora" : "full");
  const bool four = s.model.lora.base == workloads::LoraBase::nf4 ||
                    s.model.lora.base == workloads::LoraBase::nf4_double;
  return fmt::format("adapter: {}\n{}",
                     !on    ? "null"
                     : four ? "qlora"
                            : "lora",
                     on && four ? "" : "load_in_4bit: false\n");
}

/// The optimizer's line; `why_not` where there is none.
std::string optimizer_words(const Scenario& s, LaunchWords own, WordTables tables, bool states,
                            std::string& why_not) {
  using enum workloads::Optimizer;
  const bool muon_is_on = s.plan.optimizer == muon;
  const std::string of_muon = name_for(tables, "muon", s);
  const bool by_name = own.data() == axolotl_words().data();
  std::string out;
  if (!of_muon.empty()) out += fmt::format("{}: {}\n", of_muon, true_or_false(muon_is_on));
  if (s.plan.optimizer == adam && !states) return out;
  if (tables.size() == 1 || (muon_is_on && of_muon.empty() && !by_name)) {
    if (s.plan.optimizer != adam)
      why_not = fmt::format("plan.optimizer = {} has no word there",
                            word_for(optimizer_form_names, s.plan.optimizer));
    return out;
  }
  return out + fmt::format("{}: {}\n", name_for(tables, "optimizer", s),
                           optimizer_word(s, !of_muon.empty()));
}

Launch trainer_words_of(const Scenario& s, LaunchWords own, const std::string& file, bool megatron,
                        bool states_optimizer) {
  Launch out;
  const bool swift = own.data() == swift_words().data();
  if (!megatron && !recomputes_all_or_none(s))
    out.why_not = "gradient_checkpointing is of all layers or none";
  if (!out.why_not.empty()) return out;
  const LaunchWords tables[] = {own, trainer_words()};
  std::string text = fmt::format("{}: {}\n", sequence_word(own), s.batch.sequence), nested;
  const bool says_pure = !name_for({&own, 1}, "pure_bf16", s).empty() && !megatron;
  const bool pure = says_pure && computes_in(s, workloads::Dtype::bf16) && !s.precision.masters;
  text += adapter_words(s, own);
  if (says_pure) text += fmt::format("pure_bf16: {}\n", true_or_false(pure));
  const WordTables known(tables, megatron ? 1 : 2);
  text += optimizer_words(s, own, known, states_optimizer, out.why_not);
  constexpr std::string_view silent[] = {"lora_all", "recompute", "recompute_off", "bits",
                                         "bits4",    "bits8",     "accumulation"};
  for (const auto& [about, value, usual] : meanings_of(s, megatron, pure)) {
    const bool always = about.starts_with("recompute") || about == "bf16" || about == "fp16";
    const bool of_adapters = about.starts_with("bits") || about.starts_with("lora");
    const bool said = !usual || always || (megatron && !of_adapters);
    const bool other = (about == "fsdp" && own.data() == axolotl_words().data()) ||
                       (about == "recompute" && !name_for({&own, 1}, "recompute_off", s).empty());
    if (!said || other) continue;
    // Context ranks of its Trainer exchange heads, those of Megatron have another word.
    const bool heads = swift && !megatron && about == context_ranks;
    const WordTables here = about.starts_with("bits") ? WordTables(tables, 1) : known;
    const std::string name = name_for(here, heads ? "ulysses" : about, s);
    if (name.empty()) {
      const bool lost = !usual && std::ranges::find(silent, about) == std::end(silent);
      if (lost && out.why_not.empty())
        out.why_not = fmt::format("{} = {} has no word there", about, value);
    } else if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
      nested += fmt::format("  {}: {}\n", name.substr(dot + 1), value);
    } else {
      text += fmt::format("{}: {}\n", name, value);
    }
  }
  if (!out.why_not.empty()) return out;
  if (!nested.empty()) text += "fsdp_config:\n" + nested;
  if (!megatron && !swift) text += left_out(s, own);
  const bool wide = megatron || s.plan.data == DataParallel::ddp;
  const auto summed = !swift && by_deepspeed(s) ? s.precision.gradient_reduce  // its JSON says it
                      : wide && !pure           ? workloads::Dtype::fp32
                                                : s.precision.compute;
  out.notes = notes_on(s, summed, says_pure);
  out.files.push_back({file, text, "laid over your own configuration"});
  if (!megatron && !swift && by_deepspeed(s)) add_deepspeed_file(s, out);
  return out;
}

/// ms-swift has configurations of DeepSpeed by name, in place of FSDP.
std::string with_own_deepspeed(const Scenario& s, std::string text) {
  if (const std::size_t fsdp = text.find("fsdp: "); fsdp != std::string::npos) text.resize(fsdp);
  // An argument cannot be taken back: its stage 0 shards nothing.
  const bool off = s.plan.offload.optimizer > 0;
  return text +
         fmt::format("deepspeed: zero{}{}\n", zero_stage(s.plan.data), off ? "_offload" : "");
}

std::string swift_arguments(const std::string& yaml) {
  std::string out;
  for (std::size_t at = 0; at < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', at), yaml.size());
    std::string line = yaml.substr(at, end - at);
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      std::string value = line.substr(colon + 2);  // a list is several words there
      std::erase_if(value, [](char c) { return c == '[' || c == ']' || c == ','; });
      out += "--" + line.substr(0, colon) + " " + value + "\n";
    }
    at = end + 1;
  }
  return out;
}

}  // namespace

bool by_deepspeed(const Scenario& s) {
  const bool offloads = s.plan.offload.optimizer > 0 && s.software.framework == "deepspeed";
  return s.plan.data == DataParallel::zero1 || offloads;
}

void add_deepspeed_file(const Scenario& s, Launch& out) {
  Launch json = deepspeed_launch(s);
  out.why_not = json.why_not;
  if (json.files.empty()) return out.files.clear();
  json.files[0].use = "beside it";
  out.files.push_back(std::move(json.files[0]));
}

std::string projections(const Scenario& s, const char* between) {
  std::string out;
  for (const auto& [name, target] : lora_target_names)
    if (s.model.lora.targets.has(target))
      out += (out.empty() ? "" : between) + std::string(name) + "_proj";
  return "[" + out + "]";
}

/// What no word of a stack says of the scenario, but for these keys.
std::vector<std::string> notes_on(const Scenario& s, workloads::Dtype summed, bool says_masters,
                                  std::initializer_list<std::string_view> said) {
  auto out = common_notes(s, said);
  if (s.precision.gradient_reduce != summed) out.push_back(other_reduction(s, summed));
  if (s.precision.recipe != workloads::Recipe::none)
    out.emplace_back("precision.recipe is not said: fp8 has a configuration of its own.");
  if (!s.precision.masters && !says_masters)
    out.emplace_back("precision.masters = false is not said.");
  if (leaves_layers(s)) out.push_back(left_layers_note(s));
  if (stated_routing(s)) out.push_back(routing_note());
  return out;
}

Launch own_words_of(const Scenario& s, std::string_view stack, bool states_optimizer) {
  const bool megatron = s.software.framework == "megatron-core";
  if (stack.starts_with("verl")) return verl_words_of(s, stack, states_optimizer);
  if (stack == "axolotl")
    return trainer_words_of(s, axolotl_words(), "axolotl.yaml", false, states_optimizer);
  if (stack == "llama-factory")
    return trainer_words_of(s, llama_factory_words(), "llama_factory.yaml", megatron,
                            states_optimizer);
  if (stack == "llama-factory-v1") return llama_factory_v1_words_of(s);
  expects(stack == "swift", "a stack that is told in its own words");
  Launch out = trainer_words_of(s, swift_words(), "swift.args", megatron, states_optimizer);
  if (out.files.empty()) return out;
  std::string& text = out.files[0].text;
  if (!megatron) text = with_own_deepspeed(s, text);
  text = swift_arguments(text);
  return out;
}

std::string deepspeed_over(std::string_view theirs, std::string_view plan, bool same_optimizer) {
  nlohmann::ordered_json out = parsed_ordered_json(theirs);
  const nlohmann::ordered_json over = parsed_ordered_json(plan);
  if (!same_optimizer && !over.contains("optimizer")) out.erase("optimizer");
  for (const LaunchWord& word : deepspeed_words()) {
    // A plan of Adam names none: the one that is there makes it.
    if (word.use == Use::ignored || word.use == Use::unsaid || word.key == "optimizer") continue;
    std::string path = "/" + std::string(word.name);
    std::ranges::replace(path, '.', '/');
    const nlohmann::ordered_json::json_pointer at(path), table = at.parent_pointer();
    if (out.contains(at) && out[table].is_object()) out[table].erase(at.back());
    // A device without its other words is none.
    if (word.name.ends_with(".device") && out.contains(table))
      out[table.parent_pointer()].erase(table.back());
  }
  out.merge_patch(over);
  return json_text(out, 2) + "\n";
}

}  // namespace stepcast::sim
