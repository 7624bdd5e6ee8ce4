#include "sim/told/goal_text.hpp"

#include <fmt/format.h>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/told/labelled_line.hpp"

namespace stepcast::sim {

std::string banded(const Band& band, double scale, const std::string& unit) {
  const auto text = [&](double value) { return three_digits(value / scale); };
  std::string out = text(band.value) + unit;
  if (band.low != band.high) out += fmt::format(" ({} to {})", text(band.low), text(band.high));
  return out;
}

std::string days_text(const Band& days) {
  return days.value < 2 ? banded(days, 1.0 / 24, " hours") : banded(days, 1, " days");
}

std::string energy_text(const Band& mwh) {
  return mwh.value < 1 ? banded(mwh, 1e-3, " kWh")
                       : banded(mwh, mwh.value < 1e4 ? 1 : 1e3, mwh.value < 1e4 ? " MWh" : " GWh");
}

std::string co2_text(const Band& tonnes) {
  return tonnes.value < 1 ? banded(tonnes, 1e-3, " kg CO2e") : banded(tonnes, 1, " t CO2e");
}

namespace {

std::string tokens_text(const Band& tokens) {
  std::string out = to_text(Count(tokens.value)) + " tokens";
  if (tokens.low != tokens.high)
    out += fmt::format(" ({} to {})", to_text(Count(tokens.low)), to_text(Count(tokens.high)));
  return out;
}

std::string power_text(const Scenario& s, const WholeRun& run) {
  std::string out = to_text(run.power.total()) + ": ";
  if (s.power_count == PowerCount::tdp)
    out += "TDP of the GPUs";
  else
    out += fmt::format("GPUs {}, rest of the nodes {}, network {}", to_text(run.power.gpus),
                       to_text(run.power.nodes), to_text(run.power.network));
  return out + fmt::format("; x PUE {}", three_digits(s.site.pue));
}

std::string hours_text(const StepReport& r) {
  if (r.goodput) return fmt::format("goodput {} of [failures]", three_digits(r.goodput->mean));
  const double stated = r.scenario.goal.goodput;
  return stated == 1 ? std::string("no failures assumed (goodput 1)")
                     : fmt::format("goodput {}", three_digits(stated));
}

/// "rent 2.95 USD/h per GPU (2.95 to 10), median of 3 lists (...), 2026"
std::string price_text(const Scenario& s, const Band& price) {
  std::string out = (s.cost.own ? "owned, " : "rent ") + banded(price);
  out += " USD/h per GPU";
  if (s.cost.own)
    out += fmt::format(", of {} in {} years at {}, {} in use", to_text(s.cost.capex),
                       three_digits(s.cost.years), percent(s.cost.interest),
                       percent(s.cost.utilisation));
  if (!s.cost.source.empty()) out += ", " + s.cost.source;
  if (!s.cost.date.empty()) out += ", " + s.cost.date;
  return out;
}

}  // namespace

std::string dollars_text(const Band& dollars) {
  const std::string text = to_text(Usd(dollars.value));
  const double scale = dollars.value < 999.5     ? 1
                       : dollars.value < 999.5e3 ? 1e3
                       : dollars.value < 999.5e6 ? 1e6
                                                 : 1e9;
  if (dollars.low == dollars.high) return text;
  return fmt::format("{} ({} to {})", text, three_digits(dollars.low / scale),
                     three_digits(dollars.high / scale));
}

std::string whole_run_text(const StepReport& report) {
  expects(report.whole_run.has_value(), "a report with a whole run");
  const Scenario& s = report.scenario;
  const WholeRun& run = *report.whole_run;
  std::string out;
  if (s.goal.on()) {
    out += labelled_line("whole run", tokens_text(run.tokens) + ", " + hours_text(report));
    out += labelled_line(
        "  time", days_text(run.days) + ", " + banded(run.gpu_hours, 1e3) + " thousand GPU hours");
    out += labelled_line("  power", power_text(s, run));
    out += labelled_line("  energy", energy_text(run.megawatt_hours));
    out += labelled_line(
        "  emissions",
        co2_text(run.tonnes_co2) + fmt::format(" at {}{}", to_text(s.site.carbon),
                                               s.site.source.empty() ? "" : ", " + s.site.source));
    if (run.dollars) out += labelled_line("  cost", dollars_text(*run.dollars));
  } else {
    out += labelled_line("power of the cluster", power_text(s, run));
  }
  const auto& price = run.dollars_per_gpu_hour;
  if (price) out += labelled_line("  price", price_text(s, *price));
  std::string token = three_digits(run.joules_per_token) + " J";
  if (const auto& usd = run.dollars_per_million_tokens)
    token = banded(*usd) + " USD a million, " + token + " each";
  return out + labelled_line("  tokens", token);
}

}  // namespace stepcast::sim
