// What fit_network() found, as the file of constants and as a table.
#include <fmt/format.h>

#include "calibrate/fit/network.hpp"

namespace stepcast::calibrate {
namespace {

/// Four digits say more than the rows do.
std::string value_text(Duration member) {
  return fmt::format("\"{:.4g} us\"", seconds(member) * 1e6);
}
std::string value_text(double member) { return fmt::format("{:.4g}", member); }

std::string note_of(const NetworkFit& fit, const std::string& name) {
  for (const FittedConstant& c : fit.fitted)
    if (c.name == name)
      return c.held ? fmt::format("held, an estimate: moves {} rows", c.rows)
                    : fmt::format("{} rows", c.rows);
  return {};
}

}  // namespace

std::string to_toml(const NetworkFit& fit, const std::string& source) {
  std::string out =
      "# How NCCL's collectives really run: see sim/network/constants.hpp for what each constant "
      "is\n"
      "# and sim/network/nccl/time.hpp for the model. Written by `stepcast-calibrate fit-network`; "
      "the\n"
      "# comment says how many measured rows a constant moves by 1 % when it changes by 30 %.\n\n";
  out += fmt::format("source = \"{}\"\n", source);
  std::string open;
  auto constants = fit.constants;
  sim::visit_network_constants(constants, [&](const std::string& table, const std::string& key,
                                              const auto& member) {
    if (table != open) out += fmt::format("\n[{}]\n", open = table);
    out += fmt::format("{} = {}  # {}\n", key, value_text(member), note_of(fit, table + "." + key));
  });
  out +=
      "\n# |predicted / measured - 1|, and its mean with the sign; a reading error counts as "
      "none.\n";
  out += "[residuals]\n";
  for (const FitResidual& r : fit.residuals)
    out += fmt::format("\"{}\" = {{ rows = {}, median = {:.3f}, mean = {:.3f}, bias = {:.3f} }}\n",
                       r.group, r.rows, r.median, r.mean, r.bias);
  return out;
}

std::string to_text(const NetworkFit& fit) {
  std::string out = fmt::format("{} rows; mean |log error| {:.4f} before, {:.4f} after\n\n",
                                fit.rows, fit.objective_before, fit.objective_after);
  out += fmt::format("{:<28} {:>10} {:>10} {:>6}\n", "constant (us or share)", "before", "after",
                     "rows");
  for (const FittedConstant& c : fit.fitted)
    out += fmt::format("{:<28} {:>10.4g} {:>10.4g} {:>6}{}\n", c.name, c.before, c.after, c.rows,
                       c.held ? "  held" : "");
  out += fmt::format("\n{:<44} {:>5} {:>8} {:>8} {:>8}\n", "residuals", "rows", "median", "mean",
                     "bias");
  for (const FitResidual& r : fit.residuals)
    out += fmt::format("{:<44} {:>5} {:>7.1f}% {:>7.1f}% {:>+7.1f}%\n", r.group, r.rows,
                       100 * r.median, 100 * r.mean, 100 * r.bias);
  return out;
}

std::string to_text(const std::vector<LeftOut>& sources) {
  std::string out = fmt::format("{:>5} {:>8} {:>8}  {}\n", "rows", "seen", "unseen", "source");
  for (const LeftOut& s : sources)
    out += fmt::format("{:>5} {:>7.1f}% {:>7.1f}%  {}\n", s.rows, 100 * s.median_seen,
                       100 * s.median_unseen, s.source);
  return out;
}

}  // namespace stepcast::calibrate
