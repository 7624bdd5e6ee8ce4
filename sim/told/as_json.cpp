#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Exact& exact) {
  return std::visit(
      [](const auto& value) -> Json {
        if constexpr (std::is_same_v<decltype(value), const LeftOut&>)
          return nullptr;
        else
          return value;
      },
      exact);
}

void put(Json& object, std::string_view path, Json value) {
  Json* at = &object;
  for (std::size_t cut; (cut = path.find('/')) != std::string_view::npos;
       path.remove_prefix(cut + 1))
    at = &(*at)[std::string(path.substr(0, cut))];
  (*at)[std::string(path)] = std::move(value);
}

Json rows_of(const TextTable& table) {
  Json out = Json::array();
  for (const auto& members : table.members()) {
    Json row = Json::object();
    for (const auto& [key, exact] : members) put(row, key, json_of(exact));
    out.push_back(std::move(row));
  }
  return out;
}

struct JsonWriter {
  Json out = Json::object();

  void operator()(const Paragraph&) {}
  void operator()(const Kept& one) { put(out, one.key, json_of(one.exact)); }
  void operator()(const KeptJson& one) { put(out, one.key, one.json()); }
  void operator()(const KeyFigures&) {}
  void operator()(const ToldTable& one) {
    if (!one.key.empty()) put(out, one.key, rows_of(one.table));
  }
  void operator()(const Chart&) {}
  void operator()(const Listing&) {}
  void operator()(const ToldEach& list) {
    Json rows = Json::array();
    for (const ToldSection& one : list.each) rows.push_back(as_json(one));
    put(out, list.key, std::move(rows));
  }
};

}  // namespace

nlohmann::ordered_json as_json(const ToldSection& section) {
  JsonWriter writer;
  for (const ToldBlock& block : section.blocks) std::visit(writer, block);
  return std::move(writer.out);
}

AnswerForms forms_of(const ToldSection& section, std::vector<std::string_view> lists) {
  return {[&section] { return as_text(section); },
          [&section] { return json_text(as_json(section), 2); }, std::move(lists)};
}

}  // namespace stepcast::sim
