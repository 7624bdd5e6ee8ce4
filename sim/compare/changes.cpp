#include "sim/compare/changes.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/scenario/file.hpp"

namespace stepcast::sim {
namespace {

/// Tables that name an entry: with another name all that they say is one change.
struct EntryTable {
  std::string_view table;
  std::vector<std::string_view> names;
};
const std::vector<EntryTable>& entry_tables() {
  static const std::vector<EntryTable> tables{{"cluster.node", {"name"}},
                                              {"cluster.node.gpu", {"name"}},
                                              {"cluster.fabric", {"name"}},
                                              {"model", {"name"}},
                                              {"software", {"framework", "version"}}};
  return tables;
}

/// Says how long the sequences are, not which model it is.
constexpr std::string_view beside_entry = "model.sequence";

bool lies_in(std::string_view path, std::string_view table) {
  return path.size() > table.size() && path.starts_with(table) && path[table.size()] == '.';
}

bool same_at(const DocumentPair& documents, const std::string& path) {
  const TomlValue *a = find_path(documents.from, path), *b = find_path(documents.to, path);
  if (a == nullptr || b == nullptr) return a == b;
  return same_value(*a, *b);
}

bool other_entry(const DocumentPair& documents, const EntryTable& entry) {
  return std::ranges::any_of(entry.names, [&](std::string_view name) {
    return !same_at(documents, std::string(entry.table) + "." + std::string(name));
  });
}

/// Keys of [cost] that a list of prices says with the first of them.
constexpr std::array<std::array<std::string_view, 5>, 2> with_price{
    {{"cost.price", "cost.price_low", "cost.price_high", "cost.source", "cost.date"},
     {"cost.capex", "cost.capex_low", "cost.capex_high", "cost.source", "cost.date"}}};

/// The table that is changed as a whole and holds `path`, or the price; else `path` itself.
std::string changed_with(const DocumentPair& documents, const std::string& path) {
  const std::string top = path.substr(0, path.find('.'));
  if (documents.from.find(top) == nullptr || documents.to.find(top) == nullptr) return top;
  if (path == beside_entry) return path;
  for (const EntryTable& entry : entry_tables())
    if (lies_in(path, entry.table) && other_entry(documents, entry))
      return std::string(entry.table);
  for (const auto& keys : with_price)
    if (std::ranges::count(keys, path) > 0 && !same_at(documents, std::string(keys.front())))
      return std::string(keys.front());
  return path;
}

/// "dgx-h100", "pytorch-fsdp2 2.6", "8"
std::string told_at(const TomlValue& document, const std::string& path) {
  const TomlValue* value = find_path(document, path);
  if (value == nullptr) return {};
  if (value->table() == nullptr)
    return value->text() != nullptr ? *value->text() : write_toml_value(*value);
  std::string out;
  for (const EntryTable& entry : entry_tables())
    for (const std::string_view name : entry.names)
      if (entry.table == path)
        if (const TomlValue* told = value->find(name); told != nullptr && told->text() != nullptr)
          out += (out.empty() ? "" : " ") + *told->text();
  return out.empty() ? "[" + path + "]" : out;
}

void add_settings(const TomlValue& table, const std::string& prefix, std::vector<Setting>& out) {
  for (const TomlEntry& entry : *table.table()) {
    const std::string path = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.table() != nullptr)
      add_settings(entry.value, path, out);
    else
      out.push_back({path, entry.value});
  }
}

bool all_gpus(const Scenario& s) { return s.gpus == s.nodes * s.node.gpus; }
bool nccl_follows(const Scenario& s) { return std::ranges::count(s.changed, "cluster.nccl") == 0; }

}  // namespace

std::vector<Setting> settings_in(const TomlValue& document) {
  std::vector<Setting> out;
  add_settings(document, "", out);
  return out;
}

DocumentPair documents_of(const Scenario& from, const Scenario& to) {
  DocumentPair out{resolved_document(from), resolved_document(to)};
  const auto leave_open = [&](const char* path, bool follows) {
    if (!follows) return;
    erase_path(out.from, path);
    erase_path(out.to, path);
  };
  leave_open("title", true);
  leave_open("plan.stage_layers", from.stage_layers.empty() && to.stage_layers.empty());
  leave_open("plan.reduce", !from.reduce && !to.reduce);
  leave_open("cluster.gpus", all_gpus(from) && all_gpus(to));
  leave_open("cluster.nccl", nccl_follows(from) && nccl_follows(to));
  return out;
}

std::vector<Change> changes_between(const DocumentPair& documents) {
  std::vector<Setting> all = settings_in(documents.from);
  for (Setting& setting : settings_in(documents.to))
    if (find_path(documents.from, setting.path) == nullptr) all.push_back(std::move(setting));
  std::vector<Change> out;
  for (const Setting& setting : all) {
    if (same_at(documents, setting.path)) continue;
    const std::string key = changed_with(documents, setting.path);
    auto change = std::ranges::find(out, key, &Change::key);
    if (change == out.end())
      change = out.insert(out.end(),
                          Change{key, told_at(documents.from, key), told_at(documents.to, key)});
    const TomlValue* after = find_path(documents.to, setting.path);
    change->keys.emplace_back(setting.path,
                              after != nullptr ? std::optional(*after) : std::nullopt);
  }
  return out;
}

void make(const Change& change, TomlValue& document) {
  for (const auto& [path, value] : change.keys)
    if (value)
      set_path(document, path, *value);
    else
      erase_path(document, path);
}

}  // namespace stepcast::sim
