// The report card of a node: each row that was measured on it beside what is known of the same
// machine, from a table of it or by the forecast, and what falls short. Knows no device.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/session.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// What the rows are held against.
struct Par {
  std::vector<std::string> tables{"published"};  // as a scenario's calibration.tables
  std::string nccl{};                            // that the rows' runs had; "" as each row says
  double slack = 0.10;                           // slower by more is below par
};

/// One measured row and its par.
struct CardRow {
  std::string group;  // "gemm bf16", "allreduce on 8 ranks"
  std::string name;   // what of it: its shape, its bytes
  std::string figure, par;
  double ratio = 1.0;     // its time over par's
  bool measured = false;  // par was measured in this very shape; else it is a forecast
  double spread = 0.0;    // of the samples, the wider of both

  /// Slower than par by more than the slack and the spread.
  bool is_below(const Par&) const;
};

/// Rows that nothing is known to hold against.
struct Unmatched {
  std::string group;
  std::size_t rows = 0;
  std::string figure{};  // of one of them
};

/// A forecast without the rows of the card and with them.
struct ForecastChange {
  std::string title;
  std::optional<Duration> without, with;
  std::string missing{};  // why there is none with them
};

struct Card {
  std::vector<std::string> gpus;  // as the table calls them
  std::vector<std::string> machines;
  std::vector<CardRow> rows;
  std::vector<Unmatched> unmatched;
  std::vector<ForecastChange> forecasts;
  Par par;

  /// Those below par, the worst first; of one name the worst.
  std::vector<const CardRow*> below() const;
  std::size_t num_below() const;  // of all rows
};

/// Power, NCCL's own tables and runs with a forced algorithm are no row of the card.
Card card_of(const sim::CalibrationTable& measured, const Par& par, sim::Session& session);

std::string to_text(const Card& card);
std::string card_json(const Card& card);
nlohmann::ordered_json card_schema();

}  // namespace stepcast::calibrate
