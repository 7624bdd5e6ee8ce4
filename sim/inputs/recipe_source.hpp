// A recipe of Megatron-Bridge by its name, in a checkout that a script stands in.
#pragma once

#include <string>
#include <string_view>

#include "sim/scripts/settings.hpp"

namespace stepcast::sim {

/// Under which the file is kept that the settings of a recipe are from.
inline constexpr std::string_view recipe_source = "@recipe";

/// What the recipe says of a step beside the model's shape, read as text; nothing where no folder
/// above `path` has src/megatron/bridge/recipes, or that no such function.
Settings settings_of_recipe(const std::string& name, const std::string& path);

}  // namespace stepcast::sim
