// The only file that knows toml++: text to TomlValue, of what toml_plain.hpp does not read.
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/toml_plain.hpp"
#include "sim/files/toml_value.hpp"

namespace stepcast::sim {
namespace {

// Scenarios are some kilobytes; what is larger or deeper is a mistake, and the parser recurses.
constexpr std::int64_t max_file_bytes = 4 << 20;
constexpr const char* usual_size = "a scenario is a few kilobytes of TOML";
constexpr int max_depth = 32;

std::string at(const std::string& name, std::size_t line) {
  return line == 0 ? name : name + ":" + std::to_string(line);
}

/// Walks over TOML text outside strings and comments: brackets that are open at once, and dots in
/// one key (a dotted key nests too).
class DepthGuard {
 public:
  DepthGuard(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void check() {
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (c == '#') {
        i_ = std::min(text_.find('\n', i_), text_.size());
      } else if (c == '"' || c == '\'') {
        skip_string(c);
      } else {
        count(c);
        ++i_;
      }
    }
  }

 private:
  void count(char c) {
    if (c == '\n') ++line_;
    if (c == '[' || c == '{') ++depth_;
    if (c == ']' || c == '}') depth_ = std::max(0, depth_ - 1);
    if (c == '.')
      ++dots_;
    else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos)
      dots_ = 0;
    if (depth_ + dots_ > max_depth)
      throw InputError(at(name_, line_),
                       "nested deeper than " + std::to_string(max_depth) + " levels");
  }

  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool multiline = text_.substr(i_, 3) == triple;
    i_ += multiline ? 3 : 1;
    while (i_ < text_.size()) {
      const char c = text_[i_];
      if (c == '\n') {
        if (!multiline) return;  // not closed: the parser says so
        ++line_;
      }
      if (c == '\\' && quote == '"') {
        if (i_ + 1 < text_.size() && text_[i_ + 1] == '\n') ++line_;
        i_ += 2;
        continue;
      }
      if (multiline ? text_.substr(i_, 3) == triple : c == quote) {
        i_ += multiline ? 3 : 1;
        return;
      }
      ++i_;
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t i_ = 0, line_ = 1;
  int depth_ = 0, dots_ = 0;
};

TomlValue convert(const toml::node& node, const std::string& name, int depth) {
  const std::string where = at(name, node.source().begin.line);
  if (depth > max_depth)
    throw InputError(where, "nested deeper than " + std::to_string(max_depth) + " levels");
  if (const auto* text = node.as_string()) return {text->get(), where};
  if (const auto* integer = node.as_integer()) return {integer->get(), where};
  if (const auto* number = node.as_floating_point()) return {number->get(), where};
  if (const auto* flag = node.as_boolean()) return {flag->get(), where};
  if (const auto* items = node.as_array()) {
    TomlValue out{TomlValue::Array{}, where};
    for (const toml::node& item : *items)
      std::get<TomlValue::Array>(out.data).push_back(convert(item, name, depth + 1));
    return out;
  }
  if (const auto* table = node.as_table()) {
    // toml++ sorts keys by name; the order of the file is the order of a sweep.
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, value] : *table) entries.emplace_back(&key, &value);
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const auto& x = a.first->source().begin;
      const auto& y = b.first->source().begin;
      return std::pair(x.line, x.column) < std::pair(y.line, y.column);
    });
    TomlValue out{TomlValue::Table{}, where};
    for (const auto& [key, value] : entries)
      out.table()->push_back({std::string(key->str()), at(name, key->source().begin.line),
                              convert(*value, name, depth + 1)});
    return out;
  }
  throw InputError(where, "dates and times have no meaning here");
}

/// toml++ says "cannot redefine existing integer 'x'"; users say duplicate.
std::string plain_words(std::string_view message) {
  std::string text(message);
  const std::size_t redefine = text.find("cannot redefine existing ");
  if (redefine == std::string::npos) return "not TOML: " + text;
  const std::size_t quote = text.find('\'', redefine);
  const std::size_t end = quote == std::string::npos ? quote : text.find('\'', quote + 1);
  if (end == std::string::npos) return "duplicate key: " + text;
  return "duplicate key " + text.substr(quote, end - quote + 1);
}

/// Whether it begins as no value of TOML does: zero2, llama2-7b. Sooner than an error of toml++.
bool is_word(std::string_view text) {
  const char first = text.empty() ? ' ' : text.front();
  if (!(first >= 'a' && first <= 'z') && !(first >= 'A' && first <= 'Z')) return false;
  return std::ranges::none_of(std::array{"true", "false", "inf", "nan"},
                              [&](const char* word) { return text.starts_with(word); });
}

}  // namespace

TomlValue read_toml(std::string_view text, const std::string& name) {
  if (std::ssize(text) > max_file_bytes) throw InputError(name, "larger than 4 MiB", usual_size);
  if (auto plain = read_plain_toml(text, name)) return *std::move(plain);
  return read_any_toml(text, name);
}

TomlValue read_any_toml(std::string_view text, const std::string& name) {
  DepthGuard(text, name).check();
  try {
    return convert(toml::parse(text, std::string_view(name)), name, 0);
  } catch (const toml::parse_error& error) {
    throw InputError(at(name, error.source().begin.line), plain_words(error.description()));
  }
}

std::string read_toml_text(const std::string& path) {
  return read_input(path, max_file_bytes, usual_size);
}

TomlValue read_toml_file(const std::string& path) { return read_toml(read_toml_text(path), path); }

namespace {

/// What follows `key =` on a line above the first table; "" where there is no such line, none where
/// it may stand within a text of several lines.
std::optional<std::string_view> peek_value(std::string_view toml, std::string_view key) {
  for (std::size_t at = 0, end = 0; at < toml.size(); at = end + 1) {
    end = std::min(toml.find('\n', at), toml.size());
    std::string_view line = toml.substr(at, end - at);
    if (line.starts_with('[')) break;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!line.starts_with('=')) continue;
    for (const char* multiline : {"\"\"\"", "'''"})
      if (toml.substr(0, end).find(multiline) != std::string_view::npos) return std::nullopt;
    line.remove_prefix(1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line;
  }
  return "";
}

/// The text in quotes that `rest` begins with, taken from it; none for another, or with escapes.
std::optional<std::string> plain_text(std::string_view& rest) {
  if (!rest.starts_with('"')) return std::nullopt;
  const std::size_t quote = rest.find('"', 1);
  if (quote == std::string_view::npos || rest.substr(0, quote).find('\\') != rest.npos)
    return std::nullopt;
  std::string text(rest.substr(1, quote - 1));
  rest.remove_prefix(quote + 1);
  return text;
}

}  // namespace

std::optional<std::string> peek_text(std::string_view toml, std::string_view key) {
  auto value = peek_value(toml, key);
  return value ? plain_text(*value) : std::nullopt;
}

std::optional<std::vector<std::string>> peek_texts(std::string_view toml, std::string_view key) {
  auto value = peek_value(toml, key);
  std::vector<std::string> texts;
  if (!value) return std::nullopt;
  if (value->empty() || value->starts_with("[]")) return texts;
  for (char before = '['; value->starts_with(before); before = ',') {
    value->remove_prefix(1);
    value->remove_prefix(std::min(value->find_first_not_of(' '), value->size()));
    auto text = plain_text(*value);
    if (!text) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  if (!value->starts_with(']')) return std::nullopt;
  return texts;
}

TomlValue read_setting(std::string_view text, const std::string& where) {
  if (is_word(text)) return toml_text(std::string(text), where);
  try {
    const TomlValue document = read_toml("value = " + std::string(text) + "\n", where);
    if (document.table()->size() == 1) {
      TomlValue value = document.table()->front().value;
      value.where = where;
      return value;
    }
  } catch (const InputError&) {
    // not TOML: a bare word such as zero2 or 64MiB
  }
  return toml_text(std::string(text), where);
}

}  // namespace stepcast::sim
