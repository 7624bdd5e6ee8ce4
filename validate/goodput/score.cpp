#include "validate/goodput/score.hpp"

#include <algorithm>
#include <array>

#include "engine/check.hpp"
#include "sim/goodput/daly.hpp"
#include "sim/goodput/simulation.hpp"

namespace stepcast::validate {
namespace {

double hours_between(const GoodputRow& row, double per_1000_node_days) {
  return 24.0 / (per_1000_node_days / 1000.0 * row.nodes());
}

double median_rate(std::span<const GoodputRow> rows) {
  std::vector<double> rates;
  for (const GoodputRow& row : rows)
    if ((row.kind == "run" || row.kind == "cluster") && row.rate()) rates.push_back(*row.rate());
  expects(!rates.empty(), "a row with a rate");
  std::sort(rates.begin(), rates.end());
  const std::size_t middle = rates.size() / 2;
  return rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2.0;
}

EttrForecast ettr_of(const GoodputRow& row, double rate, std::string rate_of) {
  EttrForecast out{.row = &row, .rate = rate, .rate_of = std::move(rate_of)};
  sim::FailureProcess process;
  process.interruptions = {
      {.per_second = 1.0 / (hours_between(row, rate) * 3600.0), .down_s = *row.restart_s}};
  process.tiers = {{.blocking_s = *row.checkpoint_s}};
  sim::choose_periods(process, 1.0);
  out.every_s = process.tiers.front().every_s;
  out.daly = sim::daly(process);
  const sim::FailureBand band =
      sim::simulate_failures(process, {.wall_s = row.days.value_or(90.0) * 86400.0});
  out.simulated = band.shares.training;
  out.low = band.low;
  out.high = band.high;
  return out;
}

}  // namespace

double EttrForecast::error() const {
  const double off = 100.0 * (simulated - *row->ettr);
  return row->at_least ? std::min(off, 0.0) : off;
}

std::vector<RateForecast> rate_forecasts(std::span<const GoodputRow> rows) {
  std::vector<RateForecast> out;
  for (const GoodputRow& of : rows)
    for (const GoodputRow& by : rows) {
      if (!of.rate() || !by.rate() || by.kind == "projection" || by.id == of.id) continue;
      out.push_back({of.id, by.id, hours_between(of, *of.rate()), hours_between(of, *by.rate())});
    }
  return out;
}

std::vector<EttrForecast> ettr_forecasts(std::span<const GoodputRow> rows) {
  std::vector<EttrForecast> out;
  for (const GoodputRow& row : rows) {
    if (!row.ettr) continue;
    const auto own = row.rate();
    out.push_back(ettr_of(row, own ? *own : median_rate(rows), own ? row.id : "median"));
  }
  return out;
}

}  // namespace stepcast::validate
