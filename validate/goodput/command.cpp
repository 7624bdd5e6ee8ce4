#include "validate/goodput/command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/command/handout_options.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/program/exit_codes.hpp"
#include "validate/compare/page.hpp"
#include "validate/goodput/score.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::ordered_json;

constexpr sim::Option goodput_options[] = {
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};

std::string with_sign(double value, const char* unit) {
  if (value == 0) return "0" + std::string(unit);
  return (value < 0 ? "-" : "+") + sim::three_digits(std::abs(value)) + unit;
}

/// The upper one of two in the middle; 0 of none.
double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A row for each time between interruptions, a column for each rate that forecasts it.
std::string rates_text(std::span<const GoodputRow> rows) {
  const std::vector<RateForecast> forecasts = rate_forecasts(rows);
  std::vector<std::string> by;
  std::vector<double> factors;
  for (const RateForecast& f : forecasts) {
    if (std::ranges::count(by, f.by) == 0) by.push_back(f.by);
    factors.push_back(std::exp(std::abs(std::log1p(f.error()))));
  }
  sim::TextTable table;
  for (const char* heading : {"id", "source", "kind"})
    table.column(heading, "", sim::TextTable::Align::left);
  table.column("GPUs");
  table.column("between", "h");
  table.column("rate");
  for (const std::string& id : by) table.column("by " + id, "%");
  for (const GoodputRow& row : rows) {
    if (!row.rate()) continue;
    sim::TableCells cells{row.id,
                          row.source,
                          row.kind,
                          sim::grouped(static_cast<std::int64_t>(row.gpus)),
                          sim::three_digits(24.0 / (*row.rate() / 1000.0 * row.nodes())),
                          sim::three_digits(*row.rate())};
    for (const std::string& id : by) {
      const auto found = std::ranges::find_if(
          forecasts, [&](const RateForecast& f) { return f.of == row.id && f.by == id; });
      cells.emplace_back(found == forecasts.end() ? "-" : with_sign(100 * found->error(), ""));
    }
    table.row(std::move(cells));
  }
  return "time between interruptions; rate per 1,000 node-days; off by the rate of another\n" +
         table.text() +
         fmt::format("median factor of {} forecasts: {}\n", factors.size(),
                     sim::three_digits(median(factors)));
}

std::string ettr_text(std::span<const EttrForecast> forecasts) {
  sim::TextTable table;
  for (const char* heading : {"id", "rate of"})
    table.column(heading, "", sim::TextTable::Align::left);
  table.column("restart", "min");
  table.column("checkpoint", "s");
  table.column("every", "min");
  table.column("ETTR", "%");
  table.column("Daly", "%");
  table.column("simulated", "%");
  table.column("band", "80 %");
  table.column("off", "points");
  table.column("assumed", "", sim::TextTable::Align::left);
  for (const EttrForecast& f : forecasts)
    table.row(
        {f.row->id, f.rate_of, sim::three_digits(*f.row->restart_s / 60.0),
         sim::three_digits(*f.row->checkpoint_s), sim::three_digits(f.every_s / 60.0),
         (f.row->at_least ? "> " : "") + sim::three_digits(100 * *f.row->ettr),
         sim::three_digits(100 * f.daly), sim::three_digits(100 * f.simulated),
         fmt::format("{} to {}", sim::three_digits(100 * f.low), sim::three_digits(100 * f.high)),
         with_sign(f.error(), ""), f.row->assumed.empty() ? "-" : f.row->assumed});
  std::vector<double> misses;
  for (const EttrForecast& f : forecasts) misses.push_back(std::abs(f.error()));
  return "\nshare of wall time that trains (ETTR), by its own rate where it is stated\n" +
         table.text() +
         fmt::format("median miss of {} runs: {} points\n", misses.size(),
                     sim::three_digits(median(misses)));
}

Json goodput_score_json(std::span<const GoodputRow> rows, std::span<const EttrForecast> ettr) {
  Json out{{"rates", Json::array()}, {"ettr", Json::array()}};
  for (const RateForecast& f : rate_forecasts(rows))
    out["rates"].push_back({{"of", f.of},
                            {"by", f.by},
                            {"measured_h", f.measured_h},
                            {"forecast_h", f.forecast_h},
                            {"error", f.error()}});
  for (const EttrForecast& f : ettr)
    out["ettr"].push_back({{"id", f.row->id},
                           {"rate_of", f.rate_of},
                           {"per_1000_node_days", f.rate},
                           {"restart_s", *f.row->restart_s},
                           {"checkpoint_s", *f.row->checkpoint_s},
                           {"assumed", f.row->assumed},
                           {"ettr", *f.row->ettr},
                           {"at_least", f.row->at_least},
                           {"every_s", f.every_s},
                           {"daly", f.daly},
                           {"simulated", f.simulated},
                           {"low", f.low},
                           {"high", f.high},
                           {"off_points", f.error()}});
  return out;
}

sim::Told goodput_page(const std::string& file, std::span<const GoodputRow> rows,
                       std::span<const EttrForecast> ettr, const sim::Origin& origin) {
  BesidePage page{"Interruptions by other clusters' rates",
                  "Published times between interruptions beside those that another source's rate "
                  "gives, and the share of wall time that trains: " +
                      file + ".",
                  "time between interruptions [h]"};
  std::vector<double> factors, misses;
  for (const RateForecast& f : rate_forecasts(rows)) {
    page.rows.push_back({f.of, "by " + f.by, f.measured_h, f.forecast_h,
                         sim::three_digits(f.measured_h) + " h",
                         sim::three_digits(f.forecast_h) + " h"});
    factors.push_back(std::exp(std::abs(std::log1p(f.error()))));
  }
  for (const EttrForecast& f : ettr) misses.push_back(std::abs(f.error()));
  page.figures = {
      {"median factor", sim::three_digits(median(factors)), "between forecast and measured time"},
      {"median miss of ETTR", sim::three_digits(median(misses)) + " points",
       fmt::format("of {} runs", misses.size())}};
  page.text = rates_text(rows) + ettr_text(ettr);
  return page_of(page, origin);
}

}  // namespace

const sim::Verb goodput_verb{
    "stepcast validate goodput",
    "[FILE.csv]",
    1,
    "Published interruptions by other clusters' rates, and ETTR beside formula and simulation.",
    goodput_options,
    "stepcast validate goodput"};

int run_goodput(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const std::filesystem::path data(catalogue.directory());
  const std::string file =
      arguments.positional().empty()
          ? (data.parent_path() / "validate" / "published" / "goodput.csv").string()
          : arguments.positional().front();
  const std::vector<GoodputRow> rows = goodput_rows(sim::read_csv(file));
  const std::vector<EttrForecast> ettr = ettr_forecasts(rows);
  const bool printed = sim::print_answer(
      arguments, {[&] { return rates_text(rows) + ettr_text(ettr); },
                  [&] { return sim::json_text(goodput_score_json(rows, ettr), 2); },
                  {"rates", "ettr"}});
  const sim::HandoutFiles files = sim::handout_files(arguments);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return goodput_page(file, rows, ettr, sim::origin_of(goodput_verb, arguments));
  });
  return printed && handed ? sim::exit_ok : sim::exit_unwritten;
}

}  // namespace stepcast::validate
