// What rates of one source say of another, and Daly's formula and the simulation beside the ETTR
// that runs report.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validate/goodput/rows.hpp"

namespace stepcast::validate {

/// The time between interruptions of one row, by another's rate.
struct RateForecast {
  std::string of, by;  // ids
  double measured_h = 0, forecast_h = 0;
  double error() const { return forecast_h / measured_h - 1.0; }
};
/// Of every row by every row of another source; a source's own projections are forecast, not used.
std::vector<RateForecast> rate_forecasts(std::span<const GoodputRow> rows);

struct EttrForecast {
  const GoodputRow* row = nullptr;
  double rate = 0;        // per 1,000 node-days
  std::string rate_of{};  // its own id, or of the rows whose median it is
  double every_s = 0;     // the best checkpoint period
  double daly = 0, simulated = 0, low = 0, high = 0;  // shares; 80 % of runs
  /// Points; 0 where a bound is kept.
  double error() const;
};
/// Of every row with an ETTR: by its own rate, or else by the median of the `run` and `cluster`
/// rows.
std::vector<EttrForecast> ettr_forecasts(std::span<const GoodputRow> rows);

}  // namespace stepcast::validate
