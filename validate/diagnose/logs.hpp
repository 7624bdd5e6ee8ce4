// Several logs side by side: which run is slower, and what of that their arguments explain. Each
// argument that differs gets its share of the difference of the forecasts (Shapley); what is left
// is the machine's, or is said in no log.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/told/told.hpp"
#include "validate/diagnose/files.hpp"

namespace stepcast::validate {

struct LoggedRun {
  std::string file;
  sim::Scenario scenario;
  double tokens = 0;    // of a step
  double measured = 0;  // s of a step
  double expected = 0, low = 0, high = 0;
};

/// What another run's arguments say otherwise than the first one's.
struct LoggedChange {
  std::string key, from, to;
  std::optional<double> seconds;  // its share of the forecasts' difference; none: not one by one
};

/// From the first run to another, in seconds of the first one's tokens.
struct LoggedDifference {
  std::size_t to = 1;
  double measured = 0, expected = 0;
  std::vector<LoggedChange> changes;  // the largest first
  std::string why_not{};              // their shares are not known
};

struct LogComparison {
  std::vector<LoggedRun> runs;
  std::vector<LoggedDifference> differences;
  std::vector<std::string> notes;
};

/// `settings` lie over what the files say of each run; `document`: --scenario, for all of them.
LogComparison compare_logs(const DiagnoseInputs& inputs, std::optional<std::int64_t> skip,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::TomlValue* document, sim::Session& session);

/// Whether some run is slower than its own forecast, beyond the error bar.
bool is_slower(const LogComparison& comparison);

/// As JSON {"verdict": ..., "runs": [...], "changes": [...], "notes": [...]}.
sim::ToldSection told_of(const LogComparison& comparison);
const sim::Form<LogComparison>& logs_form();

}  // namespace stepcast::validate
