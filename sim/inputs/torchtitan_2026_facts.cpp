// torchtitan since its TOML is gone (2026-02): a function of the registry, fields of a
// Trainer.Config by their path, from Python or from the command line. Read at pytorch/torchtitan
// b5bcd76 (2026-08).
#include <algorithm>

#include "sim/inputs/formats.hpp"
#include "sim/inputs/launch_facts.hpp"
#include "sim/inputs/translator.hpp"
#include "sim/launch/torchtitan_registry.hpp"

namespace stepcast::sim {
namespace {

using Number = std::int64_t;

/// As the TOML of 2025 had it, so that one reader serves both.
Settings with_names_of_toml(const Settings& said) {
  Settings out = said;
  const auto first = [&](const char* one, const char* other) {
    return said.find(one) != nullptr ? said.find(one) : said.find(other);
  };
  const std::string* function = first("config", "CONFIG");
  const std::string* module = first("module", "MODULE");
  const std::string* base = said.find("");  // config = llama3_8b(), then its fields
  const RegisteredModel* known = nullptr;
  for (const std::string* name : {function, base})
    if (known == nullptr && name != nullptr) known = registered_function(*name);
  if (module != nullptr && known == nullptr) out.set_usual("model.name", *module);
  if (const std::string* flavor = said.find("model_spec")) out.set_usual("model.flavor", *flavor);
  if (known != nullptr) {
    out.set_usual("model.name", std::string(known->module));
    out.set_usual("model.flavor", std::string(known->flavor));
    out.set_usual("training.max_context_length", std::to_string(known->sequence));
    out.set_usual("training.num_tokens_per_microbatch_per_dp_rank", std::to_string(known->tokens));
    out.set_usual("parallelism.tensor_parallel_degree", std::to_string(known->tensor));
    out.set_usual("parallelism.expert_parallel_degree", std::to_string(known->expert));
    out.set_usual("activation_checkpoint", known->full ? "FullAC" : "SelectiveAC");
  }
  out.set_usual("training.max_context_length", "2048");
  out.set_usual("training.num_tokens_per_microbatch_per_dp_rank", "16384");
  out.set_usual("parallelism.data_parallel_shard_degree", "-1");
  out.set_usual("compile.enable", "False");
  out.set("training.seq_len", *out.find("training.max_context_length"));
  const std::string* kind = out.find("activation_checkpoint");
  const std::string mode = kind == nullptr ? "" : *kind;
  out.set_usual("activation_checkpoint.mode", mode == "FullAC"        ? "full"
                                              : mode == "SelectiveAC" ? "selective"
                                                                      : "none");
  const std::string* converters = said.find("model_spec.converters");
  for (const auto& [word, converter] :
       {std::pair{"Float8", "float8"}, {"MXFP8", "mx"}, {"NVFP4", "nvfp4"}})
    if (converters != nullptr && converters->find(word) != std::string::npos)
      out.set_usual("model.converters", converter);
  if (const std::string* backend = said.find("model_spec.moe_comm_backend"))
    out.set_usual("parallelism.expert_parallel_comm_backend", *backend);
  return out;
}

class Torchtitan2026Facts : public Translator {
 public:
  using Translator::Translator;

  /// Tokens of a forward pass of a data rank, of a step of all.
  void batch() {
    const Number sequence = std::max<Number>(1, integer("training.seq_len").value_or(2048));
    const Number tokens = integer("training.num_tokens_per_microbatch_per_dp_rank").value_or(16384);
    const Number micro = std::max<Number>(1, tokens / sequence);
    set("batch.micro_batch", micro);
    if (tokens % sequence != 0)
      note("Its micro-batch is no whole number of sequences: as many as are whole are taken.");
    const Number step = integer("training.num_tokens_per_train_step").value_or(-1);
    if (step > 0) return set("batch.global", std::max<Number>(1, step / sequence));
    const auto degree = [&](const char* key) { return facts_.integer(key).value_or(1); };
    const Number stages = degree("plan.pipeline");
    const Number turns =
        stages > 1 ? integer("parallelism.num_pp_microbatches").value_or(1) : Number{1};
    const auto others =
        static_cast<double>(stages * degree("plan.tensor") * degree("plan.context"));
    facts_.erase("batch.global");
    facts_.set("batch.local", {static_cast<double>(micro * turns) / others, ""}, source_);
  }

  /// What its TOML had no words for, or others.
  void fields() {
    if (const auto cut = settings_.flag("parallelism.enable_sequence_parallel"))
      set("plan.sequence_parallel", *cut);
    const auto degree = [&](const char* key) { return facts_.integer(key).value_or(1); };
    if (degree("plan.expert") > 1 && degree("plan.tensor") > 1)  // common/moe_sharding.py
      set("plan.expert_tensor", Number{1});
    if (on("compile.enable_async_tensor_parallel"))
      set("plan.tensor_overlap", std::string("async_tp"));
    if (on("training.enable_cpu_offload")) {
      facts_.set("plan.optimizer_offload", {1.0, ""}, source_);
      note("enable_cpu_offload: parameters, gradients and optimizer lie on the host.");
    }
    if (word("model.converters").find("nvfp4") != std::string::npos)
      set("precision.recipe", std::string("nvfp4"));
  }

  void machine() {
    const auto each = integer("nproc_per_node") ? integer("nproc_per_node") : integer("NGPU");
    if (!each) return;
    facts_.gpus_per_node = *each;
    ranks(*each * integer("nnodes").value_or(1));
  }
};

}  // namespace

void add_torchtitan_2026_facts(Facts& facts, const Settings& said, const Catalogue& catalogue,
                               const std::string& source) {
  const Settings settings = with_names_of_toml(said);
  add_torchtitan_facts(facts, settings, catalogue, source);
  Torchtitan2026Facts rest(facts, settings, "", source);
  rest.fields();
  rest.batch();
  rest.machine();
  for (const char* name : {"config", "CONFIG", ""})
    if (const std::string* function = said.find(name))
      if (const RegisteredModel* known = registered_function(*function))
        facts.notes.push_back("What the files do not say is as in " + std::string(known->function) +
                              " of torchtitan's registry (b5bcd76, 2026-08).");
  facts.set("software.version", toml_text("2026", ""), source);
}

}  // namespace stepcast::sim
