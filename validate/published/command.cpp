#include "validate/published/command.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/interrupt.hpp"
#include "validate/compare/figure.hpp"
#include "validate/compare/page.hpp"
#include "validate/published/ran.hpp"
#include "validate/published/report.hpp"
#include "validate/published/shipped.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option own_options[] = {
    {"out", "DIR", "", "also write rows.csv, report.json, report.md and figure.svg there"},
    {"only", "ID", "", "only rows whose id begins so"},
    {"show", "ID", "", "print the scenario of this row, as a file for stepcast run"},
    {"threads", "N", "", "rows to run at once (default: all cores)"},
    {"fail-above", "PERCENT", "", "exit code 5 when the mean of the sources' medians is larger"},
    {"by-degree", "", "", "also errors by tensor and pipeline degree, micro-batch and GPUs"},
    sim::report_option,
    sim::svg_option,
    {"json", "", "", "print JSON"},
    {"quiet", "", "", "no progress"},
};
const std::vector<sim::Option> options = sim::with_table_options(own_options);

/// The table that the words on the command line name; null: they name a file.
const ShippedTable* named_table(const sim::Arguments& arguments) {
  const auto& words = arguments.positional();
  return words.empty() ? &shipped_tables().front() : shipped_table(words[0]);
}

std::string figure_of(const std::vector<PublishedResult>& results) {
  std::vector<FigurePoint> points;
  for (const PublishedResult& r : results)
    if (r.scored()) points.push_back({r.measured_s, *r.predicted_s, r.row.source_key()});
  return scatter_svg(points,
                     {"Published training steps: predicted against measured", "measured step [s]",
                      "predicted step [s]"},
                     0.1);
}

sim::Told page_of(const std::string& name, const std::vector<PublishedResult>& results,
                  const std::string& text, const sim::Origin& origin) {
  sim::TextTable rows;
  for (const char* heading : {"row", "GPU"}) rows.column(heading, "", sim::TextTable::Align::left);
  for (const char* heading : {"measured", "predicted", "error"}) rows.column(heading);
  for (const PublishedResult& r : results)
    if (r.scored())
      rows.row({r.row.id, r.gpu_kind, stepcast::to_text(to_duration(r.measured_s)),
                stepcast::to_text(to_duration(*r.predicted_s)),
                fmt::format("{:+.1f} %", 100 * r.error())});
  const PublishedSummary summary = summary_of(results);
  sim::ToldSection glance{"At a glance", {}};
  glance.blocks.emplace_back(sim::KeyFigures{
      {"mean of the sources' medians",
       summary.ours ? sim::percent(summary.mean_source_median) : "no row is scored",
       "of the absolute errors of the step"},
      {"rows", sim::grouped(static_cast<std::int64_t>(rows.num_rows())), "that are scored"}});
  if (rows.num_rows() > 0)
    glance.blocks.emplace_back(scatter_chart("Published training steps: predicted against measured",
                                             figure_of(results), std::move(rows)));
  glance.blocks.emplace_back(sim::ToldTable{"Sources", published_sources(results)});
  return {name,
          "Published training runs beside what stepcast predicts for them.",
          {std::move(glance),
           {"All tables", {sim::Listing{"As text", text, false}}},
           sim::origin_section(origin, nullptr)}};
}

void write_reports(const std::string& directory, const std::string& file,
                   const std::vector<PublishedResult>& results) {
  sim::write_together(directory, {{"rows.csv", published_csv(results)},
                                  {"report.json", published_json(file, results) + "\n"},
                                  {"report.md", published_markdown(results)},
                                  {"figure.svg", figure_of(results)}});
}

int show(const std::string& file, const std::vector<PublishedRow>& rows, const std::string& id,
         sim::Session& session) {
  for (const PublishedRow& row : rows) {
    if (row.id != id) continue;
    const std::string where = file + ":" + std::to_string(row.line);
    const RowScenario made = ScenarioMaker(session).scenario_of(row, where);
    if (!made.scenario) throw InputError(where, id + " is refused: " + made.refused);
    for (const std::string& sentence : made.assumed)
      sim::tell(stdout, fmt::format("# assumed: {}\n", sentence));
    sim::tell(stdout, sim::write_toml(made.document));
    return sim::exit_ok;
  }
  throw InputError(file, "no row has the id " + id);
}

/// A table of ours is scored as it says; of a file the dense rows and the modern ones apart.
std::string text_of(const std::string& name, const std::vector<PublishedResult>& results,
                    const ShippedTable* table, const sim::TableView& view, bool by_degree) {
  if (of_what_ran(results)) return ran_text(name, results);
  const auto section = [&](const std::string& title, const std::vector<PublishedResult>& scored) {
    return published_text(title, scored, view) +
           (kind_scores(scored).size() > 1 ? kinds_text(scored) : "") +
           (by_degree ? degrees_text(scored) : "");
  };
  const auto has = [&](Bucket bucket) {
    return std::ranges::any_of(results, [&](const auto& r) { return r.bucket == bucket; });
  };
  if (table != nullptr || !has(Bucket::modern)) return section(name, results);
  auto modern = scored_in(results, Bucket::modern);
  add_baseline(modern);
  const std::string second = section(name + ": experts, low precision, Blackwell", modern);
  return has(Bucket::dense) ? section(name, results) + "\n" + second : second;
}

}  // namespace

const sim::Verb published_verb{
    "stepcast validate published",
    "[FILE.csv | training | sweep | modern | mlgv | what_ran]",
    1,
    "Published training runs beside the simulation, without a file those that are shipped as "
    "training; sweep: plans of one model; modern: experts, fp8, fp4, Blackwell; mlgv: tiny models; "
    "what_ran: what fitted, what died. "
    "Every row a scenario, no tuning by row or source; beside it the best of one constant MFU per "
    "GPU.",
    options,
    "stepcast validate published --out report"};

int run_published(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::stop_requested();  // before anything is read
  sim::Session session(catalogue);
  const ShippedTable* table = named_table(arguments);
  const std::string file =
      table != nullptr ? path_of(*table, catalogue) : arguments.positional()[0];
  const std::string name = table != nullptr ? table->title : file;
  const std::vector<PublishedRow> rows =
      table != nullptr ? rows_of(*table, catalogue) : published_rows(sim::read_csv(file));
  if (const std::string id = arguments.get("show"); !id.empty())
    return show(file, rows, id, session);
  const auto limit = arguments.share("fail-above");
  const sim::TableView view(arguments);
  view.check(published_sources({}));

  PublishedOptions wanted;
  wanted.threads = arguments.threads();
  wanted.only = arguments.get("only");
  wanted.quiet = arguments.has("quiet");
  wanted.bucket = table == nullptr ? Bucket::none : table->bucket;
  std::vector<PublishedResult> results = predict_published(file, rows, session, wanted);
  if (table == nullptr && !of_what_ran(results))
    results = scored_in(std::move(results), Bucket::dense);
  add_baseline(results);
  const sim::TextTable sources = view.arranged(published_sources(results));
  const std::string text = arguments.has("json") ? published_json(name, results) + "\n"
                           : view.prints_csv()
                               ? view.text(sources)
                               : text_of(name, results, table, view, arguments.has("by-degree"));
  sim::tell(stdout, text);
  if (sim::stop_requested()) return sim::stop_code();  // not all rows: the files of before stay
  if (const std::string out = arguments.get("out"); !out.empty()) write_reports(out, name, results);
  view.write(sources);
  const sim::HandoutFiles files = sim::handout_files(arguments);
  if (files.any() && !sim::handed_out(files, [&] {
        return page_of(name, results, text_of(name, results, table, {}, false),
                       sim::origin_of(published_verb, arguments));
      }))
    return sim::exit_unwritten;
  if (!limit) return sim::exit_ok;
  const PublishedSummary summary = summary_of(results);
  return summary.ours && summary.mean_source_median <= *limit ? sim::exit_ok
                                                              : sim::exit_too_inaccurate;
}

}  // namespace stepcast::validate
