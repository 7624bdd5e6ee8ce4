#include "sim/study/sweep.hpp"

#include <algorithm>

#include "engine/check.hpp"
#include "sim/files/budget.hpp"
#include "sim/files/toml_table.hpp"
#include "sim/scenario/default_software.hpp"

namespace stepcast::sim {
namespace {

/// "cluster.nodes" = ... and [sweep.cluster] nodes = ... mean the same.
std::vector<Setting> flatten(const TomlValue& table, const std::string& prefix) {
  std::vector<Setting> out;
  for (const TomlEntry& entry : *table.table()) {
    const std::string path = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.table() == nullptr) {
      out.push_back({path, entry.value});
      continue;
    }
    for (Setting& inner : flatten(entry.value, path)) out.push_back(std::move(inner));
  }
  return out;
}

void refuse_duplicates(const std::vector<std::string>& keys, const std::string& where) {
  for (std::size_t i = 0; i < keys.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (keys[i] == keys[j]) throw InputError(where, "'" + keys[i] + "' is swept twice");
}

std::vector<SweepPoint> read_joint_points(const TomlValue& value, std::vector<std::string>& keys) {
  if (value.array() == nullptr)
    throw InputError(value.where, "'point' in [sweep] must be written [[sweep.point]]");
  std::vector<SweepPoint> out;
  for (const TomlValue& item : *value.array()) {
    if (item.table() == nullptr)
      throw InputError(item.where, "a [[sweep.point]] must be a table of keys set together");
    out.push_back(flatten(item, ""));
    if (out.back().empty()) throw InputError(item.where, "a [[sweep.point]] without keys");
    for (const Setting& setting : out.back())
      if (std::find(keys.begin(), keys.end(), setting.path) == keys.end())
        keys.push_back(setting.path);
  }
  if (out.empty()) throw InputError(value.where, "a sweep with zero points");
  return out;
}

void check_axis(const Setting& axis) {
  const auto* values = axis.value.array();
  if (values == nullptr)
    throw InputError(axis.value.where, "'" + axis.path + "' in [sweep] must be an array of values",
                     "e.g. [1, 2, 4]");
  if (values->empty())
    throw InputError(axis.value.where, "'" + axis.path + "' in [sweep] is empty",
                     "a sweep with zero points has no result");
}

void refuse_too_many(const Study& study, const std::string& where) {
  auto points = static_cast<double>(study.joint.size());
  for (const Setting& axis : study.axes) points *= static_cast<double>(axis.value.array()->size());
  const TomlValue* no_limit = find_path(study.whole, "run.no_limit");
  const bool* lifted = no_limit == nullptr ? nullptr : std::get_if<bool>(&no_limit->data);
  if (lifted == nullptr || !*lifted) stay_within(budget.points, points, "points of a sweep", where);
  if (points > 1e15) throw InputError(where, "a sweep of more points than can be counted");
}

void read_sweep(const TomlValue& sweep, Study& study) {
  if (sweep.table() == nullptr) throw InputError(sweep.where, "[sweep] must be a table");
  for (const TomlEntry& entry : *sweep.table()) {
    if (entry.key == "point") {
      study.joint = read_joint_points(entry.value, study.keys);
      continue;
    }
    TomlValue one = toml_table(entry.where);
    one.set(entry.key, entry.value);
    for (Setting& axis : flatten(one, "")) study.axes.push_back(std::move(axis));
  }
  for (const Setting& axis : study.axes) {
    check_axis(axis);
    study.keys.push_back(axis.path);
  }
  refuse_too_many(study, sweep.where);
  if (study.keys.empty())
    throw InputError(sweep.where, "[sweep] is empty", "a sweep with zero points has no result");
  refuse_duplicates(study.keys, sweep.where);
  study.is_sweep = true;
}

/// rows = [[16, "1 MiB", 73.0], ...]: one value per key of `keys`, then the figure, if one is
/// known.
void read_rows(TableReader& table, const std::vector<std::string>& keys, const SweepPoint& fixed,
               Reference& reference) {
  const TomlValue* rows = table.required("rows", table.value("rows"));
  const std::string shape = "each of 'rows' in [[reference]] must be " +
                            std::to_string(keys.size()) + " values and the figure";
  if (rows->array() == nullptr) table.fail("rows", shape);
  for (const TomlValue& row : *rows->array()) {
    const std::size_t cells = row.array() == nullptr ? 0 : row.array()->size();
    if (cells != keys.size() && cells != keys.size() + 1) throw InputError(row.where, shape);
    Reference::Row out{fixed, std::nullopt};
    for (std::size_t i = 0; i < keys.size(); ++i) out.at.push_back({keys[i], (*row.array())[i]});
    if (cells > keys.size()) {
      const TomlValue& figure = row.array()->back();
      if (const auto* real = std::get_if<double>(&figure.data))
        out.value = *real;
      else if (const auto* integer = std::get_if<std::int64_t>(&figure.data))
        out.value = static_cast<double>(*integer);
      else
        throw InputError(row.where, shape);
    }
    reference.rows.push_back(std::move(out));
  }
}

Reference read_reference(const TomlValue& value) {
  TableReader table(value, "reference");
  Reference reference;
  reference.metric = table.required("metric", table.text("metric"));
  reference.source = table.required("source", table.text("source"));
  reference.note = table.text("note").value_or("");
  if (const TomlValue* from = table.table("change_from"))
    reference.change_from = flatten(*from, "");
  SweepPoint fixed;
  if (const TomlValue* at = table.table("at")) fixed = flatten(*at, "");
  const auto keys = table.required("keys", table.texts("keys"));
  read_rows(table, keys, fixed, reference);
  table.finish();
  return reference;
}

}  // namespace

const TomlValue* setting_of(const SweepPoint& point, const std::string& path) {
  for (const Setting& setting : point)
    if (setting.path == path) return &setting.value;
  return nullptr;
}

bool same_value(const TomlValue& a, const TomlValue& b) {
  return write_toml_value(a) == write_toml_value(b);
}

std::size_t Study::num_points() const {
  std::size_t points = joint.size();
  for (const Setting& axis : axes) points *= axis.value.array()->size();
  return points;
}

SweepPoint Study::point(std::size_t index) const {
  SweepPoint swept;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const TomlValue::Array& values = *axis->value.array();
    swept.push_back({axis->path, values[index % values.size()]});
    index /= values.size();
  }
  SweepPoint out = joint.at(index);
  out.insert(out.end(), swept.rbegin(), swept.rend());
  return out;
}

TomlValue Study::document_of(const SweepPoint& point) const {
  TomlValue document = base;
  for (const Setting& setting : point) set_path(document, setting.path, setting.value);
  return document;
}

Study read_study(TomlValue document) {
  document = with_framework(std::move(document));
  Study study;
  study.whole = document;
  if (const TomlValue* sweep = document.find("sweep")) read_sweep(*sweep, study);
  if (const TomlValue* references = document.find("reference")) {
    if (references->array() == nullptr)
      throw InputError(references->where, "'reference' must be written [[reference]]");
    for (const TomlValue& item : *references->array())
      study.references.push_back(read_reference(item));
  }
  document.erase("sweep");
  document.erase("reference");
  study.base = std::move(document);
  return study;
}

namespace {

/// Takes `path` out of a [sweep] table, nested or dotted. Returns whether the table is empty now.
bool drop_axis(TomlValue& table, const std::string& path) {
  table.erase(path);
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    TomlValue* inner = table.find(path.substr(0, dot));
    if (inner != nullptr && inner->table() != nullptr && drop_axis(*inner, path.substr(dot + 1)))
      table.erase(path.substr(0, dot));
  }
  return table.table()->empty();
}

}  // namespace

void override_key(TomlValue& document, const std::string& path, const TomlValue& value) {
  constexpr std::string_view sweep_prefix = "sweep.";
  if (path.starts_with(sweep_prefix)) {
    const std::string axis = path.substr(sweep_prefix.size());
    if (document.find("sweep") == nullptr) document.set("sweep", toml_table(value.where));
    TomlValue* sweep = document.find("sweep");
    if (sweep->table() == nullptr) throw InputError(sweep->where, "[sweep] must be a table");
    drop_axis(*sweep, axis);
    sweep->set(axis, value);
    return;
  }
  TomlValue* sweep = document.find("sweep");
  if (sweep != nullptr && sweep->table() != nullptr && !sweep->table()->empty()) {
    if (const TomlValue* joint = sweep->find("point");
        joint != nullptr && joint->array() != nullptr)
      for (const TomlValue& item : *joint->array())
        if (item.table() != nullptr)
          for (const Setting& setting : flatten(item, ""))
            if (setting.path == path)
              throw InputError(value.where, "'" + path + "' is set by [[sweep.point]] of the file",
                               "it cannot be set for all points at once");
    if (drop_axis(*sweep, path)) document.erase("sweep");
  }
  set_path(document, path, value);
}

}  // namespace stepcast::sim
