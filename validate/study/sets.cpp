#include "validate/study/sets.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/toml_table.hpp"

namespace stepcast::validate {
namespace {

StudySet set_of(const sim::TomlValue& table) {
  sim::TableReader reader(table, "set");
  StudySet out;
  out.preset = true;
  out.name = reader.required("name", reader.text("name"));
  out.says = reader.required("says", reader.text("says"));
  reader.required("evidence", reader.text("evidence"));  // for the reader of the file
  if (const sim::TomlValue* keys = reader.table("keys"))
    for (const sim::TomlEntry& entry : *keys->table())
      out.keys.emplace_back(entry.key, entry.value);
  if (const sim::TomlValue* nodes = reader.table("nodes"))
    for (const sim::TomlEntry& entry : *nodes->table()) {
      if (entry.value.text() == nullptr)
        throw InputError(entry.where, "'" + entry.key + "' in [set.nodes] is no name of a node");
      out.nodes[entry.key] = *entry.value.text();
    }
  if (const sim::TomlValue* local = reader.value("local_batch")) out.local_batch = *local;
  reader.finish();
  return out;
}

}  // namespace

StudySet with_nccl(const std::vector<std::pair<std::string, std::string>>& variables) {
  StudySet out;
  for (const auto& [name, value] : variables)
    out.keys.emplace_back("nccl." + name, sim::toml_text(value, "the set"));
  return out;
}

std::vector<StudySet> read_study_sets(
    const std::string& path, const std::vector<std::pair<std::string, sim::TomlValue>>& more) {
  const sim::TomlValue document = sim::read_toml_file(path);
  sim::TableReader root(document, "");
  const sim::TomlValue* list = root.required("set", root.value("set"));
  if (list->array() == nullptr || list->array()->empty())
    throw InputError(list->where, "'set' is no list of tables", "[[set]]");
  std::vector<StudySet> out;
  for (const sim::TomlValue& table : *list->array()) {
    if (table.table() == nullptr) throw InputError(table.where, "a set is a table", "[[set]]");
    StudySet set = set_of(table);
    if (std::ranges::find(out, set.name, &StudySet::name) != out.end())
      throw InputError(table.where, "set \"" + set.name + "\" stands twice");
    set.keys.insert(set.keys.end(), more.begin(), more.end());
    out.push_back(std::move(set));
  }
  root.finish();
  return out;
}

}  // namespace stepcast::validate
