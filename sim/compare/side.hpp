// One side of a comparison: a scenario's forecast, a result that was kept, or a measured trace, as
// the object that `stepcast run --json` prints. Knows neither options nor tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/answer.hpp"
#include "sim/study/point_row.hpp"

namespace stepcast::sim {

struct Side {
  std::string label;                   // "A"
  std::string name;                    // the file, or what is else about it
  PointRow row;                        // a measured one has the figures that its trace has
  std::optional<Scenario> scenario{};  // that it was forecast from, as it was run
  bool measured = false;

  bool answered() const { return step_s().has_value(); }
  std::optional<double> step_s() const { return row.number("step_time_s"); }
  /// Of one step.
  std::optional<double> tokens() const;
};

/// "A", ... "Z", "AA", ...
std::string label_of(std::size_t index);

Side side_of(const Answer& answer, std::string name);
Side refused_side(const std::string& reason, std::string name);

/// Whether a file holds JSON: a result or a trace, no scenario.
bool is_json_file(const std::string& path);

/// What `stepcast run --json` or --out wrote ("results.json#3": the third point of a sweep), or
/// those of search or design (the third plan, the third answer), or `stepcast validate trace
/// --json`, of which the measured half counts. Throws InputError.
Side read_side(const std::string& path);
/// Every point of a sweep, plan of a search, answer of a design, named by what it sets; of another
/// file the one side.
std::vector<Side> read_sides(const std::string& path);

}  // namespace stepcast::sim
