#include "sim/compare/side.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "engine/check.hpp"
#include "sim/files/input_file.hpp"
#include "sim/files/numbers.hpp"
#include "sim/report/json.hpp"

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
    return Json::parse(read_input(path));
  } catch (const Json::exception& error) {
    throw InputError(path, std::string("is no JSON: ") + error.what());
  }
}

constexpr const char* wanted =
    "give what stepcast run --json, --out or validate trace --json wrote";

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

Json point_of(const Json& sweep, const Place& place) {
  const Json& points = sweep.at("points");
  if (!place.point)
    throw InputError(place.file,
                     "holds the " + std::to_string(points.size()) + " points of a sweep",
                     "name one: " + place.file + "#1");
  if (*place.point > points.size())
    throw InputError(place.file, "has no point " + std::to_string(*place.point),
                     "it has " + std::to_string(points.size()));
  return points.at(*place.point - 1);
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
  if (place.point && !json.contains("points"))
    throw InputError(place.file, "holds one result", "leave #" + std::to_string(*place.point));
  if (json.contains("points")) json = point_of(json, place);
  if (trace)
    json = measured_row(json, path);
  else
    check_step(json, path);
  return {.label = {}, .name = path, .row = PointRow(json.dump()), .measured = trace};
}

std::vector<Side> read_sides(const std::string& path) {
  const Place place = place_of(path);
  const Json json = read_json(place.file);
  std::vector<Side> out;
  if (place.point || !json.contains("points")) {
    out.push_back(read_side(path));
    return out;
  }
  for (const Json& point : json.at("points")) {
    check_step(point, path);
    Side side{.label = {}, .name = {}, .row = PointRow(point.dump())};
    for (const auto& [key, value] : side.row.leaves("sweep"))
      side.name += (side.name.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1) + " " + value;
    out.push_back(std::move(side));
  }
  return out;
}

}  // namespace stepcast::sim
