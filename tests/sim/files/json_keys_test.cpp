// What others script against: the JSON of the shipped scenarios has every key that it once had.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/scenario/file.hpp"
#include "sim/study/sweep.hpp"
#include "sim/told/json.hpp"
#include "tests/session.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using nlohmann::json;

namespace {

const std::string source = STEPCAST_SOURCE_DIR;

struct Recorded {
  std::vector<std::string> points;  // "weak_scaling.toml first"
  std::vector<std::string> keys;    // "plan.tensor"
};

std::vector<Recorded> recorded() {
  std::ifstream file(source + "/tests/golden/json_keys.txt");
  std::vector<Recorded> out(1);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() != '[') {
      out.back().keys.push_back(line);
      continue;
    }
    if (!out.back().keys.empty()) out.emplace_back();
    out.back().points.push_back(line.substr(1, line.size() - 2));
  }
  return out;
}

void add_paths(const json& object, const std::string& prefix, std::set<std::string>& paths) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    paths.insert(prefix + key);
    add_paths(value, prefix + key + ".", paths);
  }
}

std::set<std::string> keys_of(const std::string& point) {
  const Study study =
      read_study(read_toml_file(source + "/scenarios/" + point.substr(0, point.find(' '))));
  const SweepPoint at = study.point(point.ends_with("first") ? 0 : study.num_points() - 1);
  const Answer one =
      answer(read_scenario(study.document_of(at), catalogue()), simulator_of(session()));
  std::set<std::string> paths;
  add_paths(json::parse(to_json(one)), "", paths);
  return paths;
}

}  // namespace

TEST_CASE("the JSON of the shipped scenarios has every key that it once had") {
  const std::vector<Recorded> groups = recorded();
  REQUIRE(groups.size() == 5);
  for (const Recorded& group : groups)
    for (const std::string& point : group.points) {
      const std::set<std::string> keys = keys_of(point);
      for (const std::string& key : group.keys) {
        INFO(point << ": " << key);
        CHECK(keys.contains(key));
      }
    }
}
