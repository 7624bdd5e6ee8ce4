// A TOML document as a plain value that knows where every part of it stands. Keys keep the order of
// the file, so that a sweep runs in the order it was written. Knows no scenario; toml++ stays in
// the .cpp file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stepcast::sim {

struct TomlEntry;

struct TomlValue {
  using Array = std::vector<TomlValue>;
  /// A type of its own: of strings, numbers and vectors alone, libstdc++ (12) takes a variant for
  /// one that is never without a value, and crashes where copying it throws for want of memory.
  struct Table : std::vector<TomlEntry> {
    using std::vector<TomlEntry>::vector;
  };

  std::variant<std::string, std::int64_t, double, bool, Array, Table> data;
  std::string where;  // "file:line" or "--set"

  const std::string* text() const { return std::get_if<std::string>(&data); }
  const Array* array() const { return std::get_if<Array>(&data); }
  const Table* table() const { return std::get_if<Table>(&data); }
  Table* table() { return std::get_if<Table>(&data); }

  const TomlValue* find(
      std::string_view key) const;  // null when this is no table or has no such key
  TomlValue* find(std::string_view key);
  /// Adds the key or replaces its value.
  void set(std::string_view key, TomlValue value);
  void erase(std::string_view key);
};

struct TomlEntry {
  std::string key;
  std::string where;
  TomlValue value;
};

TomlValue toml_table(std::string where);
TomlValue toml_text(std::string text, std::string where);

/// "a table", "an integer", ...
std::string_view kind_of(const TomlValue&);

/// Reads a whole file. Throws InputError with file:line on a file that is missing, larger than
/// 4 MiB, nested deeper than 32 levels, or not TOML.
TomlValue read_toml_file(const std::string& path);
TomlValue read_toml(std::string_view text, const std::string& name);

/// The text of a file, with the errors of read_toml_file().
std::string read_toml_text(const std::string& path);
/// What a line `key = "..."` above the first table says, at a hundredth of the cost of reading it
/// all. None where there is no such line or the text is not that plain: read it then.
std::optional<std::string> peek_text(std::string_view toml, std::string_view key);
/// Likewise of a line `key = ["...", "..."]`; an empty list where there is no such line.
std::optional<std::vector<std::string>> peek_texts(std::string_view toml, std::string_view key);

/// The value of a command-line setting: TOML where it is TOML, else a plain string.
TomlValue read_setting(std::string_view text, const std::string& where);

/// Sets "cluster.node.nic" and makes the tables on the way. A string on the way becomes a table
/// with that `name`, so one member of a catalogue entry can be changed.
void set_path(TomlValue& root, std::string_view path, const TomlValue& value);

/// What stands at "cluster.node.nic"; null where nothing does.
const TomlValue* find_path(const TomlValue& root, std::string_view path);
/// Takes it out, where it is there.
void erase_path(TomlValue& root, std::string_view path);

/// The document as TOML text, strings quoted, numbers exact.
std::string write_toml(const TomlValue& document);
/// One value as it would stand behind "key = ".
std::string write_toml_value(const TomlValue&);

}  // namespace stepcast::sim
