// What a folder of --out says of itself without being taken: its study, and how far that is. Knows
// no simulation.
#pragma once

#include <string>
#include <vector>

#include "sim/study/output_place.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {

/// The study of a folder as it was begun. Throws InputError where the folder is not stepcast's or
/// holds no sweep.
struct StoredStudy {
  OutputMark mark;
  TomlValue document;
};
StoredStudy stored_study(const std::string& folder);

/// How many points of a sweep have a row, by its kind. Rows of another version of the program or of
/// its tables count as well: only a run can tell them apart.
struct SweepStatus {
  struct File {
    std::string name;
    std::size_t rows = 0;
    double age_s = 0;  // since a row was added
  };
  std::size_t points = 0, answered = 0, refused = 0, failed = 0;
  std::vector<File> files;  // by name

  std::size_t missing() const;
};
SweepStatus status_of(const std::string& folder, const Study& study);

std::string status_text(const SweepStatus& status);
std::string status_json(const SweepStatus& status);

}  // namespace stepcast::sim
