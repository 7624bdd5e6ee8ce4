#include "sim/files/toml_value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/check.hpp"

namespace stepcast::sim {

const TomlValue* TomlValue::find(std::string_view key) const {
  if (const Table* entries = table())
    for (const TomlEntry& entry : *entries)
      if (entry.key == key) return &entry.value;
  return nullptr;
}

TomlValue* TomlValue::find(std::string_view key) {
  return const_cast<TomlValue*>(std::as_const(*this).find(key));
}

void TomlValue::set(std::string_view key, TomlValue value) {
  expects(table() != nullptr, "keys are set in a table");
  for (TomlEntry& entry : *table()) {
    if (entry.key != key) continue;
    entry.where = value.where;
    entry.value = std::move(value);
    return;
  }
  std::string place = value.where;
  table()->push_back({std::string(key), std::move(place), std::move(value)});
}

void TomlValue::erase(std::string_view key) {
  expects(table() != nullptr, "keys are erased from a table");
  std::erase_if(*table(), [&](const TomlEntry& entry) { return entry.key == key; });
}

TomlValue toml_table(std::string where) { return {TomlValue::Table{}, std::move(where)}; }
TomlValue toml_text(std::string text, std::string where) {
  return {std::move(text), std::move(where)};
}

std::string_view kind_of(const TomlValue& value) {
  static constexpr std::string_view names[] = {"a string",           "an integer", "a number",
                                               "a true/false value", "an array",   "a table"};
  return names[value.data.index()];
}

void set_path(TomlValue& root, std::string_view path, const TomlValue& value) {
  const std::size_t dot = path.find('.');
  if (path.empty() || dot == 0 || dot + 1 == path.size())
    throw InputError(value.where, "'" + std::string(path) + "' is no key",
                     "write table.key, e.g. cluster.nodes");
  if (dot == std::string_view::npos) return root.set(path, value);

  const std::string_view head = path.substr(0, dot);
  TomlValue* child = root.find(head);
  if (child == nullptr) {
    root.set(head, toml_table(value.where));
    child = root.find(head);
  }
  if (child->text() != nullptr) {
    TomlValue named = toml_table(child->where);
    named.set("name", *child);
    *child = std::move(named);
  }
  if (child->table() == nullptr)
    throw InputError(value.where, "'" + std::string(head) + "' is " + std::string(kind_of(*child)) +
                                      ", so it has no key '" + std::string(path.substr(dot + 1)) +
                                      "'");
  set_path(*child, path.substr(dot + 1), value);
}

const TomlValue* find_path(const TomlValue& root, std::string_view path) {
  const std::size_t dot = path.find('.');
  const TomlValue* child = root.find(path.substr(0, dot));
  if (child == nullptr || dot == std::string_view::npos) return child;
  return find_path(*child, path.substr(dot + 1));
}

void erase_path(TomlValue& root, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (root.table() == nullptr) return;
  if (dot == std::string_view::npos) return root.erase(path);
  if (TomlValue* child = root.find(path.substr(0, dot))) erase_path(*child, path.substr(dot + 1));
}

namespace {

std::string in_quotes(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (code < 0x20 || code == 0x7F) {
      out += "\\u00";
      out += digits[code >> 4];
      out += digits[code & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool is_bare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

std::string key_text(std::string_view key) {
  return is_bare(key) ? std::string(key) : in_quotes(key);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string out(buffer, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";  // stays a float when read again
  return out;
}

bool is_table_array(const TomlValue& value) {
  const auto* items = value.array();
  return items != nullptr && !items->empty() &&
         std::all_of(items->begin(), items->end(),
                     [](const TomlValue& item) { return item.table() != nullptr; });
}

void write_table(std::string& out, const TomlValue& table, const std::string& path) {
  for (const TomlEntry& entry : *table.table())
    if (entry.value.table() == nullptr && !is_table_array(entry.value))
      out += key_text(entry.key) + " = " + write_toml_value(entry.value) + "\n";
  for (const TomlEntry& entry : *table.table()) {
    const std::string name = path.empty() ? key_text(entry.key) : path + "." + key_text(entry.key);
    if (entry.value.table() != nullptr) {
      out += "\n[" + name + "]\n";
      write_table(out, entry.value, name);
    } else if (is_table_array(entry.value)) {
      for (const TomlValue& item : *entry.value.array()) {
        out += "\n[[" + name + "]]\n";
        write_table(out, item, name);
      }
    }
  }
}

}  // namespace

std::string write_toml_value(const TomlValue& value) {
  if (const auto* text = value.text()) return in_quotes(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value.data)) return number_text(*number);
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag ? "true" : "false";
  std::string out;
  if (const auto* items = value.array()) {
    for (const TomlValue& item : *items) out += (out.empty() ? "" : ", ") + write_toml_value(item);
    return "[" + out + "]";
  }
  for (const TomlEntry& entry : *value.table())
    out += (out.empty() ? "" : ", ") + key_text(entry.key) + " = " + write_toml_value(entry.value);
  return "{" + out + "}";
}

std::string write_toml(const TomlValue& document) {
  expects(document.table() != nullptr, "a document is a table");
  std::string out;
  write_table(out, document, "");
  return out;
}

}  // namespace stepcast::sim
