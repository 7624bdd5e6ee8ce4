#include "validate/published/command.hpp"

#include <cstdio>
#include <filesystem>
#include <set>

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
  Bucket bucket;  // what is scored; none: all
};
constexpr Shipped shipped[] = {
    {"training", "training.csv", "the shipped table", Bucket::dense},
    {"sweep", "sweep.csv", "sweep: plans of one 3.6B model on 8 to 512 H100", Bucket::dense},
    {"modern", "modern.csv", "modern: experts, fp8, fp4, Blackwell", Bucket::none},
    {"mlgv", "mlgv.csv", "mlgv: tiny models of Megatron-LM's own tests, bound by the host",
     Bucket::none},
};

std::string path_of(const Shipped& table, const sim::Catalogue& catalogue) {
  const std::filesystem::path folder = catalogue.directory();
  return (folder.parent_path() / "validate" / "published" / table.file).string();
}

/// The table that the words on the command line name; null: they name a file.
const Shipped* shipped_table(const sim::Arguments& arguments) {
  const auto& words = arguments.positional();
  for (const Shipped& table : shipped)
    if ((words.empty() ? shipped[0].name : words[0]) == std::string(table.name)) return &table;
  return nullptr;
}

/// Of modern: also the rows of the first table in low precision, but those that stand in both.
std::vector<PublishedRow> rows_of(const std::string& file, const Shipped* table,
                                  const sim::Catalogue& catalogue) {
  std::vector<PublishedRow> rows = published_rows(sim::read_csv(file));
  if (table == nullptr || table->name != std::string_view("modern")) return rows;
  std::set<std::string> known;
  for (const PublishedRow& row : rows) known.insert(row.id);
  for (PublishedRow& row : published_rows(sim::read_csv(path_of(shipped[0], catalogue)))) {
    const bool low =
        scope_of(row).kind.starts_with("dense ") && scope_of(row).kind != "dense 16 bit";
    if (low && row.scorable && !known.contains(row.id)) rows.push_back(std::move(row));
  }
  return rows;
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

/// A table of ours is scored as it says; of a file the dense rows and the modern ones apart.
std::string text_of(const std::string& name, const std::vector<PublishedResult>& results,
                    const Shipped* table, const sim::TableView& view, bool by_degree) {
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
    "[FILE.csv | training | sweep | modern | mlgv]",
    1,
    "Published training runs beside the simulation, without a file those that are shipped as "
    "training; sweep: plans of one model; modern: experts, fp8, fp4, Blackwell; mlgv: tiny models. "
    "Every row a scenario, no tuning by row or source; beside it the best of one constant MFU per "
    "GPU.",
    options,
    "stepcast validate published --out report"};

int run_published(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::Session session(catalogue);
  const Shipped* table = shipped_table(arguments);
  const std::string file =
      table != nullptr ? path_of(*table, catalogue) : arguments.positional()[0];
  const std::string name = table != nullptr ? table->title : file;
  const std::vector<PublishedRow> rows = rows_of(file, table, catalogue);
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
  if (table == nullptr) results = scored_in(std::move(results), Bucket::dense);
  add_baseline(results);
  if (const std::string out = arguments.get("out"); !out.empty()) write_reports(out, name, results);
  view.write(view.arranged(published_sources(results)));
  const std::string text = arguments.has("json") ? published_json(name, results) + "\n"
                           : view.prints_csv()
                               ? view.printed(published_sources(results))
                               : text_of(name, results, table, view, arguments.has("by-degree"));
  std::fputs(text.c_str(), stdout);
  if (sim::stop_requested()) return sim::stop_code();
  if (!limit) return sim::exit_ok;
  const PublishedSummary summary = summary_of(results);
  return summary.ours && summary.mean_source_median <= *limit ? sim::exit_ok
                                                              : sim::exit_too_inaccurate;
}

}  // namespace stepcast::validate
