// A model's name as files have it: an id, a folder, a flavour.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/import/model_index.hpp"
#include "sim/inputs/formats.hpp"

namespace stepcast::sim {
namespace {

/// "llama31_8b", "llama-3.1-8b"
std::string without_dots(std::string name) {
  std::erase(name, '.');
  return name;
}

/// The entry or id that a name means, quantised and dated ones too; empty: none.
std::string known_model(const std::string& name, const Catalogue& catalogue) {
  if (name.empty() || is_file_name(name)) return "";
  if (catalogue.has("models", name)) return name;
  const std::string plain = plain_model_name(name);
  const std::string dotless = without_dots(plain);
  for (const std::string& entry : catalogue.names("models"))
    if (without_dots(plain_model_name(entry)) == dotless) return entry;
  for (const IndexedModel& model : catalogue.model_index().models())
    if (model.unlike.empty() && without_dots(plain_model_name(model.id)) == dotless)
      return model.id;
  return "";
}

/// The only id that begins so, its maker's name before it or not: "nemotron_3_ultra"; empty: none,
/// or several.
std::string begun_model(const std::string& name, const Catalogue& catalogue) {
  constexpr std::size_t shortest = 8;
  const std::string begins = without_dots(plain_model_name(name));
  std::string out;
  for (const IndexedModel& model : catalogue.model_index().models()) {
    const std::string plain = without_dots(plain_model_name(model.id)),
                      maker = plain_model_name(model.id.substr(0, model.id.find('/')));
    if (!plain.starts_with(begins) && !plain.starts_with(maker + begins)) continue;
    if (!out.empty() || !model.unlike.empty()) return "";
    out = model.id;
  }
  return begins.size() < shortest || is_file_name(name) ? "" : out;
}

}  // namespace

void set_model_name(Facts& facts, const std::string& said, const Catalogue& catalogue,
                    const std::string& source) {
  std::string name = said;
  while (name.ends_with("/")) name.pop_back();
  std::string last = name.substr(name.rfind('/') + 1);
  for (const std::string& one : {name, last})
    if (const std::string known = known_model(one, catalogue); !known.empty())
      return facts.set("model.name", toml_text(known, ""), source);
  for (std::size_t dash = last.rfind('-'); dash != std::string::npos; dash = last.rfind('-')) {
    last.resize(dash);  // "DeepSeek-V3-config-mine"
    const std::string known = known_model(last, catalogue);
    if (known.empty()) continue;
    facts.notes.push_back("The model '" + said + "' is taken as " + known + ".");
    return facts.set("model.name", toml_text(known, ""), source);
  }
  last = name.substr(name.rfind('/') + 1);
  if (const std::string known = begun_model(last, catalogue); !known.empty()) {
    facts.notes.push_back("The model '" + said + "' is taken as " + known + ".");
    return facts.set("model.name", toml_text(known, ""), source);
  }
  facts.set("model.name", toml_text(said, ""), source);
  facts.notes.push_back("No entry is near the model '" + said + "': --model says one.");
}

std::string model_in_file_name(const std::string& path, const Catalogue& catalogue) {
  const std::string file = path.substr(path.rfind('/') + 1);
  std::vector<std::string> words{""};
  for (const char c : file.substr(0, file.rfind('.')))
    if (c == '_' || c == '-')
      words.emplace_back();
    else
      words.back() += c;
  for (std::size_t length = words.size(); length > 1; --length)  // the longest first
    for (std::size_t first = 0; first + length <= words.size(); ++first) {
      std::string name = words[first];
      for (std::size_t i = 1; i < length; ++i) name += "_" + words[first + i];
      if (!known_model(name, catalogue).empty()) return name;
    }
  return "";
}

namespace {

/// What the catalogue has of the model that was named; none: it is no entry, or of no shape.
std::optional<TomlValue> named_entry(const Facts& facts, const Catalogue& catalogue,
                                     const std::string& source) {
  const TomlValue* name = facts.find("model.name");
  if (name == nullptr || name->text() == nullptr || !catalogue.has("models", *name->text()) ||
      is_file_name(*name->text()))
    return std::nullopt;
  const IndexedModel* indexed = catalogue.model_index().find(*name->text());
  if (indexed != nullptr && !indexed->unlike.empty()) return std::nullopt;
  return catalogue.entry("models", *name->text(), source);
}

}  // namespace

void without_further_tokens(Facts& facts, const Catalogue& catalogue, const std::string& source) {
  const auto entry = named_entry(facts, catalogue, source);
  if (entry && entry->find("mtp_layers") != nullptr)
    facts.set("model.mtp_layers", {std::int64_t{0}, ""}, source);
}

bool has_experts(const Facts& facts, const Catalogue& catalogue, const std::string& source) {
  const auto entry = named_entry(facts, catalogue, source);
  return entry && entry->find("experts") != nullptr;
}

void set_adapter_targets(Facts& facts, const std::string& list, bool all, bool linear_experts,
                         const Catalogue& catalogue, const std::string& source) {
  const auto entry = named_entry(facts, catalogue, source);
  const auto has = [&](const char* key) { return entry && entry->find(key) != nullptr; };
  const TomlValue* activation = has("activation") ? entry->find("activation") : nullptr;
  const bool gated =
      activation == nullptr || activation->text() == nullptr || *activation->text() == "swiglu";
  const bool experts = has("experts") && !linear_experts;
  const bool beside_mlp = !experts || has("ffn_hidden") || has("shared_expert_ffn");
  all = all || list.starts_with("all");
  bool mlp = false;
  TomlValue::Array out, absent;
  for (const std::string name : {"q", "k", "v", "o", "gate", "up", "down"}) {
    if (!all && list.find(name + "_proj") == std::string::npos) continue;
    const bool of_mlp = name.size() > 1;
    mlp = mlp || of_mlp;
    const bool there = !of_mlp || (beside_mlp && (name != "gate" || gated));
    (there ? out : absent).push_back(toml_text(name, ""));
  }
  if (out.empty() && absent.empty()) return;
  if (out.empty())  // what the model's rules refuse
    return facts.set("model.lora_targets", {std::move(absent), ""}, source);
  if (experts && mlp)
    facts.notes.push_back(
        "Weights of routed experts are no linear layers in transformers 5: no adapter lies beside "
        "them" +
        std::string(beside_mlp ? "." : ", so q, k, v and o alone have one."));
  facts.set("model.lora_targets", {std::move(out), ""}, source);
}

}  // namespace stepcast::sim
