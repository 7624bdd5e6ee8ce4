#include "validate/trace/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/files/json_text.hpp"
#include "sim/files/names.hpp"
#include "sim/files/text_table.hpp"
#include "validate/compare/page.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::ordered_json;
using Number = std::optional<double>;

/// A row of the comparison: `per_unit` of the JSON's unit are one of the table's.
struct Quantity {
  std::string key, heading, unit;
  double per_unit;
  Number measured, simulated;
};

Number number(const std::optional<Duration>& duration) {
  return duration ? Number(seconds(*duration)) : std::nullopt;
}
Number number(const std::optional<Bytes>& bytes) {
  return bytes ? Number(static_cast<double>(bytes->value)) : std::nullopt;
}

std::vector<Quantity> quantities(const TraceComparison& c) {
  const StepBreakdown &m = c.measured, &s = c.simulated;
  constexpr double ms = 1e-3, gib = 1 << 30;
  const auto time = [&](const char* key, const char* heading,
                        std::optional<Duration> StepBreakdown::*part) {
    return Quantity{key, heading, "ms", ms, number(m.*part), number(s.*part)};
  };
  std::vector<Quantity> all{
      time("step_time_s", "step", &StepBreakdown::step),
      {"tokens_per_s_per_gpu", "tokens/s/GPU", "", 1, m.tokens_per_second_per_gpu,
       s.tokens_per_second_per_gpu},
      {"flops_per_s_per_gpu", "model FLOP/s per GPU", "TFLOP/s", 1e12, m.flops_per_second_per_gpu,
       s.flops_per_second_per_gpu},
      {"mfu", "MFU", "%", 1e-2, m.mfu, s.mfu},
      time("compute_s", "compute", &StepBreakdown::compute),
      time("communication_s", "communication, waiting included", &StepBreakdown::communication),
      time("exposed_s", "exposed communication and waiting", &StepBreakdown::exposed),
      time("exposed_transfer_s", "  of it transfers", &StepBreakdown::transferring),
      time("exposed_wait_s", "  of it waiting for peers", &StepBreakdown::waiting),
      time("idle_s", "no kernel at all", &StepBreakdown::idle),
      {"memory_bytes", "memory", "GiB", gib, number(m.memory), number(s.memory)}};
  std::erase_if(all, [](const Quantity& q) { return !q.measured; });
  return all;
}

/// A kind of kernel or collective on both sides; one of them may not have it.
struct KindRow {
  std::string kind;
  StepTally measured, simulated;
};

template <class Kind, class Name>
std::vector<KindRow> rows(const std::map<Kind, StepTally>& measured,
                          const std::map<Kind, StepTally>& simulated, Name name) {
  std::set<Kind> kinds;
  for (const auto& [kind, tally] : measured) kinds.insert(kind);
  for (const auto& [kind, tally] : simulated) kinds.insert(kind);
  std::vector<KindRow> out;
  for (const Kind kind : kinds) {
    const auto of = [&](const std::map<Kind, StepTally>& side) {
      const auto at = side.find(kind);
      return at == side.end() ? StepTally{} : at->second;
    };
    out.push_back({std::string(name(kind)), of(measured), of(simulated)});
  }
  return out;
}

std::vector<KindRow> kernel_rows(const TraceComparison& c) {
  if (c.measured.kernels.empty()) return {};  // a log
  return rows(c.measured.kernels, c.simulated.kernels, [](TraceKind k) { return name_of(k); });
}

std::vector<KindRow> collective_rows(const TraceComparison& c) {
  if (c.measured.kernels.empty()) return {};
  return rows(c.measured.collectives, c.simulated.collectives,
              [](workloads::CollectiveKind k) { return sim::word_for(sim::collective_names, k); });
}

std::string cell(const Number& value, double per_unit) {
  return value ? sim::three_digits(*value / per_unit) : "-";
}

/// None against a verdict.
Number error_in(const TraceComparison& c, const Number& measured, const Number& simulated) {
  return c.verdict.empty() ? error_of(measured, simulated) : std::nullopt;
}

std::string error_cell(const Number& error) {
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "-";
}

std::string quantity_table(const TraceComparison& c) {
  sim::TextTable table;
  using enum sim::TextTable::Align;
  table.column("per rank and step", "", left);
  table.column("unit", "", left);
  for (const char* heading : {"measured", "simulated", "error"}) table.column(heading);
  for (const Quantity& q : quantities(c))
    table.row({q.heading, q.unit, cell(q.measured, q.per_unit), cell(q.simulated, q.per_unit),
               error_cell(error_in(c, q.measured, q.simulated))});
  return table.text();
}

std::string kind_table(const TraceComparison& c, const char* heading,
                       const std::vector<KindRow>& all, bool sized) {
  if (all.empty()) return "";
  sim::TextTable table;
  table.column(heading, "", sim::TextTable::Align::left);
  table.column("calls", "measured");
  table.column("calls", "simulated");
  if (sized) table.column("bytes", "measured MB");
  if (sized) table.column("bytes", "simulated MB");
  table.column("time", "measured ms");
  table.column("time", "simulated ms");
  table.column("error");
  for (const KindRow& row : all) {
    const auto &m = row.measured, &s = row.simulated;
    std::vector<std::string> cells{row.kind, sim::three_digits(m.calls),
                                   sim::three_digits(s.calls)};
    if (sized) cells.push_back(m.sized ? sim::three_digits(m.bytes / 1e6) : "-");
    if (sized) cells.push_back(sim::three_digits(s.bytes / 1e6));
    const double ms_measured = seconds(m.duration), ms_simulated = seconds(s.duration);
    cells.push_back(cell(ms_measured, 1e-3));
    cells.push_back(cell(ms_simulated, 1e-3));
    cells.push_back(error_cell(error_in(c, ms_measured, ms_simulated)));
    table.row(std::move(cells));
  }
  return "\n" + table.text();
}

Json json_of(const Number& value) { return value ? Json(*value) : Json(nullptr); }

Json json_of(const TraceComparison& c, const std::vector<KindRow>& all, bool sized) {
  Json out = Json::array();
  for (const KindRow& row : all) {
    const auto &m = row.measured, &s = row.simulated;
    Json one = {{"kind", row.kind},
                {"measured_calls", m.calls},
                {"simulated_calls", s.calls},
                {"measured_s", seconds(m.duration)},
                {"simulated_s", seconds(s.duration)},
                {"error", json_of(error_in(c, seconds(m.duration), seconds(s.duration)))}};
    if (sized) one["measured_bytes"] = m.sized ? Json(m.bytes) : Json(nullptr);
    if (sized) one["simulated_bytes"] = s.bytes;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::optional<double> error_of(std::optional<double> measured, std::optional<double> simulated) {
  if (!measured || !simulated || !(*measured > 0)) return std::nullopt;
  return *simulated / *measured - 1;
}

std::optional<double> step_error(const TraceComparison& c) {
  return error_in(c, number(c.measured.step), number(c.simulated.step));
}

std::string trace_text(const TraceComparison& c) {
  std::string out = fmt::format("{}\n{}: {}\n", fmt::join(c.files, ", "), c.scenario, c.what);
  for (const std::string& note : c.notes) out += note + "\n";
  if (!c.verdict.empty()) out += fmt::format("\nVerdict: {}.\n", c.verdict);
  return out + "\n" + quantity_table(c) + kind_table(c, "kernels", kernel_rows(c), false) +
         kind_table(c, "collectives", collective_rows(c), true);
}

std::string trace_json(const TraceComparison& c) {
  Json out;
  out["summary"] = {{"scenario", c.scenario},
                    {"what", c.what},
                    {"files", c.files},
                    {"measured_step_time_s", json_of(number(c.measured.step))},
                    {"simulated_step_time_s", json_of(number(c.simulated.step))},
                    {"step_time_error", json_of(step_error(c))},
                    {"verdict", c.verdict.empty() ? Json(nullptr) : Json(c.verdict)}};
  out["quantities"] = Json::array();
  for (const Quantity& q : quantities(c))
    out["quantities"].push_back({{"key", q.key},
                                 {"measured", json_of(q.measured)},
                                 {"simulated", json_of(q.simulated)},
                                 {"error", json_of(error_in(c, q.measured, q.simulated))}});
  out["kernels"] = json_of(c, kernel_rows(c), false);
  out["collectives"] = json_of(c, collective_rows(c), true);
  out["notes"] = c.notes;
  return sim::json_text(out, 2);
}

sim::Told trace_page(const TraceComparison& c, const sim::Origin& origin) {
  constexpr double ms = 1e-3;
  BesidePage page{c.what, "A run of one's own beside its simulation.", "time [ms]"};
  for (const Quantity& q : quantities(c)) {
    if (q.key == "step_time_s" || q.key == "mfu" || q.key == "memory_bytes") {
      const std::string unit = q.unit.empty() ? "" : " " + q.unit;
      page.figures.push_back({q.heading + ", measured", cell(q.measured, q.per_unit) + unit,
                              "simulated " + cell(q.simulated, q.per_unit) + unit + ", " +
                                  error_cell(error_in(c, q.measured, q.simulated))});
    }
    if (q.unit == "ms" && q.simulated)
      page.rows.push_back({q.heading, "per rank and step", *q.measured / ms, *q.simulated / ms,
                           cell(q.measured, ms) + " ms", cell(q.simulated, ms) + " ms"});
  }
  for (const auto& [source, all] :
       {std::pair{"kernels", kernel_rows(c)}, std::pair{"collectives", collective_rows(c)}})
    for (const KindRow& row : all) {
      const double measured = seconds(row.measured.duration),
                   simulated = seconds(row.simulated.duration);
      page.rows.push_back({row.kind, source, measured / ms, simulated / ms,
                           cell(measured, ms) + " ms", cell(simulated, ms) + " ms"});
    }
  if (!c.verdict.empty()) {
    page.notes.push_back("Verdict: " + c.verdict + ". No error means anything.");
    page.rows.clear();
  }
  for (const std::string& note : c.notes) page.notes.push_back(note);
  page.text = trace_text(c);
  return page_of(page, origin);
}

}  // namespace stepcast::validate
