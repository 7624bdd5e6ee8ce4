#include "validate/layers/command.hpp"

#include <cstdio>
#include <filesystem>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/command/handout_options.hpp"
#include "sim/files/csv.hpp"
#include "sim/files/printable.hpp"
#include "sim/program/answer_forms.hpp"
#include "sim/scenario/file.hpp"
#include "validate/compare/page.hpp"
#include "validate/layers/report.hpp"

namespace stepcast::validate {
namespace {

constexpr sim::Option layer_options[] = {
    {"show", "ID", "", "print the scenario that this row becomes: a model of one layer"},
    {"fail-above", "PERCENT", "", "exit code 5 when the median error is larger"},
    sim::json_option,
    sim::rows_option,
    sim::report_option,
    sim::svg_option,
};

int show_layer(const std::vector<LayerRow>& rows, const std::string& id, const std::string& file,
               sim::Session& session) {
  for (const LayerRow& row : rows) {
    if (row.id != id) continue;
    const RowScenario made = layer_scenario(row, ScenarioMaker(session));
    if (!made.scenario) throw InputError(file, id + " is refused: " + made.refused);
    sim::tell(stdout, sim::write_toml(sim::resolved_document(*made.scenario)));
    return sim::exit_ok;
  }
  throw InputError(file, "no row has the id " + id);
}

sim::Told layers_page(const std::string& name, const std::vector<LayerResult>& results,
                      const sim::Origin& origin) {
  BesidePage page{
      "Layers of experts: predicted against measured",
      "Forward and backward of measured layers beside the same pieces in a step: " + name + ".",
      "time [s]"};
  for (const LayerResult& one : results)
    if (one.predicted())
      page.rows.push_back({one.row.id, one.row.source, one.row.both_s(), one.both_s(),
                           stepcast::to_text(to_duration(one.row.both_s())),
                           stepcast::to_text(to_duration(one.both_s()))});
  if (const auto score = scores_of(results).both)
    page.figures = {
        {"median error", sim::percent(score->median_ape), "of the absolute errors"},
        {"bias", sim::percent(score->bias), "mean; positive: predicted too long"},
        {"rows", sim::grouped(static_cast<std::int64_t>(score->rows)), "that are scored"}};
  page.text = layers_text(name, results);
  return page_of(page, origin);
}

}  // namespace

const sim::Verb layers_verb{
    "stepcast validate layers",
    "[FILE.csv]",
    1,
    "Measured layers of experts, forward and backward, beside the same pieces and kernels as in a "
    "step; without a file those that are shipped. Beside it one rate of products per precision.",
    layer_options,
    "stepcast validate layers"};

int run_layers(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  sim::check_forms(arguments);
  const std::filesystem::path data(catalogue.directory());
  const auto& words = arguments.positional();
  const std::string file =
      words.empty() ? (data.parent_path() / "validate/layers/moe_layers.csv").string() : words[0];
  const std::vector<LayerRow> rows = layer_rows(sim::read_csv(file));
  const auto limit = arguments.share("fail-above");
  sim::Session session(catalogue);
  if (const std::string id = arguments.get("show"); !id.empty())
    return show_layer(rows, id, file, session);
  const std::vector<LayerResult> results = predict_layers(rows, session);
  const std::string name = words.empty() ? "moe_layers.csv" : file;
  const bool printed = sim::print_answer(
      arguments,
      {[&] { return layers_text(name, results); }, [&] { return layers_json(results); }, {"rows"}});
  const sim::HandoutFiles files = sim::handout_files(arguments);
  const bool handed = !files.any() || sim::handed_out(files, [&] {
    return layers_page(name, results, sim::origin_of(layers_verb, arguments));
  });
  if (!printed || !handed) return sim::exit_unwritten;
  if (!limit) return sim::exit_ok;
  const auto score = scores_of(results).both;
  return score && score->median_ape <= *limit ? sim::exit_ok : sim::exit_too_inaccurate;
}

}  // namespace stepcast::validate
