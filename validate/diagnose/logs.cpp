#include "validate/diagnose/logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/compare/attribution.hpp"
#include "sim/compare/changes.hpp"
#include "sim/compare/runner.hpp"
#include "sim/compare/side.hpp"
#include "sim/scenario/file.hpp"
#include "validate/diagnose/report.hpp"
#include "validate/trace/simulated.hpp"

namespace stepcast::validate {
namespace {

/// A file's name behind the letter that sentences call it by.
std::string file_name(const LoggedRun& run) {
  return std::filesystem::path(run.file).filename().string();
}

std::string time_text(double seconds) { return stepcast::to_text(to_duration(seconds)); }
/// "+1.2 ms", "-0.3 ms"
std::string difference_text(double seconds) { return fmt::format("{:+.1f}", 1e3 * seconds); }

LoggedRun run_of(const RunLog& run, const sim::TomlValue& document,
                 std::optional<std::int64_t> skip, sim::Session& session) {
  MeasuredStep measured = measure_log(run.log, skip);
  const SimulatedStep simulated =
      simulate_breakdown(sim::read_scenario(document, session.catalogue()), session, false);
  const sim::StepReport& report = simulated.report;
  const sim::Scenario& s = report.scenario;
  complete(measured.mean, tokens_per_gpu(run.facts, s));
  LoggedRun out{run.log.file, s};
  out.tokens = static_cast<double>(s.global_batch * s.batch.sequence);
  out.measured = seconds(*measured.mean.step);
  out.expected = seconds(report.step_time);
  out.low = out.expected * (report.step_bar ? report.step_bar->low : 1);
  out.high = out.expected * (report.step_bar ? report.step_bar->high : 1);
  return out;
}

/// Largest first; those whose share is not known last.
void add_changes(const LoggedRun& first, const LoggedRun& other, sim::Runner& runner,
                 LoggedDifference& out) {
  const sim::DocumentPair documents = sim::documents_of(first.scenario, other.scenario);
  const std::vector<sim::Change> changes = sim::changes_between(documents);
  std::vector<sim::NamedChange> named;
  for (const sim::Change& change : changes) {
    out.changes.push_back({change.key, change.from, change.to, {}});
    named.push_back({change.key, change.from, change.to,
                     [change](sim::TomlValue& document) { sim::make(change, document); }});
  }
  if (changes.empty()) return;
  if (changes.size() > sim::most_changes) {
    out.why_not = fmt::format("{} keys differ, more than {}", changes.size(), sim::most_changes);
    return;
  }
  const auto found = sim::attribute(documents.from, named,
                                    [&](const auto& all) { return runner.outcomes(all); }, {});
  if (!found || found->orders == 0) {
    out.why_not = "they cannot be made one after the other";
    return;
  }
  out.changes.clear();  // some are one change: they are possible together alone
  for (const sim::ChangeEffect& effect : found->changes) {
    LoggedChange change{effect.name, effect.from, effect.to, {}};
    if (effect.share_ps) change.seconds = 1e-12 * static_cast<double>(*effect.share_ps);
    out.changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(out.changes, std::ranges::greater{}, [](const LoggedChange& change) {
    return std::abs(change.seconds.value_or(0));
  });
}

std::string verdict_of(const LogComparison& c) {
  const auto per_token = [&](const LoggedRun& run) {
    return run.measured * c.runs.front().tokens / run.tokens;
  };
  const auto [fast, slow] = std::ranges::minmax_element(c.runs, {}, per_token);
  const auto name = [&](const auto& run) {
    return sim::label_of(static_cast<std::size_t>(run - c.runs.begin()));
  };
  const double gap = per_token(*slow) - per_token(*fast);
  if (gap <= 0) return "All runs take the same time.";
  const bool scaled = std::ranges::any_of(
      c.runs, [&](const LoggedRun& run) { return run.tokens != c.runs.front().tokens; });
  const double expected = slow->expected * c.runs.front().tokens / slow->tokens -
                          fast->expected * c.runs.front().tokens / fast->tokens;
  const std::string explained =
      expected > 0 ? fmt::format("{} of {} more are expected by what they say", time_text(expected),
                                 time_text(gap))
                   : fmt::format("nothing that they say explains {} more", time_text(gap));
  return fmt::format("{} is slower than {}: {} a step{} where that takes {}; {}.", name(slow),
                     name(fast), time_text(per_token(*slow)), scaled ? " of as many tokens" : "",
                     time_text(per_token(*fast)), explained);
}

sim::TextTable run_columns() {
  return {{"run", "run", sim::TextTable::Align::left},
          {"log", "", sim::TextTable::Align::left},
          sim::filed("file", sim::TextTable::Holds::text),
          {"step", "measured_s"},
          {"expected", "expected_s"},
          sim::filed("expected_low_s"),
          sim::filed("expected_high_s"),
          {"over it", "ratio"},
          {"tokens", "tokens"}};
}

sim::TextTable run_table(const LogComparison& c) {
  sim::TextTable table = run_columns();
  for (std::size_t i = 0; i < c.runs.size(); ++i) {
    const LoggedRun& run = c.runs[i];
    const double ratio = run.measured / run.expected;
    table.row({sim::label_of(i),
               file_name(run),
               sim::kept(run.file),
               {time_text(run.measured), run.measured},
               {time_text(run.expected), run.expected},
               sim::kept(run.low),
               sim::kept(run.high),
               {fmt::format("{:.2f}", ratio), ratio},
               {sim::grouped(static_cast<std::int64_t>(run.tokens)), run.tokens}});
  }
  return table;
}

sim::TextTable change_columns() {
  return {{"what changed", "change", sim::TextTable::Align::left},
          {"from", "from", sim::TextTable::Align::left},
          {"to", "to", sim::TextTable::Align::left},
          {"ms", "seconds"},
          sim::filed("run", sim::TextTable::Holds::text)};
}

constexpr const char* open_row = "said in no log";

sim::TextTable change_table(const LoggedDifference& d) {
  sim::TextTable table = change_columns();
  const std::string file = sim::label_of(d.to);
  const auto shown = [](const std::string& value) {
    return value.empty() ? sim::TableCell() : sim::TableCell(value);
  };
  for (const LoggedChange& change : d.changes)
    table.row({change.key, shown(change.from), shown(change.to),
               change.seconds ? sim::TableCell(difference_text(*change.seconds), *change.seconds)
                              : sim::TableCell(),
               sim::kept(file)});
  const double open = d.measured - d.expected;
  table.row({open_row,
             sim::TableCell(),
             sim::TableCell(),
             {difference_text(open), open},
             sim::kept(file)});
  return table;
}

sim::TextTable all_changes(const LogComparison& c) {
  sim::TextTable table = change_columns();
  for (const LoggedDifference& d : c.differences) {
    for (const LoggedChange& change : d.changes)
      table.row({change.key, change.from, change.to,
                 change.seconds ? sim::TableCell("", *change.seconds) : sim::TableCell(),
                 sim::kept(sim::label_of(d.to))});
    table.row({open_row,
               sim::TableCell(),
               sim::TableCell(),
               {"", d.measured - d.expected},
               sim::kept(sim::label_of(d.to))});
  }
  return table;
}

}  // namespace

LogComparison compare_logs(const DiagnoseInputs& inputs, std::optional<std::int64_t> skip,
                           const std::vector<std::pair<std::string, sim::TomlValue>>& settings,
                           const sim::TomlValue* document, sim::Session& session) {
  LogComparison out;
  for (const RunLog& run : inputs.logs) {
    sim::TomlValue own =
        document != nullptr ? *document : document_of(run.facts, settings, session.catalogue());
    if (document != nullptr)
      for (const auto& [key, value] : settings) sim::set_path(own, key, value);
    out.runs.push_back(run_of(run, own, skip, session));
  }
  sim::RunnerOptions options;
  options.ignore_memory = true;
  sim::Runner runner(session, options);
  const LoggedRun& first = out.runs.front();
  for (std::size_t i = 1; i < out.runs.size(); ++i) {
    const double scale = first.tokens / out.runs[i].tokens;
    LoggedDifference way{i,
                         out.runs[i].measured * scale - first.measured,
                         out.runs[i].expected * scale - first.expected,
                         {}};
    add_changes(first, out.runs[i], runner, way);
    out.differences.push_back(std::move(way));
  }
  return out;
}

bool is_slower(const LogComparison& c) {
  return std::ranges::any_of(c.runs,
                             [](const LoggedRun& run) { return run.measured > 1.0001 * run.high; });
}

const sim::Form<LogComparison>& logs_form() {
  using C = const LogComparison&;
  static const sim::Form<LogComparison> form =
      sim::Form<LogComparison>()
          .has("verdict", "In a sentence.", [](C c) { return verdict_of(c); })
          .has("slower", "Whether a run is slower than its own forecast.",
               [](C c) { return is_slower(c); })
          .table("runs", "A row a log.", run_columns(), run_table)
          .table("changes",
                 "What each run's arguments say otherwise than the first one's; they and what no "
                 "log says add up to the difference, in seconds of the first run's tokens.",
                 change_columns(), all_changes)
          .has("notes", "What to know before trusting them.", [](C c) { return c.notes; });
  return form;
}

sim::ToldSection told_of(const LogComparison& c) {
  sim::ToldSection out;
  const std::string verdict = verdict_of(c);
  const std::size_t half = verdict.find("; ");
  out.say(verdict.substr(0, half == std::string::npos ? half : half + 1));
  if (half != std::string::npos) out.say(verdict.substr(half + 2));
  out.table("", run_table(c));
  for (const LoggedDifference& d : c.differences) {
    out.say();
    out.say(fmt::format("from {} to {}, {} ms:", sim::label_of(0), sim::label_of(d.to),
                        difference_text(d.measured)));
    if (d.changes.empty()) out.say("their arguments say the same");
    if (!d.why_not.empty()) out.say(d.why_not + ": no shares");
    out.table("", change_table(d), false);
  }
  if (!c.notes.empty()) out.say();
  for (const std::string& one : c.notes) say_item(out, "", 3, one);
  out.keep(logs_form(), c);
  return out;
}

}  // namespace stepcast::validate
