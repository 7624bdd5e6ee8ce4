#include "sim/told/json.hpp"

#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/files/indented_json.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

/// Of run, sweep and collective alike.
constexpr std::string_view study_document = "run";

std::string text_of(const Json& json) {
  // A byte that is no UTF-8 in a title must not end the program.
  return json_text(json, 2);
}

}  // namespace

std::string to_json(const Answer& answer) { return text_of(answer_json(answer)); }

namespace {

std::string line_of(Json json, const SweepPoint& point) {
  if (!point.empty()) {
    Json swept = Json::object();
    for (const Setting& setting : point) swept[setting.path] = value_json(setting.value);
    json["sweep"] = swept;
  }
  return json_text(json);
}

}  // namespace

std::string point_json(const Answer& answer, const SweepPoint& point) {
  return line_of(answer_json(answer), point);
}

std::string unanswered_json(const char* word, const std::string& reason, const SweepPoint& point) {
  return line_of(Json{{word, reason}}, point);
}

void write_json(const Results& results, const std::function<void(std::string_view)>& write) {
  const PointRows& rows = results.rows;
  if (!results.study.is_sweep) {
    expects(rows.size() == 1, "a single run has one point");
    const std::string only =
        rows.has(0) ? indented_json(rows.json(0), 0) : "{\n  \"interrupted\": true\n}";
    write("{\n" + stamp_lines(study_document));
    write(std::string_view(only).substr(2));  // behind its own brace
    return;
  }
  write("{\n" + stamp_lines(study_document));
  if (const TomlValue* title = results.study.base.find("title"); title && title->text())
    write("  \"title\": " + text_of(*title->text()) + ",\n");
  write("  \"points\": [");
  bool any = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows.has(i)) continue;
    write((any ? ",\n    " : "\n    ") + indented_json(rows.json(i), 4));
    any = true;
  }
  write(any ? "\n  ]" : "]");
  write(results.interrupted ? ",\n  \"interrupted\": true\n}" : "\n}");
}

std::string to_json(const Results& results) {
  std::string out;
  write_json(results, [&](std::string_view text) { out += text; });
  return out;
}

Json study_schema() {
  using Flag = const bool&;
  const auto interrupted = [](Form<bool> form) {
    return form.has("interrupted", meaning_of("interrupted"),
                    [](Flag flag) { return flag ? std::optional(true) : std::nullopt; });
  };
  const SchemaOf answer = answer_schema();
  const SchemaOf point = [answer](Definitions& all) {
    return all.reference("point", [&](Definitions& inner) {
      Json out = answer(inner);
      out["properties"]["sweep"] = form_detail::annotated(open_object(), meaning_of("sweep"), "");
      return out;
    });
  };
  const SchemaOf points = [=](Definitions& all) {
    Json out = interrupted(Form<bool>().has("title", meaning_of("title"), [](Flag) {
                 return std::optional<std::string>();
               })).schema(all);
    form_detail::put_property(
        out, "points", form_detail::annotated(list_schema(point(all)), meaning_of("points"), ""),
        true);
    return out;
  };
  const SchemaOf stopped = [=](Definitions& all) {
    Json out = interrupted(Form<bool>()).schema(all);
    out["required"] = Json::array({"interrupted"});
    return out;
  };
  return document_schema(study_document, "What stepcast run, sweep and collective print.",
                         any_of({answer, points, stopped}));
}

namespace {

struct ToldError {
  int code;
  std::string where, message, hint;
};

std::optional<std::string> said(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

const Form<ToldError>& error_form() {
  using E = const ToldError&;
  static const Form<ToldError> inside =
      Form<ToldError>()
          .has("code", "The exit code (stepcast --help names them).", [](E e) { return e.code; })
          .has("where", "The place: file:line, or an option.", [](E e) { return said(e.where); })
          .has("message", "What is wrong.", [](E e) { return e.message; })
          .has("hint", "What to do.", [](E e) { return said(e.hint); });
  static const Form<ToldError> form =
      Form<ToldError>().object("error", "", inside, [](E e) -> E { return e; });
  return form;
}

}  // namespace

std::string error_json(int exit_code, const std::string& where, const std::string& message,
                       const std::string& hint) {
  return text_of(stamped("error", error_form().json({exit_code, where, message, hint})));
}

Json error_schema() {
  return document_schema("error", "What a verb prints that fails.", error_form().schema_of());
}

}  // namespace stepcast::sim
