#include "sim/inputs/facts.hpp"

#include <algorithm>

namespace stepcast::sim {

const TomlValue* Facts::find(std::string_view key) const {
  const auto at = std::ranges::find(all, key, &Fact::key);
  return at == all.end() ? nullptr : &at->value;
}

std::optional<std::int64_t> Facts::integer(std::string_view key) const {
  const TomlValue* found = find(key);
  const auto* number = found == nullptr ? nullptr : std::get_if<std::int64_t>(&found->data);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

void Facts::set(const std::string& key, TomlValue what, const std::string& source) {
  what.where = source;
  const auto at = std::ranges::find(all, key, &Fact::key);
  if (at == all.end())
    all.push_back({key, std::move(what), source});
  else
    *at = {key, std::move(what), source};
}

void Facts::erase(std::string_view key) {
  std::erase_if(all, [&](const Fact& fact) { return fact.key == key; });
}

}  // namespace stepcast::sim
