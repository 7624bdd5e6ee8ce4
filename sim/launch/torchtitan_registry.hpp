// Models that torchtitan has since 2026, and what the functions of its registries say: models/*/
// config_registry.py and __init__.py of pytorch/torchtitan at b5bcd76 (2026-08).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stepcast::sim {

struct RegisteredModel {
  std::string_view model;     // ours, or an id
  std::string_view function;  // of its own, or of the nearest that has one
  std::string_view module, flavor;
  std::int64_t tokens = 0, sequence = 0;  // of a micro-batch of a data rank; what function says
  std::int64_t tensor = 1, expert = 1;
  bool full = false;  // FullAC, else SelectiveAC
  bool own = true;    // the function is this model's
};

std::span<const RegisteredModel> torchtitan_registry();

/// A model of its TOML, model.name and model.flavor: at its tags v0.2.0 to v0.2.2, of which gpt_oss
/// is in the last alone. models/*/__init__.py.
struct TomlModel {
  std::string_view model;  // ours; empty: it has none like it
  std::string_view module, flavor;
};
TomlModel toml_model(std::string_view model);
/// Of a module and a flavor, one with "_irope" behind it too.
TomlModel toml_model_of(std::string_view module, std::string_view flavor);

/// Null where torchtitan has none of that name.
const RegisteredModel* registered_model(std::string_view model);
/// Null where no registry has such a function.
const RegisteredModel* registered_function(std::string_view function);

}  // namespace stepcast::sim
