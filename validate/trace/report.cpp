#include "validate/trace/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "sim/files/names.hpp"
#include "sim/files/text_table.hpp"
#include "validate/compare/page.hpp"

namespace stepcast::validate {
namespace {

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

/// Programs get the JSON's unit.
sim::TableCell cell(const Number& value, double per_unit) {
  return {value ? sim::three_digits(*value / per_unit) : "-", value};
}

/// None against a verdict.
Number error_in(const TraceComparison& c, const Number& measured, const Number& simulated) {
  return c.verdict.empty() ? error_of(measured, simulated) : std::nullopt;
}

sim::TableCell error_cell(const Number& error) {
  return {error ? fmt::format("{:+.1f} %", 100 * *error) : "-", error};
}

constexpr auto left = sim::TextTable::Align::left, right = sim::TextTable::Align::right;

sim::TextTable quantity_table(const TraceComparison& c) {
  sim::TextTable table{sim::filed("key"),          {"per rank and step", "", left},
                       {"unit", "", left},         {"measured", "measured"},
                       {"simulated", "simulated"}, {"error", "error"}};
  for (const Quantity& q : quantities(c))
    table.row({sim::kept(q.key), q.heading, q.unit, cell(q.measured, q.per_unit),
               cell(q.simulated, q.per_unit), error_cell(error_in(c, q.measured, q.simulated))});
  return table;
}

sim::TextTable kind_table(const TraceComparison& c, const char* heading,
                          const std::vector<KindRow>& all, bool sized) {
  sim::TextTable table{{heading, "kind", left},
                       {"calls", "measured_calls", right, "measured"},
                       {"calls", "simulated_calls", right, "simulated"}};
  if (sized) table.column("bytes", "measured MB");
  if (sized) table.column("bytes", "simulated MB");
  table.column("time", "measured ms", right, "measured_s");
  table.column("time", "simulated ms", right, "simulated_s");
  table.column("error", "", right, "error");
  if (sized) table.detail("measured_bytes");
  if (sized) table.detail("simulated_bytes");
  for (const KindRow& row : all) {
    const auto &m = row.measured, &s = row.simulated;
    const double measured = seconds(m.duration), simulated = seconds(s.duration);
    sim::TableCells cells{row.kind, cell(m.calls, 1), cell(s.calls, 1)};
    const sim::TableCells bytes{cell(m.sized ? Number(m.bytes) : std::nullopt, 1e6),
                                cell(s.bytes, 1e6)};
    if (sized) cells.insert(cells.end(), bytes.begin(), bytes.end());
    cells.push_back(cell(measured, 1e-3));
    cells.push_back(cell(simulated, 1e-3));
    cells.push_back(error_cell(error_in(c, measured, simulated)));
    if (sized) cells.insert(cells.end(), bytes.begin(), bytes.end());
    table.row(std::move(cells));
  }
  return table;
}

}  // namespace

std::optional<double> error_of(std::optional<double> measured, std::optional<double> simulated) {
  if (!measured || !simulated || !(*measured > 0)) return std::nullopt;
  return *simulated / *measured - 1;
}

std::optional<double> step_error(const TraceComparison& c) {
  return error_in(c, number(c.measured.step), number(c.simulated.step));
}

sim::ToldSection told_of(const TraceComparison& c) {
  sim::ToldSection out;
  out.say(fmt::format("{}", fmt::join(c.files, ", ")));
  out.say(c.scenario + ": " + c.what);
  for (const std::string& note : c.notes) out.say(note);
  if (!c.verdict.empty()) {
    out.say();
    out.say("Verdict: " + c.verdict + ".");
  }
  out.keep("summary/scenario", c.scenario);
  out.keep("summary/what", c.what);
  out.keep("summary/files", c.files);
  out.keep("summary/measured_step_time_s", number(c.measured.step));
  out.keep("summary/simulated_step_time_s", number(c.simulated.step));
  out.keep("summary/step_time_error", step_error(c));
  out.keep("summary/verdict", c.verdict.empty() ? sim::Exact(nullptr) : sim::Exact(c.verdict));
  out.table("quantities", quantity_table(c));
  out.table("kernels", kind_table(c, "kernels", kernel_rows(c), false));
  out.table("collectives", kind_table(c, "collectives", collective_rows(c), true));
  out.keep("notes", c.notes);
  return out;
}

sim::Told trace_page(const TraceComparison& c, const sim::Origin& origin) {
  constexpr double ms = 1e-3;
  BesidePage page{c.what, "A run of one's own beside its simulation.", "time [ms]"};
  for (const Quantity& q : quantities(c)) {
    if (q.key == "step_time_s" || q.key == "mfu" || q.key == "memory_bytes") {
      const std::string unit = q.unit.empty() ? "" : " " + q.unit;
      page.figures.push_back({q.heading + ", measured", cell(q.measured, q.per_unit).text + unit,
                              "simulated " + cell(q.simulated, q.per_unit).text + unit + ", " +
                                  error_cell(error_in(c, q.measured, q.simulated)).text});
    }
    if (q.unit == "ms" && q.simulated)
      page.rows.push_back({q.heading, "per rank and step", *q.measured / ms, *q.simulated / ms,
                           cell(q.measured, ms).text + " ms", cell(q.simulated, ms).text + " ms"});
  }
  for (const auto& [source, all] :
       {std::pair{"kernels", kernel_rows(c)}, std::pair{"collectives", collective_rows(c)}})
    for (const KindRow& row : all) {
      const double measured = seconds(row.measured.duration),
                   simulated = seconds(row.simulated.duration);
      page.rows.push_back({row.kind, source, measured / ms, simulated / ms,
                           cell(measured, ms).text + " ms", cell(simulated, ms).text + " ms"});
    }
  if (!c.verdict.empty()) {
    page.notes.push_back("Verdict: " + c.verdict + ". No error means anything.");
    page.rows.clear();
  }
  for (const std::string& note : c.notes) page.notes.push_back(note);
  page.text = as_text(told_of(c));
  return page_of(page, origin);
}

}  // namespace stepcast::validate
