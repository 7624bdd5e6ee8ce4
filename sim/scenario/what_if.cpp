#include "sim/scenario/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/numbers.hpp"
#include "sim/files/suggest.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scenario/scenario_keys.hpp"

namespace stepcast::sim {
namespace {

constexpr std::pair<std::string_view, std::string_view> short_tables[] = {
    {"gpu.", "cluster.node.gpu."}, {"node.", "cluster.node."}, {"fabric.", "cluster.fabric."}};

/// A clock moves what the multiprocessors compute, and neither memory nor links.
constexpr std::string_view clock_word = "gpu.clock";
constexpr const char* clock_keys[] = {"cluster.node.gpu.tensor_peak", "cluster.node.gpu.tf32_peak",
                                      "cluster.node.gpu.fp8_peak", "cluster.node.gpu.fp4_peak",
                                      "cluster.node.gpu.fp32_peak"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

[[noreturn]] void refuse_form(std::string_view text, const std::string& where) {
  throw InputError(
      where, fmt::format("'{}' is no what-if", text),
      "write \"gpu.tensor_peak x2\", \"node.nic = 800 Gbit/s\" or \"gpu.memory +10 %\"");
}

std::vector<std::string> keys_of(std::string_view word, const std::string& where) {
  if (word == clock_word) return {std::begin(clock_keys), std::end(clock_keys)};
  std::string path(word);
  for (const auto& [shorter, table] : short_tables)
    if (word.starts_with(shorter)) path = std::string(table) + path.substr(shorter.size());
  std::vector<std::string> known{std::string(clock_word)};
  for (const ScenarioKey& key : scenario_keys()) {
    if (key.path == path || path.starts_with("nccl.")) return {path};
    known.push_back(key.path);
    for (const auto& [shorter, table] : short_tables)
      if (key.path.starts_with(table))
        known.push_back(std::string(shorter) + key.path.substr(table.size()));
  }
  const auto near = closest(word, known);
  throw InputError(where, fmt::format("unknown key '{}' in a what-if", word),
                   near ? fmt::format("did you mean '{}'?", *near) : "see stepcast show keys");
}

/// "x2", "* 2", "/ 2", "+10 %", "-10 %".
std::optional<double> factor_in(std::string_view change) {
  const char sign = change.front();
  change = trimmed(change.substr(1));
  const bool share = change.ends_with('%');
  if (share) change = trimmed(change.substr(0, change.size() - 1));
  const auto number = number_in<double>(change);
  if (!number || *number < 0) return std::nullopt;
  if (share && sign == '+') return 1 + *number / 100;
  if (share && sign == '-' && *number < 100) return 1 - *number / 100;
  if (!share && *number > 0 && (sign == 'x' || sign == '*')) return *number;
  if (!share && *number > 0 && sign == '/') return 1 / *number;
  return std::nullopt;
}

WhatIf read_one(std::string_view text, const std::string& where) {
  const std::size_t end = text.find_first_of(" =*/+-");
  if (end == std::string_view::npos) refuse_form(text, where);
  const std::string_view change = trimmed(text.substr(end));
  WhatIf out{.keys = keys_of(text.substr(0, end), where)};
  if (change.starts_with('=')) {
    out.value = trimmed(change.substr(1));
    if (out.value.empty()) refuse_form(text, where);
    return out;
  }
  const auto factor = change.empty() ? std::nullopt : factor_in(change);
  if (!factor) refuse_form(text, where);
  out.factor = *factor;
  return out;
}

/// Commas outside of brackets and quotes.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '"') quoted = !quoted;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c != ',' || (i < text.size() && (quoted || depth > 0))) continue;
    out.push_back(trimmed(text.substr(from, i - from)));
    from = i + 1;
  }
  return out;
}

[[noreturn]] void refuse_factor(const std::string& key, const std::string& why,
                                const std::string& where) {
  throw InputError(where, fmt::format("a factor on '{}' has no effect: {}", key, why),
                   fmt::format("give a value: \"{} = ...\"", key));
}

/// "989.4 TFLOP/s" times a factor; integers stay whole.
TomlValue scaled_value(const TomlValue& value, double factor, const std::string& key,
                       const std::string& where) {
  if (const auto* count = std::get_if<std::int64_t>(&value.data)) {
    const double out = static_cast<double>(*count) * factor;
    if (*count == 0) refuse_factor(key, "it is 0 here", where);
    if (std::abs(out - std::round(out)) > 1e-9 * out)
      throw InputError(
          where, fmt::format("'{}' is {}: times {} it is no whole number", key, *count, factor));
    return {static_cast<std::int64_t>(std::llround(out)), where};
  }
  if (const auto* number = std::get_if<double>(&value.data)) {
    if (*number == 0) refuse_factor(key, "it is 0 here", where);
    return {*number * factor, where};
  }
  const std::string text = value.text() != nullptr ? *value.text() : "";
  const std::size_t end = text.find(' ');
  const auto number = number_in<double>(std::string_view(text).substr(0, end));
  if (end == std::string::npos || !number)
    refuse_factor(key, "it is no quantity but " + write_toml_value(value), where);
  if (*number == 0) refuse_factor(key, "it is 0 here", where);
  return toml_text(fmt::format("{}{}", *number * factor, text.substr(end)), where);
}

/// A key of a fabric that the document leaves to the default is a key of that one.
void name_fabric(const std::string& key, TomlValue& document, const TomlValue& resolved) {
  if (!key.starts_with("cluster.fabric.") || find_path(document, "cluster.fabric") != nullptr)
    return;
  if (const TomlValue* name = find_path(resolved, "cluster.fabric.name"))
    set_path(document, "cluster.fabric", *name);
}

/// Sets what one of them names, in the document and in what it resolves to.
void apply(const WhatIf& what_if, TomlValue& document, TomlValue& resolved,
           const std::string& where) {
  const bool several = what_if.keys.size() > 1;  // of these a GPU may lack some
  std::size_t done = 0;
  for (const std::string& key : what_if.keys) {
    TomlValue value = read_setting(what_if.value, where);
    if (what_if.value.empty()) {
      const TomlValue* now = find_path(resolved, key);
      const bool lacks =
          now == nullptr || (now->text() != nullptr && now->text()->starts_with("0 "));
      if (several && lacks) continue;
      if (now == nullptr) refuse_factor(key, "it is not set here", where);
      value = scaled_value(*now, what_if.factor, key, where);
    } else if (several) {
      throw InputError(where, "'" + std::string(clock_word) + "' takes a factor",
                       "it stands for the peaks of a GPU");
    }
    ++done;
    name_fabric(key, document, resolved);
    set_path(document, key, value);
    set_path(resolved, key, value);
  }
  ensures(done > 0, "every GPU has a peak");
}

std::vector<std::string> texts_in(const TomlValue& value) {
  if (const auto* text = value.text()) return {*text};
  std::vector<std::string> out;
  if (value.array() != nullptr)
    for (const TomlValue& item : *value.array())
      if (item.text() != nullptr) out.push_back(*item.text());
  if (value.array() == nullptr || out.size() != value.array()->size())
    throw InputError(value.where, "'what_if' must be a text, or an array of texts",
                     "e.g. \"gpu.tensor_peak x2\"");
  return out;
}

}  // namespace

std::vector<WhatIf> read_what_ifs(const std::string& text, const std::string& where) {
  std::vector<WhatIf> out;
  if (trimmed(text).empty() || trimmed(text) == "none") return out;
  for (const std::string_view part : parts_of(text)) out.push_back(read_one(part, where));
  return out;
}

TomlValue with_what_ifs(const TomlValue& document, const Catalogue& catalogue) {
  TomlValue out = document;
  const TomlValue* found = document.find("what_if");
  if (found == nullptr) return out;
  out.erase("what_if");
  TomlValue resolved = resolved_document(read_scenario(out, catalogue));
  for (const std::string& text : texts_in(*found))
    for (const WhatIf& what_if : read_what_ifs(text, found->where))
      apply(what_if, out, resolved, found->where);
  return out;
}

}  // namespace stepcast::sim
