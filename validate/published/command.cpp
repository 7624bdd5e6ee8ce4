#include "validate/published/command.hpp"

#include <cstdio>
#include <filesystem>

#include "engine/check.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/interrupt.hpp"
#include "validate/compare/figure.hpp"
#include "validate/published/report.hpp"
#include "validate/published/scenario.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option own_options[] = {
    {"out", "DIR", "", "also write rows.csv, report.json, report.md and figure.svg there"},
    {"only", "ID", "", "only rows whose id begins so"},
    {"show", "ID", "", "print the scenario of this row, as a file for stepcast run"},
    {"threads", "N", "", "rows to run at once (default: all cores)"},
    {"fail-above", "PERCENT", "", "exit code 5 when the mean of the sources' medians is larger"},
    {"by-degree", "", "", "also errors by tensor and pipeline degree, micro-batch and GPUs"},
    {"json", "", "", "print JSON"},
    {"quiet", "", "", "no progress"},
};
const std::vector<sim::Option> options = sim::with_table_options(own_options);

/// Tables that are shipped: the first are the rows that rules were made on; the others stand beside
/// them, so that their means stay comparable.
struct Shipped {
  const char *name, *file, *title;
};
constexpr Shipped shipped[] = {
    {"training", "training.csv", "the shipped table"},
    {"sweep", "sweep.csv", "sweep: plans of one 3.6B model on 8 to 512 H100"},
    {"mlgv", "mlgv.csv", "mlgv: tiny models of Megatron-LM's own tests, bound by the host"},
};

std::string path_of(const Shipped& table, const sim::Catalogue& catalogue) {
  const std::filesystem::path folder = catalogue.directory();
  return (folder.parent_path() / "validate" / "published" / table.file).string();
}

/// The table of the words on the command line, and what it is called.
std::pair<std::string, std::string> file_of(const sim::Arguments& arguments,
                                            const sim::Catalogue& catalogue) {
  const auto& words = arguments.positional();
  for (const Shipped& table : shipped)
    if ((words.empty() ? shipped[0].name : words[0]) == std::string(table.name))
      return {path_of(table, catalogue), table.title};
  return {words[0], words[0]};
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

void write_reports(const std::string& directory, const std::string& file,
                   const std::vector<PublishedResult>& results) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw InputError(directory, "cannot be made: " + error.message());
  const fs::path folder(directory);
  sim::write_whole(folder / "rows.csv", published_csv(results));
  sim::write_whole(folder / "report.json", published_json(file, results) + "\n");
  sim::write_whole(folder / "report.md", published_markdown(results));
  sim::write_whole(folder / "figure.svg", figure_of(results));
}

int show(const std::string& file, const std::vector<PublishedRow>& rows, const std::string& id,
         sim::Session& session) {
  for (const PublishedRow& row : rows) {
    if (row.id != id) continue;
    const std::string where = file + ":" + std::to_string(row.line);
    const RowScenario made = ScenarioMaker(session).scenario_of(row, where);
    if (!made.scenario) throw InputError(where, id + " is refused: " + made.refused);
    for (const std::string& sentence : made.assumed)
      std::printf("# assumed: %s\n", sentence.c_str());
    std::fputs(sim::write_toml(made.document).c_str(), stdout);
    return sim::exit_ok;
  }
  throw InputError(file, "no row has the id " + id);
}

}  // namespace

const sim::Verb published_verb{
    "stepcast validate published",
    "[FILE.csv | training | sweep | mlgv]",
    1,
    "Published training runs beside the simulation, without a file those that are shipped as "
    "training; sweep: plans of one model; mlgv: tiny models. Every row a scenario, no tuning by "
    "row or source; beside it the best of one constant MFU per GPU.",
    options,
    "stepcast validate published --out report"};

int run_published(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::Session session(catalogue);
  const auto [file, name] = file_of(arguments, catalogue);
  const std::vector<PublishedRow> rows = published_rows(sim::read_csv(file));
  if (const std::string id = arguments.get("show"); !id.empty())
    return show(file, rows, id, session);
  const auto limit = arguments.share("fail-above");
  const sim::TableView view(arguments);
  view.check(published_sources({}));

  PublishedOptions wanted;
  wanted.threads = arguments.threads();
  wanted.only = arguments.get("only");
  wanted.quiet = arguments.has("quiet");
  std::vector<PublishedResult> results = predict_published(file, rows, session, wanted);
  add_baseline(results);
  if (const std::string out = arguments.get("out"); !out.empty()) write_reports(out, name, results);
  view.write(view.arranged(published_sources(results)));
  const std::string text = arguments.has("json") ? published_json(name, results) + "\n"
                           : view.prints_csv()
                               ? view.printed(published_sources(results))
                               : published_text(name, results, view) +
                                     (arguments.has("by-degree") ? degrees_text(results) : "");
  std::fputs(text.c_str(), stdout);
  if (sim::stop_requested()) return sim::stop_code();
  if (!limit) return sim::exit_ok;
  const PublishedSummary summary = summary_of(results);
  return summary.ours && summary.mean_source_median <= *limit ? sim::exit_ok
                                                              : sim::exit_too_inaccurate;
}

}  // namespace stepcast::validate
