#include "sim/compare/side.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/numbers.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

/// A file and, behind '#', the point of a sweep.
struct Place {
  std::string file;
  std::optional<std::size_t> point;
};

Place place_of(const std::string& path) {
  std::error_code error;
  const std::size_t hash = path.rfind('#');
  if (hash == std::string::npos || std::filesystem::exists(path, error)) return {path, {}};
  const auto point = number_in<std::size_t>(path.substr(hash + 1));
  if (!point || *point == 0) return {path, {}};
  return {path.substr(0, hash), point};
}

Json read_json(const std::string& path) {
  try {
    return parsed_ordered_json(read_input(path));
  } catch (const Json::exception& error) {
    throw InputError(path, std::string("is no JSON: ") + error.what());
  }
}

constexpr const char* wanted =
    "give what stepcast run, search or design --json or --out, or validate trace --json wrote";

/// The measured half of a trace's comparison, under the keys of a forecast.
Json measured_row(const Json& trace, const std::string& path) {
  Json out = Json::object();
  for (const Json& quantity : trace.value("quantities", Json::array()))
    if (const auto found = quantity.find("measured"); found != quantity.end() && found->is_number())
      out[quantity.value("key", "")] = *found;
  if (!out.contains("step_time_s"))
    throw InputError(path, "holds no measured step", "give a trace with whole steps");
  if (const auto memory = out.find("memory_bytes"); memory != out.end())
    out["memory_gib_per_gpu"] = memory->get<double>() / (1 << 30);
  return out;
}

struct NamedJson {
  std::string name;
  Json json;
};

/// Several forecasts of one file: the points of a sweep, the plans of a search, the answers of a
/// design.
struct Several {
  const char* what;  // "points of a sweep"
  std::vector<NamedJson> all;
};

std::string joined(const Json& values) {
  std::string out;
  for (const auto& [key, value] : values.items())
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key.substr(key.rfind('.') + 1),
                       value.is_string() ? value.get<std::string>() : json_text(value));
  return out;
}

/// None: the file holds one.
std::optional<Several> several_of(const Json& json) {
  if (json.contains("points")) {
    Several out{"points of a sweep", {}};
    for (const Json& point : json.at("points")) {
      const PointRow row(json_text(point));
      std::string name;
      for (const auto& [key, value] : row.leaves("sweep"))
        name += (name.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1) + " " + value;
      out.all.push_back({name, point});
    }
    return out;
  }
  if (json.contains("proof") && json.contains("plans")) {
    Several out{"plans of a search", {}};
    for (const Json& plan : json.at("plans"))  // those below the first --top have no report
      if (plan.contains("report"))
        out.all.push_back({joined(plan.value("knobs", Json::object())), plan["report"]});
    return out;
  }
  if (json.contains("limits_moved") && json.contains("cheapest")) {
    Several out{"answers of a design", {}};
    for (const char* aim : {"cheapest", "fastest", "greenest"})
      if (const Json& one = json.value(aim, Json::object()); one.contains("report"))
        out.all.push_back({fmt::format("{}: {}, {}", aim, one.at("machine").value("name", ""),
                                       one.value("way", "")),
                           one.at("report")});
    return out;
  }
  return std::nullopt;
}

Json one_of(const Several& several, const Place& place) {
  if (!place.point)
    throw InputError(place.file, fmt::format("holds the {} {}", several.all.size(), several.what),
                     "name one: " + place.file + "#1");
  if (*place.point > several.all.size())
    throw InputError(place.file, "has no point " + std::to_string(*place.point),
                     "it has " + std::to_string(several.all.size()));
  return several.all[*place.point - 1].json;
}

/// The object of one forecast.
void check_step(const Json& row, const std::string& path) {
  if (row.contains("collective"))
    throw InputError(path, "is the result of a collective", "training steps are compared");
  if (!row.contains("step_time_s") && !row.contains("refused") && !row.contains("failed"))
    throw InputError(path, "is no result of stepcast", wanted);
}

}  // namespace

std::optional<double> Side::tokens() const {
  const auto sequences = row.number("plan.global_batch"), length = row.number("plan.sequence");
  if (!sequences || !length) return std::nullopt;
  return *sequences * *length;
}

std::string label_of(std::size_t index) {
  std::string out(1, static_cast<char>('A' + static_cast<char>(index % 26)));
  return index < 26 ? out : label_of(index / 26 - 1) + out;
}

Side side_of(const Answer& answer, std::string name) {
  return {.label = {},
          .name = std::move(name),
          .row = PointRow(point_json(answer, {})),
          .scenario = scenario_of(answer)};
}

Side refused_side(const std::string& reason, std::string name) {
  return {.label = {},
          .name = std::move(name),
          .row = PointRow(unanswered_json("refused", reason, {}))};
}

bool is_json_file(const std::string& path) {
  const std::string file = place_of(path).file;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;  // its reader says so
  std::ifstream stream(file, std::ios::binary);
  char first = ' ';
  stream >> first;  // past blanks
  return first == '{';
}

Side read_side(const std::string& path) {
  const Place place = place_of(path);
  Json json = read_json(place.file);
  const bool trace = json.contains("summary") && json.contains("quantities");
  const std::optional<Several> several = several_of(json);
  if (place.point && !several)
    throw InputError(place.file, "holds one result", "leave #" + std::to_string(*place.point));
  if (several) json = one_of(*several, place);
  if (trace)
    json = measured_row(json, path);
  else
    check_step(json, path);
  return {.label = {}, .name = path, .row = PointRow(json_text(json)), .measured = trace};
}

std::vector<Side> read_sides(const std::string& path) {
  const Place place = place_of(path);
  std::vector<Side> out;
  const auto several = place.point ? std::nullopt : several_of(read_json(place.file));
  if (!several) {
    out.push_back(read_side(path));
    return out;
  }
  for (const auto& [name, json] : several->all) {
    check_step(json, path);
    out.push_back({.label = {}, .name = name, .row = PointRow(json_text(json))});
  }
  return out;
}

}  // namespace stepcast::sim
