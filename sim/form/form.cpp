#include "sim/form/form.hpp"

#include <fmt/format.h>

#include <array>

namespace stepcast::sim {

using Json = nlohmann::ordered_json;

namespace {

/// What keys end on. Longer endings come first.
constexpr std::pair<std::string_view, std::string_view> units[] = {
    {"gb_per_s", "GB/s"},
    {"usd_per_million_tokens", "USD/10^6 tokens"},
    {"usd_per_gpu_hour", "USD/h"},
    {"joules_per_token", "J"},
    {"gpu_hours", "h"},
    {"_gib", "GiB"},
    {"_bytes", "B"},
    {"bytes", "B"},
    {"_usd", "USD"},
    {"usd", "USD"},
    {"_mwh", "MWh"},
    {"mwh", "MWh"},
    {"watts", "W"},
    {"days", "d"},
    {"t_co2e", "t"},
    {"_ps", "ps"},
    {"_us", "us"},
    {"_ms", "ms"},
    {"_hz", "Hz"},
    {"_kw", "kW"},
    {"_w", "W"},
    {"_s", "s"},
    {"seconds", "s"},
};

constexpr std::string_view schema_version = "1";

std::string name_and_version(std::string_view name) {
  return fmt::format("{}/{}", name, schema_version);
}

Json type_of(TextTable::Holds holds) {
  using Holds = TextTable::Holds;
  switch (holds) {
    case Holds::text:
      return type_schema("string");
    case Holds::number:
      return type_schema("number");
    case Holds::count:
      return type_schema("integer");
    case Holds::flag:
      return type_schema("boolean");
    case Holds::texts:
      return list_schema(type_schema("string"));
  }
  return {};
}

}  // namespace

Json Definitions::reference(const std::string& name,
                            const std::function<Json(Definitions&)>& schema) {
  if (!all_.contains(name)) {
    all_[name] = Json::object();  // it may refer to itself
    Json inside = schema(*this);
    all_[name] = std::move(inside);
  }
  return {{"$ref", "#/$defs/" + name}};
}

SchemaOf any_of(std::vector<SchemaOf> schemas) {
  return [schemas = std::move(schemas)](Definitions& all) {
    Json out = Json::array();
    for (const SchemaOf& one : schemas) out.push_back(one(all));
    return Json{{"anyOf", std::move(out)}};
  };
}

Json open_object(Json of) {
  Json out = type_schema("object");
  out["additionalProperties"] = of.empty() ? Json(true) : std::move(of);
  return out;
}

Json list_schema(Json of) {
  Json out = type_schema("array");
  out["items"] = std::move(of);
  return out;
}

Json type_schema(std::string_view type) { return {{"type", type}}; }

Json or_null(Json schema) {
  if (schema.contains("type") && schema["type"].is_string() && schema["type"] != "object") {
    schema["type"] = Json::array({schema["type"], "null"});
    return schema;
  }
  return {{"anyOf", Json::array({std::move(schema), type_schema("null")})}};
}

std::string_view unit_of_key(std::string_view key) {
  for (const auto& [ending, unit] : units)
    if (key.ends_with(ending)) return unit;
  return {};
}

void put_at(Json& object, std::string_view path, Json value) {
  Json* at = &object;
  for (std::size_t cut; (cut = path.find('/')) != std::string_view::npos;
       path.remove_prefix(cut + 1))
    at = &(*at)[std::string(path.substr(0, cut))];
  (*at)[std::string(path)] = std::move(value);
}

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

Json rows_json(const TextTable& table) {
  Json out = Json::array();
  for (const auto& members : table.members()) {
    Json row = Json::object();
    for (const auto& [key, exact] : members) put_at(row, key, json_of(exact));
    out.push_back(std::move(row));
  }
  return out;
}

Json rows_schema(const TextTable& table) {
  Json row = type_schema("object");
  for (const TextTable::Column& column : table.columns()) {
    if (!column.in_json) continue;
    const std::string_view heading = column.heading;
    const std::string_view meaning = heading == column.key ? std::string_view() : heading;
    form_detail::put_property(
        row, column.key,
        form_detail::annotated(or_null(type_of(column.holds)), meaning, unit_of_key(column.key)),
        false);
  }
  return list_schema(std::move(row));
}

namespace form_detail {

void put_property(Json& schema, std::string_view path, Json property, bool always) {
  const std::size_t cut = path.find('/');
  const std::string key(path.substr(0, cut));
  if (cut == std::string_view::npos) {
    Json& at = schema["properties"][key];
    if (at.is_object() && at.contains("properties") && !property.contains("$ref"))
      at.update(property);  // of members that were there before it
    else
      at = std::move(property);
  } else {
    Json& inside = schema["properties"][key];
    if (inside.is_null()) inside = type_schema("object");
    if (inside.contains("additionalProperties")) inside.erase("additionalProperties");
    put_property(inside, path.substr(cut + 1), std::move(property), false);
  }
  if (always && cut == std::string_view::npos) schema["required"].push_back(key);
}

Json annotated(Json schema, std::string_view meaning, std::string_view unit) {
  if (!meaning.empty()) schema["description"] = meaning;
  if (!unit.empty()) schema["unit"] = unit;
  return schema;
}

Json Members::json(const void* of) const {
  Json out = Json::object();
  for (const Member& member : members_)
    if (auto value = member.json(of)) put_at(out, member.key, *std::move(value));
  return out;
}

Json Members::schema(Definitions& all) const {
  const auto inside = [this](Definitions& other) {
    Json out = type_schema("object");
    for (const Member& member : members_)
      put_property(out, member.key, member.schema(other), member.always);
    return out;
  };
  return name.empty() ? inside(all) : all.reference(name, inside);
}

void Members::add(std::string key, bool always, SchemaOf schema, ValueAt json) {
  members_.push_back({std::move(key), always, std::move(schema), std::move(json)});
}

void Members::add(std::string key, bool always, std::string meaning, std::string unit, Json (*of)(),
                  ValueAt json) {
  add(
      std::move(key), always,
      [of, meaning = std::move(meaning), unit = std::move(unit)](Definitions&) {
        return annotated(of(), meaning, unit);
      },
      std::move(json));
}

void Members::add_object(std::string key, bool always, std::string meaning, Members form,
                         EachAt each) {
  const auto members = std::make_shared<const Members>(std::move(form));
  add(
      std::move(key), always,
      [members, meaning = std::move(meaning)](Definitions& all) {
        return annotated(members->schema(all), meaning, "");
      },
      [members, each = std::move(each)](const void* of) {
        std::optional<Json> out;
        each(of, [&](const void* object) { out = members->json(object); });
        return out;
      });
}

void Members::add_object_or_null(std::string key, std::string meaning, Members form, EachAt each) {
  const auto members = std::make_shared<const Members>(std::move(form));
  add(
      std::move(key), true,
      [members, meaning = std::move(meaning)](Definitions& all) {
        return annotated(or_null(members->schema(all)), meaning, "");
      },
      [members, each = std::move(each)](const void* of) {
        Json out;
        each(of, [&](const void* object) { out = members->json(object); });
        return std::optional(std::move(out));
      });
}

void Members::add_list(std::string key, bool always, std::string meaning, Members form,
                       EachAt each) {
  const auto members = std::make_shared<const Members>(std::move(form));
  add(
      std::move(key), always,
      [members, meaning = std::move(meaning)](Definitions& all) {
        return annotated(list_schema(members->schema(all)), meaning, "");
      },
      [members, each = std::move(each)](const void* of) {
        Json out = Json::array();
        const bool there =
            each(of, [&](const void* object) { out.push_back(members->json(object)); });
        return there ? std::optional(std::move(out)) : std::nullopt;
      });
}

void Members::add_all(const Members& form, bool always, const EachAt& each) {
  for (const Member& member : form.members_)
    add(member.key, member.always && always, member.schema,
        [json = member.json, each](const void* of) {
          std::optional<Json> out;
          each(of, [&](const void* object) { out = json(object); });
          return out;
        });
}

}  // namespace form_detail

Json stamped(std::string_view name, const Json& answer) {
  Json out{{"stepcast", STEPCAST_VERSION}, {"schema", name_and_version(name)}};
  out.update(answer);
  return out;
}

std::string stamp_lines(std::string_view name) {
  return fmt::format("  \"stepcast\": \"{}\",\n  \"schema\": \"{}\",\n", STEPCAST_VERSION,
                     name_and_version(name));
}

Json document_schema(std::string_view name, std::string_view title, const SchemaOf& schema) {
  Definitions all;
  Json inside = schema(all);
  Json out{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"$id", "urn:stepcast:" + name_and_version(name)},
      {"title", title},
      {"type", "object"},
      {"properties",
       {{"stepcast", {{"type", "string"}, {"description", "The version of the program."}}},
        {"schema",
         {{"const", name_and_version(name)}, {"description", "The schema and its version."}}}}},
      {"required", Json::array({"stepcast", "schema"})}};
  if (inside.contains("properties")) {
    for (auto& [key, value] : inside["properties"].items())
      out["properties"][key] = std::move(value);
    if (inside.contains("required"))
      for (auto& key : inside["required"]) out["required"].push_back(key);
  } else {
    out.update(inside);
  }
  if (!all.all().empty()) out["$defs"] = all.all();
  return out;
}

}  // namespace stepcast::sim
