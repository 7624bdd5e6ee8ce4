// What a folder of --out says of itself without being taken: its study, and how far that is. Knows
// no simulation.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/form/form.hpp"
#include "sim/study/output_place.hpp"
#include "sim/study/sweep.hpp"

namespace stepcast::sim {

/// The study of a folder as it was begun. Throws InputError where the folder is not stepcast's or
/// not of this verb, "search"; "sweep": it holds no sweep.
struct StoredStudy {
  OutputMark mark;
  TomlValue document;
};
StoredStudy stored_study(const std::string& folder, const std::string& verb);

/// A file of rows.
struct KeptFile {
  std::string name;
  std::size_t rows = 0;
  double age_s = 0;       // since a row was added
  bool finished = false;  // of a verb whose answer comes of plans: the last row says so
};

/// How many points of a sweep have a row, by its kind. Rows of another version of the program or of
/// its tables count as well: only a run can tell them apart.
struct SweepStatus {
  std::size_t points = 0, answered = 0, refused = 0, failed = 0;
  std::vector<KeptFile> files;  // by name

  std::size_t missing() const;
};
SweepStatus status_of(const std::string& folder, const Study& study);

std::string status_text(const SweepStatus& status);
std::string status_json(const SweepStatus& status);
nlohmann::ordered_json sweep_status_schema();

/// How many plans a search or a design has simulated, and what is not finished of it.
struct PlansStatus {
  std::size_t plans = 0;
  std::vector<std::string> unfinished;  // as OutputFolder::unfinished()
  std::vector<KeptFile> files;          // by name
};
PlansStatus plans_status_of(const std::string& folder);

std::string status_text(const PlansStatus& status);
std::string status_json(const PlansStatus& status);
nlohmann::ordered_json plans_status_schema();

/// Of a folder's files of rows: shards that are not finished, "2/8", of the division that lacks
/// least; "the whole" of one that is not divided. Empty: nothing is missing.
std::vector<std::string> unfinished_parts(const std::string& folder,
                                          const std::function<bool(const std::string&)>& finished);
/// "2/8, 5/8 and 3 others"
std::string words_of(const std::vector<std::string>& parts);
/// The row with which a part that is finished ends.
inline constexpr std::string_view finished_row = "{\"finished\":true}";

}  // namespace stepcast::sim
