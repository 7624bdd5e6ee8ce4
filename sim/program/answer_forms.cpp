#include "sim/program/answer_forms.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;
using Leaves = std::vector<std::pair<std::string, std::string>>;

/// A number as JSON writes it, exactly; a list's members behind each other.
std::string cell_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "";
  const bool plain_list = value.is_array() && std::ranges::none_of(value, [](const Json& item) {
                            return item.is_structured();
                          });
  if (!plain_list) return json_text(value);
  std::string out;
  for (const Json& item : value) out += (out.empty() ? "" : "; ") + cell_of(item);
  return out;
}

void add_leaves(Leaves& out, const std::string& path, const Json& value) {
  if (!value.is_object()) return out.emplace_back(path, cell_of(value)), void();
  for (const auto& [key, inside] : value.items())
    add_leaves(out, path.empty() ? key : path + "." + key, inside);
}

std::vector<Leaves> rows_in(const Json& answer, const std::vector<std::string_view>& arrays) {
  std::vector<Leaves> out;
  const auto add_row = [&](const Json& row, std::string_view table) {
    Leaves& leaves = out.emplace_back();
    if (arrays.size() > 1) leaves.emplace_back("table", table);
    add_leaves(leaves, "", row);
  };
  const auto add = [&](const Json& rows, std::string_view table) {
    for (const Json& row : rows) add_row(row, table);
  };
  if (arrays.empty()) answer.is_array() ? add(answer, "") : add_row(answer, "");
  for (const std::string_view array : arrays) add(answer.at(std::string(array)), array);
  return out;
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i > 0 ? "," : "") + csv_cell(cells[i]);
  return out + "\n";
}

}  // namespace

std::string rows_csv(std::string_view json, const std::vector<std::string_view>& arrays) {
  const std::vector<Leaves> rows = rows_in(parsed_ordered_json(json), arrays);
  std::vector<std::string> keys;
  for (const Leaves& row : rows)
    for (const auto& [key, value] : row)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::string out = line_of(keys);
  for (const Leaves& row : rows) {
    std::vector<std::string> cells(keys.size());
    for (const auto& [key, value] : row)
      cells[static_cast<std::size_t>(std::ranges::find(keys, key) - keys.begin())] = value;
    out += line_of(cells);
  }
  return out;
}

void check_forms(const Arguments& arguments) {
  if (arguments.has("json") && arguments.get("csv") == "-")
    throw UsageError("both --json and --csv -", "--csv FILE writes beside it");
}

bool print_answer(const Arguments& arguments, const AnswerForms& forms) {
  check_forms(arguments);
  const std::string csv = arguments.get("csv");
  const std::string json = arguments.has("json") || !csv.empty() ? forms.json() : "";
  const std::string rows = csv.empty() ? "" : rows_csv(json, forms.rows);
  const std::string printed = csv == "-"              ? rows
                              : arguments.has("json") ? json + "\n"
                                                      : forms.text();
  tell(stdout, printed);
  if (csv.empty() || csv == "-") return true;
  try {
    write_whole(csv, rows);
    return true;
  } catch (const OutputError& error) {
    tell(stderr, std::string(error.what()) + "\n");
    return false;
  }
}

}  // namespace stepcast::sim
