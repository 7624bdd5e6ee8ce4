#include "sim/scenario/scenario_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/suggest.hpp"
#include "sim/files/text_table.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/scenario/member_writer.hpp"

namespace stepcast::sim {
namespace {

/// What a member may be, in a word.
template <class Q>
std::string type_of(const Q&) {
  return fmt::format("\"{}\"", TableReader::example_of(Q{}));
}
std::string type_of(const std::int64_t&) { return "integer"; }
std::string type_of(const std::uint64_t&) { return "integer"; }
std::string type_of(const double&) { return "number"; }
std::string type_of(const bool&) { return "true|false"; }
std::string type_of(const std::string&) { return "text"; }
std::string type_of(const Ablation&) { return "words"; }
std::string type_of(const workloads::LayerPattern&) { return "text"; }
template <class T>
std::string type_of(const std::vector<T>&) {
  return "array";
}
template <class T>
std::string type_of(const std::optional<T>&) {
  return type_of(T{});
}
template <class E, class Choices>
std::string type_of(const E&, const Choices& choices) {
  std::string out;
  for (const auto& [name, meaning] : choices) out += (out.empty() ? "" : "|") + std::string(name);
  return out;
}

/// Collects the keys of one table, with the values of a scenario in which nothing is written.
class KeyLister : public MemberVisitor<KeyLister> {
 public:
  KeyLister(const char* table, std::vector<ScenarioKey>& out) : table_(table), out_(out) {}

  template <class T, class... Choices>
  void member(const Key& key, Bound bound, const T& value, const Choices&... choices) {
    TomlValue usual = toml_table({});
    if (bound != Bound::needed) MemberWriter(usual).member(key, bound, value, choices...);
    const TomlValue* found = usual.find(key.name);
    add(key, type_of(value, choices...), found != nullptr ? write_toml_value(*found) : "");
  }
  void part(const Key& key) { add(key, "table|text", ""); }

 private:
  void add(const Key& key, std::string type, std::string usual) {
    const std::string path = table_ + "." + key.name;
    if (key.may_be_best) type += "|best";
    out_.push_back({path, std::move(type), std::move(usual), key});
  }

  std::string table_;
  std::vector<ScenarioKey>& out_;
};

/// Collects the keys that may say "best".
class SearchedKeys : public MemberVisitor<SearchedKeys> {
 public:
  SearchedKeys(const char* table, std::vector<std::string>& out) : table_(table), out_(out) {}

  void member(const Key& key, Bound, const auto&...) { part(key); }
  void part(const Key& key) {
    if (key.may_be_best) out_.push_back(std::string(table_) + "." + key.name);
  }

 private:
  const char* table_;
  std::vector<std::string>& out_;
};

/// What holds where a key is not written: as the entry of the catalogue says, or what follows from
/// other keys.
std::string usual_of(const ScenarioKey& key) {
  for (const auto& [path, usual] : {std::pair{"model.name", ""},
                                    {"software.framework", "by [plan]"},
                                    {"software.version", "the newest"},
                                    {"cluster.nccl", "the software's"}})
    if (key.path == path) return usual;
  if (key.path == "model.sequence") return key.usual;
  for (const char* table : {"model.", "cluster.node.", "cluster.fabric.", "software."})
    if (key.path.starts_with(table)) return "the entry's";
  return key.usual;
}

std::vector<ScenarioKey> listed() {
  const Scenario usual;
  const BatchKeys batch;
  const CollectiveQuery query;
  std::vector<ScenarioKey> out{{"title", "text", "", {"title", "printed above the results"}},
                               {"what_if",
                                "text|array",
                                "",
                                {"what_if", "\"gpu.tensor_peak x2\", \"node.nic = 800 Gbit/s\""}}};
  visit_scenario(usual, batch, query, [&](const char* table) { return KeyLister(table, out); });
  for (ScenarioKey& key : out) key.usual = usual_of(key);
  constexpr Key name{"name", "the entry; other keys change it"};
  for (const char* entry : {"cluster.node.name", "cluster.node.gpu.name", "cluster.fabric.name"})
    out.push_back({entry, "text", "", name});
  out.push_back({"nccl.NCCL_ALGO", "text", "", {"NCCL_ALGO", "NCCL's own variables, by name"}});
  return out;
}

std::string_view table_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

}  // namespace

const std::vector<ScenarioKey>& scenario_keys() {
  static const std::vector<ScenarioKey> keys = listed();
  return keys;
}

std::vector<Option> key_options(std::initializer_list<std::string_view> tables) {
  std::vector<Option> out;
  for (const ScenarioKey& key : scenario_keys())
    if (*key.key.option != '\0' && std::ranges::count(tables, table_of(key.path)) > 0)
      out.push_back({key.key.option, key.key.argument, key.path.c_str(),
                     *key.key.help != '\0' ? key.key.help : key.type.c_str()});
  return out;
}

TextTable keys_table() {
  TextTable table;
  for (const char* heading : {"key", "value", "default", "meaning"})
    table.column(heading, "", TextTable::Align::left);
  for (const ScenarioKey& key : scenario_keys())
    table.row({key.path, key.type, key.usual, key.key.help});
  return table;
}

void check_known(const std::string& path, const std::string& where) {
  const auto first = [](std::string_view key) { return key.substr(0, key.find('.')); };
  const auto last = [](std::string_view key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> tables{"nccl", "sweep", "reference"};
  if (std::ranges::count(tables, first(path)) > 0) return;
  for (const ScenarioKey& key : scenario_keys())
    if (first(key.path) == first(path)) return;
  std::vector<std::string> words;
  for (const ScenarioKey& key : scenario_keys()) {
    tables.emplace_back(first(key.path));
    words.emplace_back(last(key.path));
  }
  std::string hint = suggestion(first(path), tables);
  if (const auto word = closest(last(path), words)) {
    const auto at = std::ranges::find(words, *word) - words.begin();
    hint = "did you mean '" + scenario_keys()[static_cast<std::size_t>(at)].path + "'?";
  }
  throw InputError(where, "unknown key '" + path + "'", hint);
}

bool may_be_best(std::string_view path) {
  static const std::vector<std::string> paths = [] {
    const Scenario scenario;
    const BatchKeys batch;
    const CollectiveQuery query;
    std::vector<std::string> out;
    visit_scenario(scenario, batch, query,
                   [&](const char* table) { return SearchedKeys(table, out); });
    return out;
  }();
  return std::ranges::find(paths, path) != paths.end();
}

}  // namespace stepcast::sim
