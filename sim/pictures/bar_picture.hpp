// Bars beside labels, each of parts one behind the other, told apart by pattern as well as colour.
// Knows no quantity.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stepcast::sim {

struct BarRow {
  std::string label;
  std::vector<double> parts;  // one per series; a single one may be negative
  std::string value{};        // behind the bar
};

struct BarPicture {
  std::string name;  // unique among the pictures of a page
  std::string title, axis;
  std::vector<std::string> series{""};  // one without a name has no legend
  std::vector<BarRow> rows{};
  std::optional<double> limit{};  // a line across, "80 GiB"
  std::string limit_text{};
};

std::string bar_picture(const BarPicture& picture);

/// <pattern> elements of the first `count` looks, and the fill that refers to one.
std::string look_definitions(const std::string& name, std::size_t count);
std::string look_fill(const std::string& name, std::size_t index);

/// A row of signs and their names from (left, top) on, broken at `right`; `bottom` is set to where
/// it ends.
std::string look_legend(const std::string& name, const std::vector<std::string>& series,
                        double left, double top, double right, double& bottom);

}  // namespace stepcast::sim
