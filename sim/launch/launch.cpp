#include "sim/launch/launch.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "engine/check.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/launch/bridge_registry.hpp"
#include "sim/launch/forms.hpp"
#include "workloads/plan/model_size.hpp"

namespace stepcast::sim {
namespace {

struct Form {
  std::string_view framework;
  Launch (*write)(const Scenario&);
};

constexpr Form launch_forms[] = {
    {"megatron-core", megatron_launch},
    {"megatron-lm", megatron_launch},
    {"megatron-deepspeed", deepspeed_launch},
    {"deepspeed", deepspeed_launch},
    {"nemo", nemo_launch},
    {"torchtitan", torchtitan_launch},
    {"pytorch-fsdp1", fsdp_launch},
    {"pytorch-fsdp1-compiled", fsdp_launch},
    {"pytorch-fsdp2", fsdp_launch},
    {"trl", trl_launch},
    {"hf-trainer", trl_launch},
};

std::string known_forms() {
  std::string out;
  for (const Form& form : launch_forms)
    out += (out.empty() ? "" : ", ") + std::string(form.framework);
  return out;
}

}  // namespace

namespace {

/// What only Megatron core's arguments and its fields in Megatron-Bridge say; "": nothing of it is
/// asked for.
std::string only_in_megatron(const Scenario& s) {
  if (s.software.framework == "megatron-core") return "";
  if (s.plan.tensor_overlap == workloads::TensorOverlap::userbuffers) return "user buffers";
  if (s.software.framework == "nemo" && bridge_release(s.software.version) > 0) return "";
  if (s.plan.offload.optimizer > 0.0 && s.software.framework != "deepspeed")
    return "plan.optimizer_offload";
  return s.plan.recompute_modules.empty() ? "" : "plan.recompute_modules";
}

/// What no form says: Megatron core offloads activations by module, not by share.
std::string in_no_form(const Scenario& s) {
  return s.plan.offload.activations > 0.0 ? "plan.activation_offload" : "";
}

/// Layers of experts that the form of this framework has no words for.
bool no_words_for_experts(const Scenario& s) {
  constexpr std::string_view have[] = {"megatron-core", "torchtitan", "deepspeed",
                                       "nemo",          "trl",        "hf-trainer"};
  return s.model.experts.count > 0 &&
         std::ranges::find(have, std::string_view(s.software.framework)) == std::end(have);
}

/// Forms that name the parts of a model, or the model itself.
bool says_models_by_parts(const Scenario& s) {
  constexpr std::string_view forms[] = {"megatron-core", "torchtitan", "nemo",
                                        "trl",           "hf-trainer", "deepspeed"};
  return std::ranges::find(forms, std::string_view(s.software.framework)) != std::end(forms);
}

}  // namespace

Launch launch_of(const Scenario& s) {
  expects(!s.collective && s.open.empty(), "a training step of known degrees");
  Launch out;
  if (const std::string what = in_no_form(s); !what.empty()) {
    out.why_not = "no launch form here has " + what;
    return out;
  }
  if (const std::string what = only_in_megatron(s); !what.empty()) {
    out.why_not = what + " have a launch form here for Megatron alone";
    return out;
  }
  if (no_words_for_experts(s)) {
    out.why_not = "the launch form of " + s.software.framework + " has no words for experts here";
    return out;
  }
  if (workloads::adapted(s.model) && s.software.framework != "trl" &&
      s.software.framework != "hf-trainer") {
    out.why_not = "the launch form of " + s.software.framework +
                  " does not say that adapters alone are trained (lora_rank): trl's does";
    return out;
  }
  const char* what = workloads::attention_beyond_llama(s.model);
  if (what != nullptr && !says_models_by_parts(s)) {
    out.why_not = "the launch form of " + s.software.framework + " does not say that a model has " +
                  std::string(what);
    return out;
  }
  for (const Form& form : launch_forms)
    if (form.framework == s.software.framework) return form.write(s);
  out.why_not = s.software.framework + " has no launch form here; " + known_forms() + " have one";
  return out;
}

void write_launch(const Launch& launch, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder))
    throw OutputError("--out", "the folder '" + folder + "' cannot be written");
  for (const LaunchFile& file : launch.files) {
    const std::string path = (fs::path(folder) / file.name).string();
    if (fs::exists(path) && read_packed(path) != file.text)
      throw OutputError(path, "is there already and says something else",
                        "it is left as it is: take another folder");
  }
  NamedTexts missing;
  for (const LaunchFile& file : launch.files)
    if (!fs::exists(fs::path(folder) / file.name)) missing.emplace_back(file.name, file.text);
  write_together(folder, missing);
}

}  // namespace stepcast::sim
