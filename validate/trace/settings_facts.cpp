// Which framework's configuration it is.
#include "validate/trace/facts.hpp"
#include "validate/trace/launch_facts.hpp"

namespace stepcast::validate {

void add_facts(Facts& facts, const Settings& settings, const sim::Catalogue& catalogue,
               const std::string& source) {
  const auto says = [&](const char* name) { return settings.find(name) != nullptr; };
  if (says("num_layers") || says("tensor_model_parallel_size"))
    add_megatron_facts(facts, settings, "", source);
  else if (says("model.num_layers") || says("model.tensor_model_parallel_size"))
    add_megatron_facts(facts, settings, "model.", source);
  else if (says("init_device_mesh.tp"))
    add_fsdp_facts(facts, settings, source);
  else if (says("train_micro_batch_size_per_gpu") || says("zero_optimization.stage"))
    add_deepspeed_facts(facts, settings, source);
  else if (says("training.seq_len") || says("model.flavor"))
    add_torchtitan_facts(facts, settings, catalogue, source);
}

}  // namespace stepcast::validate
