#include "sim/scripts/yaml_settings.hpp"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::sim {
namespace {

constexpr int deepest_yaml = 32;
constexpr std::size_t most_values = 20'000;  // an alias may stand for a thousand others

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

class Yaml {
 public:
  explicit Yaml(const std::string& name) : name_(name) {}

  void add(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > deepest_yaml || ++values_ > most_values)
      throw InputError(name_, "is nested or repeated beyond any configuration");
    if (node.IsMap()) {
      for (const auto& entry : node)
        if (entry.first.IsScalar()) add(entry.second, below(path, entry.first.Scalar()), depth + 1);
    } else if (node.IsSequence()) {
      list(node, path, depth);
    } else {
      out.set(path, node.IsScalar() ? node.Scalar() : "null");
    }
  }

  Settings out;

 private:
  void list(const YAML::Node& node, const std::string& path, int depth) {
    std::string text;
    bool plain = true;
    for (std::size_t i = 0; i < node.size() && plain; ++i) {
      plain = node[i].IsScalar();
      if (++values_ > most_values) break;
      if (plain) text += (i > 0 ? ", " : "") + node[i].Scalar();
    }
    if (plain) return out.set(path, "[" + text + "]");
    for (std::size_t i = 0; i < node.size(); ++i)
      add(node[i], below(path, std::to_string(i)), depth + 1);
  }

  const std::string& name_;
  std::size_t values_ = 0;
};

void add_json(const nlohmann::json& value, const std::string& path, Settings& out) {
  if (value.is_object())
    for (const auto& [key, inner] : value.items()) add_json(inner, below(path, key), out);
  else
    out.set(path, value.is_string() ? value.get<std::string>() : json_text(value));
}

}  // namespace

Settings read_yaml_settings(std::string_view text, const std::string& name) {
  Yaml out(name);
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) throw InputError(name, "is no table of YAML");
    out.add(root, "", 0);
  } catch (const YAML::Exception& error) {
    throw InputError(name + ":" + std::to_string(error.mark.line + 1), "is no YAML: " + error.msg);
  }
  return std::move(out.out);
}

Settings read_json_settings(std::string_view text, const std::string& name) {
  const nlohmann::json root = json_or_discarded(text);
  if (!root.is_object()) throw InputError(name, "is no JSON object");
  Settings out;
  add_json(root, "", out);
  return out;
}

}  // namespace stepcast::sim
