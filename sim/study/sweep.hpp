// A scenario file as a study: the points of its [sweep], in the order of the file, and the known
// figures of its [[reference]] to print beside them. Knows no simulation.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/files/toml_value.hpp"

namespace stepcast::sim {

/// "cluster.nodes" = 16, with the place it was written.
struct Setting {
  std::string path;
  TomlValue value;
};

/// What one point of the sweep sets; empty for a single run.
using SweepPoint = std::vector<Setting>;

/// Null where the point does not set it.
const TomlValue* setting_of(const SweepPoint& point, const std::string& path);

/// Known figures of a metric at some points, from elsewhere.
struct Reference {
  struct Row {
    SweepPoint at;
    std::optional<double> value;  // in the metric's unit, or in percent with `change_from`; none:
                                  // no figure is known, the simulated one is printed alone
  };
  std::string metric, source, note;
  std::optional<SweepPoint>
      change_from;  // values are changes from the same point but for these settings
  std::vector<Row> rows;
};

struct Study {
  TomlValue whole;  // the document as read
  TomlValue base;   // without [sweep] and [[reference]]
  bool is_sweep = false;
  std::vector<std::string> keys;                // all swept keys, in the order of the file
  std::vector<SweepPoint> joint{SweepPoint{}};  // [[sweep.point]]: keys set together, slowest
  std::vector<Setting> axes;                    // keys with arrays of values, the first slowest
  std::vector<Reference> references;

  /// Points are made as they are asked for: a million of them take no memory.
  std::size_t num_points() const;
  SweepPoint point(std::size_t index) const;
  TomlValue document_of(const SweepPoint& point) const;  // the base with the point's settings
};

/// More points than anybody reads, and than a file system likes to have files: their table is
/// printed where it is asked for alone, and they have no file each.
inline constexpr std::size_t most_to_read = 10'000;

/// Splits a document. [sweep] holds arrays of values whose product is taken, first key slowest;
/// [[sweep.point]] holds keys set together, and is combined with every member of the product.
/// Throws InputError for a sweep with zero points.
Study read_study(TomlValue document);

/// The command line sets a key: a swept key is swept no more. Throws InputError when the key is
/// part of [[sweep.point]].
void override_key(TomlValue& document, const std::string& path, const TomlValue& value);

/// Whether two values are written alike: 16 and 16, "1 MiB" and "1 MiB".
bool same_value(const TomlValue& a, const TomlValue& b);

}  // namespace stepcast::sim
