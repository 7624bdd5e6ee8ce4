// Text, JSON, CSV, HDF5 and the page say the same, whatever the names.
#include <fmt/format.h>
#include <rapidcheck.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/files/csv.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/svg.hpp"
#include "sim/handout/points_page.hpp"
#include "sim/output/folder.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/table_view.hpp"
#include "sim/scenario/file.hpp"
#include "sim/tables/column_file.hpp"
#include "sim/told/json.hpp"
#include "sim/told/row_members.hpp"
#include "sim/told/text.hpp"
#include "sim/told/told.hpp"
#include "tests/laws/law.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Cells = std::vector<std::string>;

/// A sweep in its four forms.
struct Forms {
  std::vector<Json> json;  // a point each
  std::map<std::string, Cells> csv;
  std::unique_ptr<ColumnReader> hdf5;
  std::vector<Cells> page;               // cells of the table "All points"
  std::vector<TextTable::Column> shown;  // its columns
};

std::map<std::string, Cells> columns_of_csv(const std::string& text) {
  const CsvFile file = parse_csv("all.csv", text);
  std::map<std::string, Cells> out;
  for (std::size_t i = 0; i < file.header.size(); ++i)
    for (const CsvRow& row : file.rows) out[file.header[i]].push_back(row.cells[i]);
  return out;
}

/// What stands between `begin` and `end`, which moves `text` behind it; none where one is missing.
std::optional<std::string> between(std::string& text, const char* begin, const char* end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return std::nullopt;
  const std::size_t inside = from + std::string_view(begin).size(), to = text.find(end, inside);
  RC_ASSERT(to != std::string::npos);
  std::string out = text.substr(inside, to - inside);
  text.erase(0, to + std::string_view(end).size());
  return out;
}

std::vector<Cells> cells_of_page(std::string html) {
  html.erase(0, html.find("<h3>All points</h3>"));
  std::optional<std::string> body = between(html, "<tbody>", "</tbody>");
  RC_ASSERT(body.has_value());
  std::vector<Cells> out;
  while (auto row = between(*body, "<tr>", "</tr>")) {
    out.emplace_back();
    while (auto cell = between(*row, "<td", "</td>"))
      out.back().push_back(cell->substr(cell->find('>') + 1));
  }
  return out;
}

Forms forms_of(const TomlValue& document, const std::optional<std::string>& name = {}) {
  static const std::atomic<bool> stop = false;
  const std::string path = (tests::own_folder() / "forms").string();
  fs::remove_all(path);
  Study study = read_study(document);
  OutputFolder folder({path}, study, catalogue().directory());
  const auto read = [&](const TomlValue& point) {
    Scenario out = read_scenario(point, catalogue());
    if (name) out.model.name = out.node.name = out.fabric.name = *name;
    return out;
  };
  const Results results = run_study(
      std::move(study),
      {.read = read, .simulator = simulator_of(session()), .stop = stop, .folder = &folder});
  folder.finish(results);

  Forms out;
  Json whole = Json::parse(std::ifstream(path + "/results.json"));
  for (Json& point : whole["points"]) out.json.push_back(std::move(point));
  const TableView view(
      parse_arguments({"stepcast run", "", 0, "", table_options, ""}, {"--csv", "all.csv"}));
  std::string csv;
  write_csv(results, view, [&](std::string_view text) { csv += text; });
  out.csv = columns_of_csv(csv);
  out.hdf5 = read_columns(path + "/results.h5");
  const TextTable table = results_table(results, view);
  for (const TextTable::Column& column : table.columns())
    if (column.shown) out.shown.push_back(column);
  out.page = cells_of_page(as_page(sweep_page(results, table, catalogue(), {"stepcast run"})));
  return out;
}

const Json* member(const Json& point, const std::string& path) {
  const Json* at = &point;
  std::istringstream names(path);
  for (std::string name; std::getline(names, name, '.');) {
    if (!at->is_object() || !at->contains(name)) return nullptr;
    at = &(*at)[name];
  }
  return at;
}

/// As a column of CSV has it: metrics without ".0", names as a terminal may show them.
std::string csv_of(const RowMember& column, const Json* value) {
  if (value == nullptr || value->is_null()) return "";
  if (value->is_string()) return printable(value->get<std::string>());
  if (column.kind == RowMember::Kind::metric) return fmt::format("{}", value->get<double>());
  return value->dump();
}

void check_hdf5(const Forms& forms, const RowMember& column, std::size_t i, const Json* json) {
  using Kind = RowMember::Kind;
  const std::string dataset = "/points/" + column.path;
  if (column.kind == Kind::metric || column.kind == Kind::number) {
    const double value = forms.hdf5->doubles(dataset)[i];
    const bool known = json != nullptr && !json->is_null();
    RC_ASSERT((known ? value == json->get<double>() : std::isnan(value)));
  } else if (column.kind == Kind::count) {
    RC_ASSERT(forms.hdf5->integers(dataset)[i] == (json == nullptr ? 0 : json->get<double>()));
  } else if (column.kind == Kind::flag) {
    RC_ASSERT(forms.hdf5->integers(dataset)[i] == (json == nullptr ? -1 : json->get<bool>()));
  } else {
    RC_ASSERT(printable(forms.hdf5->texts(dataset)[i]) == csv_of(column, json));
  }
}

/// A figure of the page, of three digits, beside the whole one; in percent where the column is.
void check_shown(const TextTable::Column& column, std::string text, const Json& json) {
  if (text == "-" || text.find(" to ") != std::string::npos || column.unit.starts_with("k "))
    return;
  std::erase(text, ',');
  const double shown = std::stod(text);
  const double whole = json.get<double>() * (column.unit.starts_with("%") ? 100 : 1);
  RC_LOG() << column.key << " " << shown << " for " << whole << "\n";
  RC_ASSERT(std::abs(shown - whole) <= 0.00501 * std::abs(whole));
}

/// With a sweep, the last of whose points is mostly refused.
TomlValue swept(const TomlValue& drawn) {
  TomlValue out = drawn;
  set_path(out, "sweep", toml_table("law"));
  TomlValue::Array lengths;
  for (const std::int64_t sequence : {512, 2048, 262144}) lengths.push_back({sequence, "law"});
  out.find("sweep")->set("model.sequence", {lengths, "law"});
  return out;
}

void check_same(const Forms& forms) {
  RC_ASSERT(forms.json.size() == 3U);
  RC_ASSERT(forms.page.size() == 3U);
  const std::vector<RowMember> members = row_members(false);
  std::set<std::string> columns{"cluster.nodes"};  // which a column "nodes" says
  for (std::size_t i = 0; i < forms.json.size(); ++i) {
    const Json& point = forms.json[i];
    for (const RowMember& column : members) {
      const Json* json = member(point, column.path);
      columns.insert(column.path);
      RC_LOG() << column.path << " of point " << i << ": " << csv_of(column, json) << "\n";
      RC_ASSERT(forms.csv.contains(column.path));
      RC_ASSERT(forms.csv.at(column.path).size() == forms.json.size());
      RC_ASSERT(forms.csv.at(column.path)[i] == csv_of(column, json));
      check_hdf5(forms, column, i, json);
    }
    for (const std::string table : {"plan", "cluster"}) {
      if (!point.contains(table)) continue;  // a point that cannot be read
      for (const auto& [key, value] : point[table].items()) {
        RC_LOG() << table << "." << key << "\n";
        RC_ASSERT(columns.contains(table + "." + key));
      }
    }
    if (point.contains("refused")) continue;
    RC_ASSERT(forms.page[i].size() == forms.shown.size());
    for (std::size_t c = 0; c < forms.shown.size(); ++c)
      if (const Json* json = member(point, forms.shown[c].key); json && json->is_number())
        check_shown(forms.shown[c], forms.page[i][c], *json);
  }
}

/// Letters, what a format gives a meaning to, control characters, bytes that are no UTF-8. It is
/// never empty, which would be no name.
std::string drawn_name() {
  static const std::vector<std::string> pieces{
      "a",    "é",        "\"",     "\\",   "<b>",      "&amp;", "'",    ",",
      ";",    "\n",       "\t",     "=1+1", "\x1b[31m", "\x01",  "\x7f", "\xff",
      "\xc3", "\xf0\x9f", "\u202e", "{",    "}",        "%s",    "]]>",  "模"};
  std::string out = "n";
  for (const std::size_t piece : *rc::gen::container<std::vector<std::size_t>>(
           rc::gen::inRange<std::size_t>(0, pieces.size())))
    out += pieces[piece];
  return out;
}

/// What a line of a report says behind its label.
std::string said(const std::string& text, const std::string& label) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(label + " "))
      return line.substr(line.find_first_not_of(' ', label.size()));
  return {};
}

std::string bytes_text(const Json& gib) {
  return to_text(Bytes(std::llround(gib.get<double>() * (1 << 30))));
}

std::string duration_text(const Json& s) { return to_text(to_duration(s.get<double>())); }

}  // namespace

TEST_CASE("law: JSON, CSV, HDF5 and the page say the same of every point of a sweep") {
  CHECK(holds({"forms", 40}, [](const TomlValue& drawn) { check_same(forms_of(swept(drawn))); }));
}

TEST_CASE("law: they do with whatever bytes in the names") {
  CHECK(holds({"names", 40}, [](const TomlValue& drawn) {
    const std::string name = drawn_name();
    TomlValue document = swept(drawn);
    set_path(document, "title", toml_text(name, "law"));
    check_same(forms_of(document, name));
  }));
}

TEST_CASE("law: the text of a step says the figures of its JSON") {
  CHECK(holds({"text", 60}, [](const TomlValue& document) {
    const Answer found = answer(read_scenario(document, catalogue()), simulator_of(session()));
    const Json json = Json::parse(to_json(found));
    const std::string text = report_text(found);
    if (json.contains("refused")) {
      RC_ASSERT(said(text, "refused").substr(0, 40) ==
                json["refused"].get<std::string>().substr(0, 40));
      return;
    }
    std::map<std::string, std::string> figures{
        {"step time", duration_text(json["step_time_s"])},
        {"throughput", three_digits(json["tokens_per_s"].get<double>()) + " tokens/s, " +
                           three_digits(json["tokens_per_s_per_gpu"].get<double>())},
        {"MFU", percent(json["mfu"].get<double>())},
        {"memory per GPU", bytes_text(json["memory_gib_per_gpu"])},
        {"P(fits)", percent(json["p_fits"].get<double>())},
        {"power", three_digits(json["power_w_per_gpu"].get<double>()) + " W"},
        {"  compute", duration_text(json["compute_s"])},
        {"  exposed comm.", duration_text(json["exposed_communication_s"]["total"])},
        {"  bubble", duration_text(json["bubble_s"])},
        {"  wait", duration_text(json["wait_s"])},
        {"  host", duration_text(json["host_s"])},
        {"  step", duration_text(json["step_time_s"])}};
    for (const auto& [part, gib] : json["memory_parts_gib"].items())
      figures["  " + part] = bytes_text(gib);
    for (const auto& [label, figure] : figures) {
      RC_LOG() << label << ": " << said(text, label) << ", in JSON " << figure << "\n";
      RC_ASSERT(said(text, label).starts_with(figure));
    }
  }));
}

// A name neither opens nor closes anything on the page, and leaves the page and its pictures text.
TEST_CASE("law: whatever bytes are told, a page has the same elements and JSON the same members") {
  const auto told = [](const std::string& name) {
    TextTable table{{name, "key"}, {"b" + name, "other"}};
    table.row({name, TableCell(name, 1.0)});
    table.sentence({name}, name);
    ToldSection section{name, {KeyFigures{{name, name, name}}, Listing{name, name}}};
    section.say(name);
    section.keep("kept", name);
    section.table("rows", table);
    section.blocks.emplace_back(
        Chart{"picture", name, svg_head(10, 10, name) + "</svg>\n", table, name});
    return section;
  };
  const auto elements = [](const std::string& page) {
    std::string out = page;
    std::erase_if(out, [](char c) { return c != '<' && c != '>' && c != '"'; });
    return out;
  };
  const auto members = [](const ToldSection& section) {
    std::set<std::string> out;
    const Json flat = Json::parse(json_text(as_json(section))).flatten();
    for (const auto& [path, value] : flat.items()) out.insert(path);
    return out;
  };
  const auto page = [](const ToldSection& s) { return as_page({s.title, s.title, {s}}); };
  const ToldSection plain = told("n");
  CHECK(rc::check([&] {
    const std::string name = drawn_name();
    const ToldSection section = told(name);
    RC_ASSERT(elements(page(section)) == elements(page(plain)));
    RC_ASSERT(members(section) == members(plain));
    const std::string html = page(section);
    RC_ASSERT(printable(html) == html);
    RC_ASSERT(printable(as_text(section)).find(printable(name)) != std::string::npos);
  }));
}

}  // namespace stepcast::sim::laws
