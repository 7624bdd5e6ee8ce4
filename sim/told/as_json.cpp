#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "sim/told/told.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

struct JsonWriter {
  Json out = Json::object();

  void operator()(const Paragraph&) {}
  void operator()(const Kept& one) { put_at(out, one.key, json_of(one.exact)); }
  void operator()(const KeptJson& one) {
    if (one.key.empty())
      out.update(one.json());
    else
      put_at(out, one.key, one.json());
  }
  void operator()(const KeyFigures&) {}
  void operator()(const ToldTable& one) {
    if (!one.key.empty()) put_at(out, one.key, rows_json(one.table));
  }
  void operator()(const Chart&) {}
  void operator()(const Listing&) {}
  void operator()(const ToldEach& list) {
    Json rows = Json::array();
    for (const ToldSection& one : list.each) rows.push_back(as_json(one));
    put_at(out, list.key, std::move(rows));
  }
};

}  // namespace

nlohmann::ordered_json as_json(const ToldSection& section) {
  JsonWriter writer;
  for (const ToldBlock& block : section.blocks) std::visit(writer, block);
  return std::move(writer.out);
}

AnswerForms forms_of(const ToldSection& section, std::string_view document,
                     std::vector<std::string_view> lists) {
  return {[&section] { return as_text(section); },
          [&section, document] { return json_text(stamped(document, as_json(section)), 2); },
          std::move(lists)};
}

}  // namespace stepcast::sim
