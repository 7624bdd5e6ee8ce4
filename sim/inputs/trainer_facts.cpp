// The stacks around Hugging Face's Trainer: what their words mean (trainer_words.cpp), in one place
// for all of them.
#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/split.hpp"
#include "sim/inputs/formats.hpp"
#include "sim/inputs/training_script.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/launch/trainer_words.hpp"
#include "sim/scripts/text_pieces.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

class TrainerFacts : public Translator {
 public:
  TrainerFacts(Facts& facts, const Settings& settings, const std::string& source,
               const InputFormat& format)
      : Translator(facts, settings, "", source), tables_(format.tables()) {}

  void add(const Catalogue& catalogue) {
    only_training();
    if (const std::string model = meaning("model"); !model.empty())
      set_model_name(facts_, model, catalogue, source_);
    plain();
    layout();
    sharding();
    if (!megatron()) without_further_tokens(facts_, catalogue, source_);
    batch();
    recompute();
    precision();
    adapters(catalogue);
    optimizer();
    machine();
    software();
    if (const std::string* script = settings_.find(std::string(training_script)))
      note(fmt::format("What the command does not say is as literals in {} have it.", *script));
    if (!assumed_.empty())
      note(fmt::format("As the framework has it where nothing is said: {}.",
                       fmt::join(assumed_, ", ")));
  }

 private:
  /// What the file says of it, else the framework's default; empty: neither.
  std::string meaning(std::string_view about) const {
    const std::string* found = said(about);
    if (found != nullptr) return *found;
    for (const LaunchWord& word : tables_[0])  // defaults are those of its own stack
      if (word.use == Use::read && word.key == about && !word.usual.empty()) return as_usual(word);
    return "";
  }
  /// A default of the framework, which the user is told of.
  std::string as_usual(const LaunchWord& word) const {
    const std::string told = fmt::format("{} = {}", word.name, word.usual);
    if (word.usual != "False" && std::ranges::find(assumed_, told) == assumed_.end())
      assumed_.push_back(told);
    return std::string(word.usual);
  }
  const std::string* said(std::string_view about) const {
    for (const LaunchWords& words : tables_)
      for (const LaunchWord& word : words)
        if (word.use == Use::read && word.key == about)
          if (const std::string* found = settings_.find(std::string(word.name))) return found;
    return nullptr;
  }
  bool on(std::string_view about) const { return flag_in(meaning(about)).value_or(false); }
  std::optional<Number> number(std::string_view about) const {
    const auto value = integer_in(meaning(about));
    return value && *value > 0 ? value : std::nullopt;
  }
  Number degree(std::string_view about) const { return number(about).value_or(1); }
  /// LLaMA-Factory's second generation: a trainer of its own beside transformers'.
  bool v1() const { return tables_[0].data() == llama_factory_v1_words().data(); }
  /// ms-swift's trainer over Megatron, whose command may say neither.
  bool megatron() const {
    return said("pipeline") != nullptr || said("zero1") != nullptr ||
           calls(settings_, "megatron sft") || calls(settings_, "megatron pt");
  }

  /// Files of LLaMA-Factory that make no step, or one that no GPU makes.
  void only_training() const {
    for (const auto& [name, purpose] : {std::pair{"export_dir", "export"},
                                        {"peft_config.export_dir", "export"},
                                        {"infer_backend", "inference"}})
      if (find(name) != nullptr && find("dataset") == nullptr && find("train_dataset") == nullptr)
        throw InputError(source_, fmt::format("is a file for {} ({}), it makes no step of training",
                                              purpose, name));
    if (on("generates") && !on("trains"))
      throw InputError(source_, "is a file for answers (do_predict), it makes no step of training");
    if (on("experts_on_host"))
      throw InputError(source_, "use_kt: experts computed by the CPU are not modelled",
                       "use_kt=false for a forecast with all of them on GPUs");
  }

  /// Counts and flags whose key is ours.
  void plain() {
    for (const LaunchWords& words : tables_)
      for (const LaunchWord& word : words) {
        const std::string name(word.name);
        const std::string* found = settings_.find(name);
        const bool own = words.data() == tables_[0].data();
        const bool usual = word.use == Use::count && found == nullptr && own &&
                           !word.usual.empty() && facts_.find(word.key) == nullptr;
        const std::string text = found != nullptr ? *found : usual ? as_usual(word) : "";
        if (word.use == Use::count) {
          const auto value = integer_in(text);
          if (value && *value > 0 && (found || !facts_.find(word.key)))
            set(std::string(word.key), *value);
        } else if (word.use == Use::flag && found != nullptr) {
          if (const auto value = flag_in(text)) set(std::string(word.key), *value);
        }
      }
  }

  void layout() {
    set("plan.tensor", degree("tensor"));
    set("plan.pipeline", degree("pipeline"));
    context_ = std::max({degree("context"), degree("ulysses"), degree("ring")});
    set("plan.context", context_);
    if (degree("ulysses") > 1) set("software.context_exchange", std::string("all_to_all"));
    if (degree("ring") > 1) set("software.context_exchange", std::string("ring"));
    if (const auto parts = number("virtual")) set("plan.virtual_stages", *parts);
    if (const auto experts = number("expert")) {
      set("plan.expert", *experts);
      if (const auto each = number("expert_tensor")) set("plan.expert_tensor", *each);
      if (v1() && *experts > 1)  // FSDPTurbo has what transformers has not
        facts_.set("software.dispatchers", {TomlValue::Array{toml_text("all_to_all", "")}, ""},
                   source_);
    }
    if (degree("tensor") > 1) set("plan.sequence_parallel", on("sequence_parallel"));
    const std::string dispatcher = meaning("dispatcher");
    if (dispatcher == "alltoall") set("plan.dispatcher", std::string("all_to_all"));
    if (dispatcher == "allgather") set("plan.dispatcher", std::string("all_gather"));
    if (dispatcher == "flex") set("plan.dispatcher", std::string("node_aware"));
  }

  /// TRL has configurations of its own: zero1, zero2, zero3, fsdp1, fsdp2, multi_gpu, single_gpu.
  bool of_trl(const std::string& file) const {
    return file.find('.') == std::string::npos && find("accelerate_config") != nullptr;
  }
  /// Of accelerate's configuration, where it is not beside the file: what its name says.
  bool accelerate_is(std::string_view word) const {
    const std::string* file = said("accelerate_file");
    return file != nullptr && said("distributed_type") == nullptr && says(*file, word);
  }
  /// accelerate's FSDP and DEEPSPEED, LLaMA-Factory's fsdp2 and fsdpturbo.
  bool distributed_by(std::string_view kind) const {
    std::string type = meaning("distributed_type");
    for (char& c : type)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return type.starts_with(kind);
  }
  bool by_deepspeed() const {
    if (v1()) return distributed_by("deepspeed");
    return accelerate_is("zero") || accelerate_is("deepspeed") || said("zero_stage") != nullptr ||
           distributed_by("deepspeed") || said("deepspeed") != nullptr;
  }
  bool by_fsdp() const {
    const std::string* mode = said("fsdp");
    if (v1()) return distributed_by("fsdp");
    return accelerate_is("fsdp") || distributed_by("fsdp") || said("fsdp_version") != nullptr ||
           said("reshard") != nullptr || said("shard") != nullptr ||
           (mode != nullptr && is_on(*mode));
  }

  void sharding() {
    std::string data = "ddp";
    if (megatron()) {
      data = on("zero1") ? "zero1" : "ddp";
    } else if (by_deepspeed()) {
      data = zero();
    } else if (by_fsdp()) {
      data = fsdp();
    } else if (said("distributed_type") == nullptr && said("accelerate_file") == nullptr &&
               !adapted()) {
      note(
          "Nothing says how states are sharded: every GPU holds all of them. --data says another "
          "way, and so does accelerate's or DeepSpeed's file beside this one.");
    }
    set("plan.data", data);
    for (const auto& [about, key] : {std::pair{"offload_optimizer", "plan.optimizer_offload"},
                                     std::pair{"offload_parameters", "plan.parameter_offload"}}) {
      const std::string to = meaning(about);
      const bool off = !is_on(to) || (data == "ddp" && !megatron()) ||
                       (data != "zero3" && key == std::string_view("plan.parameter_offload"));
      if (!off) facts_.set(key, {1.0, ""}, source_);
    }
    const bool by_name =
        by_deepspeed() && said("zero_stage") == nullptr && says(deepspeed_file(), "offload");
    const bool by_option = said("fsdp") != nullptr && says(*said("fsdp"), "offload");
    if (by_name) note("Offloading is taken from the name " + deepspeed_file() + ".");
    if (on("offload_states") || by_name || by_option) {
      facts_.set("plan.optimizer_offload", {1.0, ""}, source_);
      if (data == "zero3") facts_.set("plan.parameter_offload", {1.0, ""}, source_);
    }
  }

  std::string deepspeed_file() const {
    const bool named = said("deepspeed") == nullptr && said("accelerate_file") != nullptr;
    return named ? *said("accelerate_file") : meaning("deepspeed");
  }

  /// The stage, of the JSON that was read beside it, or of its name.
  std::string zero() {
    if (const auto stage = integer_in(meaning("zero_stage")); stage && said("zero_stage"))
      return *stage < 1 ? "ddp" : fmt::format("zero{}", std::min<Number>(*stage, 3));
    const std::string file = deepspeed_file();
    for (const auto& [mark, stage] : {std::pair{"3", "zero3"}, {"2", "zero2"}, {"1", "zero1"}})
      for (const char* word : {"z", "zero", "zero_stage", "stage", "zero-"})
        if (file.find(std::string(word) + mark) != std::string::npos) {
          if (!of_trl(file))
            note(fmt::format("{} is not beside the file: stage {} is taken from its name.", file,
                             mark));
          return stage;
        }
    if (file.find("z0") == std::string::npos && file.find("zero0") == std::string::npos)
      note(fmt::format("{} is not beside the file: give it as a second file, or --data.",
                       file.empty() ? "DeepSpeed's configuration" : file));
    return "ddp";
  }

  std::string fsdp() {
    if (accelerate_is("fsdp") && !of_trl(*said("accelerate_file")))
      note(*said("accelerate_file") + " is not beside the file: FSDP is taken from its name.");
    const std::string strategy = meaning("reshard") + " " + meaning("fsdp");
    const auto has = [&](std::string_view word) {
      return strategy.find(word) != std::string::npos;
    };
    const auto with_context = number("shard_with_context");
    const Number copies = degree("replicate");
    const Number shards = with_context.value_or(degree("shard") * context_);
    if (v1() && !with_context)
      facts_.copies = copies;
    else if (copies > 1 && shards > 1)
      set("plan.shard_degree", shards);
    if (distributed_by("fsdpturbo")) facts_.copies = context_;  // its mesh is of data ranks alone
    if (has("NO_SHARD") || ((said("shard") || with_context) && shards == 1)) return "ddp";
    const bool hybrid = has("HYBRID") || has("hybrid");
    if (hybrid && copies == 1)
      note("Hybrid sharding: a copy a node is taken where --shard-degree says no other.");
    const bool kept = has("SHARD_GRAD_OP") || has("shard_grad_op") || has("False") ||
                      has("false") || has("ZERO2");
    return kept ? "zero2" : "zero3";
  }

  /// Per device: what each data rank takes at once, and how often before an update.
  void batch() {
    const auto micro = number("micro");
    // Its second generation has a global batch alone: one turn where none is said.
    const auto turns = v1() ? std::optional<Number>(1) : number("accumulation");
    if (micro) set("batch.micro_batch", *micro);
    if (const auto global = number("global")) return set("batch.global", *global);
    if (!micro || !turns) return;
    const Number ranks = degree("tensor") * degree("pipeline") * context_;
    facts_.set("batch.local",
               {static_cast<double>(*micro * *turns) / static_cast<double>(ranks), ""}, source_);
  }

  void recompute() {
    if (megatron()) {
      const std::string kind = meaning("megatron_recompute");
      return set("plan.recompute", kind.empty() ? std::string("none") : kind);
    }
    if (said("checkpoints") && !v1()) return set("plan.recompute", std::string("full"));
    const std::string word = meaning("recompute");
    bool full = flag_in(word).value_or(is_on(word)) || on("recompute_too");
    if (!meaning("recompute_off").empty()) full = !on("recompute_off");
    set("plan.recompute", std::string(full ? "full" : "none"));
    if (word == "offload" || word == "unsloth")
      note("gradient_checkpointing = " + word + ": what lies on the host is not forecast.");
  }

  /// Its weights are in fp32, but for adapters beside those of the file; FSDP's policy or
  /// DeepSpeed's configuration casts them, DDP nothing.
  void v1_precision() {
    const auto says_in_json = [&](const char* name) { return flag_in(word(name)); };
    const auto bf16 = says_in_json("bf16.enabled");
    const bool casts = by_deepspeed() ? bf16.value_or(says_in_json("fp16.enabled").value_or(true))
                       : by_fsdp()    ? on("bf16")
                                      : adapted();
    const std::string compute = casts ? "bf16" : "fp32";
    set("precision.compute", compute);
    const std::string reduced = by_deepspeed() ? meaning("reduced") : "fp32";
    set("precision.gradient_reduce", reduced.empty() ? compute : reduced);
    if (distributed_by("fsdpturbo") && casts) set("precision.masters", false);
    if (!by_deepspeed() && !by_fsdp() && on("bf16") && !adapted())
      note("Without dist_config its weights and products are in fp32, whatever bf16 says.");
  }

  void precision() {
    if (v1()) return v1_precision();
    const std::string mixed = meaning("mixed_precision");
    const bool pure = on("pure_bf16");
    const bool half = !pure && (on("fp16") || mixed == "fp16");
    const bool bf16 = pure || on("bf16") || meaning("bf16") == "auto" || mixed == "bf16";
    const std::string compute = half ? "fp16" : bf16 ? "bf16" : "fp32";
    set("precision.compute", compute);
    const std::string reduced = meaning("reduced");
    if (!reduced.empty()) return set("precision.gradient_reduce", reduced);
    const bool sharded =
        facts_.find("plan.data") != nullptr && *facts_.find("plan.data")->text() != "ddp";
    // FSDP's policy and DeepSpeed reduce in the type of the gradients, DDP in that of the weights.
    const std::string reduce = pure || (sharded && !megatron()) ? compute : "fp32";
    set("precision.gradient_reduce", compute == "fp32" ? std::string("fp32") : reduce);
    if (pure) set("precision.masters", false);
    if (on("fp8") || mixed == "fp8")
      note("fp8: the step is forecast in 16 bits, what its library makes narrow is not known.");
    if (!sharded && !pure && compute != "fp32" && !megatron()) set("software.autocast", true);
  }

  /// Whether adapters alone are trained.
  bool adapted() const {
    const std::string kind = meaning("adapted");
    return kind == "lora" || kind == "qlora" || kind == "oft" || flag_in(kind).value_or(false);
  }

  void adapters(const Catalogue& catalogue) {
    const std::string kind = meaning("adapted");
    if (!adapted()) {
      if (is_on(kind) && kind != "full")
        note(
            fmt::format("{} has no key here: all parameters are taken as trained, which is the "
                        "most that it can need.",
                        kind));
      return;
    }
    Number rank = number("lora_rank").value_or(8);
    if (kind == "oft") {  // b/2 angles a channel, a pair of low rank has 2r in a square product
      rank = std::max<Number>(1, number("oft_block").value_or(32) / 4);
      note(
          fmt::format("oft is taken as adapters of rank {}, which have as many parameters.", rank));
    }
    set("model.lora_rank", rank);
    set_adapter_targets(facts_, meaning("lora_targets"), on("lora_all"), megatron(), catalogue,
                        source_);
    frozen_weights(kind);
    if (const auto dropout = number_in<double>(meaning("lora_dropout")); dropout && *dropout > 0)
      set("model.lora_dropout", true);
  }

  void frozen_weights(const std::string& kind) {
    auto bits = number("bits");
    if (!bits && is_on(meaning("quantized"))) bits = 4;  // bitsandbytes' where none are said
    const bool four = kind == "qlora" || on("bits4") || bits == 4;
    const bool eight = on("bits8") || bits == 8;
    if (four) return set("model.lora_base", std::string(on("double_quant") ? "nf4_double" : "nf4"));
    if (eight) return set("model.lora_base", std::string("int8"));
    for (const char* form : {"AWQ", "GPTQ", "AQLM", "bnb-4bit"})
      if (says(meaning("model"), form)) {
        note(fmt::format("The model's file is in few bits ({}): taken as nf4.", form));
        return set("model.lora_base", std::string("nf4"));
      }
  }

  /// DeepSpeed's file goes before the trainer's (transformers integrations/deepspeed.py, recalled).
  void optimizer() {
    if (megatron()) return;
    if (on("muon")) return set("plan.optimizer", std::string("muon"));
    const std::string* name = find("optimizer.type");
    if (name == nullptr) name = said("optimizer");
    if (name != nullptr) optimizer_called(*name);
  }

  /// What trains otherwise than on one answer: LLaMA-Factory's stage, a script of TRL or its verb.
  std::string method() const {
    constexpr std::string_view others[] = {
        "dpo",        "kto",  "orpo",    "cpo", "grpo",         "rloo", "gspo", "gkd", "reward",
        "online_dpo", "gold", "nash_md", "xpo", "distillation", "bco",  "prm",  "tpo", "sdft"};
    const std::string stage = meaning("stage"), program = word("@program");
    if (!stage.empty() && stage != "sft" && stage != "pt") return "stage = " + stage;
    for (const std::string_view one : words_of_text(program)) {
      const std::string_view file = one.substr(one.rfind('/') + 1);
      for (const std::string_view other : others)
        if (file == other || (file.ends_with(".py") && file.starts_with(other) &&
                              (file[other.size()] == '.' || file[other.size()] == '_')))
          return std::string(file);
    }
    return "";
  }

  void machine() {
    if (const auto data = number("data_ranks")) return ranks(*data * context_);
    const auto each = number("processes_per_node"), all = number("processes");
    if (!all && !each && said("accelerate_file") && of_trl(*said("accelerate_file")))
      return ranks(accelerate_is("single_gpu") ? 1 : 8);
    if (all && degree("nodes") > 1 && *all % degree("nodes") == 0)
      facts_.gpus_per_node = *all / degree("nodes");
    if (all) return ranks(*all);
    if (!each) return;
    facts_.gpus_per_node = *each;
    ranks(*each * degree("nodes"));
  }

  void software() {
    if (megatron()) return set("software.framework", std::string("megatron-core"));
    const bool trl = tables_[0].data() == trainer_words().data();
    const bool offloads = by_deepspeed() && facts_.find("plan.optimizer_offload") != nullptr;
    set("software.framework", std::string(offloads ? "deepspeed" : trl ? "trl" : "hf-trainer"));
    if (!offloads && !trl) set("software.version", std::string("2026"));
    if (on("compiled")) set("software.fusion", std::string("compiled"));
    const std::string kernel = meaning("attention");
    if (kernel == "eager" || kernel == "disabled")
      set("software.attention", std::string("unfused"));
    else if (kernel.find("flash") != std::string::npos || kernel == "fa2" || kernel == "True" ||
             kernel == "true")
      set("software.attention", std::string("flash2"));
    if (const std::string stage = method(); !stage.empty())
      note(fmt::format("{}: pairs of answers, samples and second models are not forecast.", stage));
    if (!on("packed") && !meaning("batching").starts_with("dynamic"))
      note("Without packing sequences differ: every one is taken as long as the longest.");
  }

  std::vector<LaunchWords> tables_;
  mutable std::vector<std::string> assumed_;
  Number context_ = 1;
};

}  // namespace

void add_trainer_facts(Facts& facts, const Settings& settings, const Catalogue& catalogue,
                       const std::string& source) {
  TrainerFacts(facts, settings, source, *format_of(settings)).add(catalogue);
}

}  // namespace stepcast::sim
