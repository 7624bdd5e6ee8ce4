// Files that a command line or a configuration names, which lie beside it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/files/toml_value.hpp"
#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// The text of a file that the one at `path` names, beside it or beside a folder above; none: it is
/// not there, or named by a variable.
std::optional<std::string> text_beside(const std::string& path, const std::string& named);

/// What is not said yet. "auto" is the other file's to say.
void add_usual(Settings& settings, const Settings& others);

/// TOML of torchtitan, as settings below `path`.
void add_toml(const TomlValue& value, const std::string& path, Settings& out);

/// Whether Python has functions of a registry of torchtitan; recipes of Megatron-Bridge.
bool is_registry(std::string_view text);
bool is_bridge_recipe(std::string_view text);
/// One function of it: the only one, or `function`. Throws InputError where neither is there.
Settings registered(std::string_view text, const std::string& path, const std::string& function);
Settings bridge_recipe(std::string_view text, const std::string& path, const std::string& function);

/// Those of all files beside `path` that its settings name: TOML, YAML, JSON, Python.
void add_named_files(Settings& settings, const std::string& path);

}  // namespace stepcast::sim
