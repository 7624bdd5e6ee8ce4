#include "validate/layers/report.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/arithmetic.hpp"
#include "sim/files/json_text.hpp"
#include "sim/files/text_table.hpp"

namespace stepcast::validate {
namespace {

std::string in_ms(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }
std::string with_sign(double share) { return (share > 0 ? "+" : "") + sim::percent(share); }

std::string precision_of(const LayerRow& row) {
  return row.recipe.empty() ? row.precision : row.precision + " " + row.recipe;
}

std::string shape_of_layer(const LayerRow& row) {
  return fmt::format("{} of {} experts, {} x {}", row.per_token, row.experts, row.hidden, row.ffn);
}

/// Errors of the median rate of the rows of one GPU and precision.
std::vector<double> errors_of_one_rate(const std::vector<LayerResult>& results) {
  std::map<std::string, std::vector<double>> rates;
  const auto key = [](const LayerRow& row) { return row.gpu + " " + precision_of(row); };
  for (const LayerResult& r : results)
    if (r.predicted()) rates[key(r.row)].push_back(r.flops / r.row.both_s());
  std::vector<double> out;
  for (const LayerResult& r : results)
    if (r.predicted()) out.push_back(r.flops / median(rates.at(key(r.row))) / r.row.both_s() - 1.0);
  return out;
}

std::string score_line(const char* what, const std::optional<Score>& score) {
  if (!score) return "";
  return fmt::format("{:<22}median {:>7}, bias {:>7}\n", what, sim::percent(score->median_ape),
                     with_sign(score->bias));
}

nlohmann::ordered_json parts_json(const LayerParts& parts) {
  return {{"products_s", parts.products},
          {"exchange_s", parts.exchange},
          {"others_s", parts.others},
          {"idle_s", parts.idle}};
}

nlohmann::ordered_json score_json(const std::optional<Score>& score) {
  if (!score) return nullptr;
  return {{"median", score->median_ape}, {"mean", score->mape}, {"bias", score->bias}};
}

}  // namespace

LayerScores scores_of(const std::vector<LayerResult>& results) {
  const auto of = [&](auto error) {
    std::vector<double> errors;
    for (const LayerResult& r : results)
      if (r.predicted()) errors.push_back((r.*error)());
    return score_of(errors);
  };
  return {of(&LayerResult::error), of(&LayerResult::forward_error),
          of(&LayerResult::backward_error), score_of(errors_of_one_rate(results))};
}

std::string layers_text(const std::string& title, const std::vector<LayerResult>& results) {
  using Align = sim::TextTable::Align;
  sim::TextTable table;
  for (const char* heading : {"row", "layer", "precision", "exchange"})
    table.column(heading, "", Align::left);
  for (const char* heading : {"forward", "predicted", "backward", "predicted", "error", "products",
                              "exchange", "others", "idle"})
    table.column(heading);
  std::string refused;
  for (const LayerResult& r : results) {
    if (!r.predicted()) {
      refused += fmt::format("{} is refused: {}\n", r.row.id, r.refused);
      continue;
    }
    const auto both = [&](double LayerParts::*part) {
      return in_ms(r.forward.*part + r.backward.*part);
    };
    table.row({r.row.id, shape_of_layer(r.row), precision_of(r.row), r.row.dispatcher,
               in_ms(r.row.forward_s), in_ms(r.forward.sum()), in_ms(r.row.backward_s),
               in_ms(r.backward.sum()), with_sign(r.error()), both(&LayerParts::products),
               both(&LayerParts::exchange), both(&LayerParts::others), both(&LayerParts::idle)});
  }
  const LayerScores scores = scores_of(results);
  std::string out = title + ": measured layers beside the simulation, times in ms\n";
  if (scores.both) out += table.text() + "\n";
  return out + score_line("forward and backward", scores.both) +
         score_line("forward", scores.forward) + score_line("backward", scores.backward) +
         score_line("one rate of products", scores.rate) + refused;
}

std::string layers_json(const std::vector<LayerResult>& results) {
  const LayerScores scores = scores_of(results);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const LayerResult& r : results) {
    nlohmann::ordered_json row{{"id", r.row.id},
                               {"measured_forward_s", r.row.forward_s},
                               {"measured_backward_s", r.row.backward_s},
                               {"refused", r.refused},
                               {"assumed", r.assumed}};
    if (r.predicted()) {
      row["error"] = r.error();
      row["forward"] = parts_json(r.forward);
      row["backward"] = parts_json(r.backward);
    }
    rows.push_back(std::move(row));
  }
  const nlohmann::ordered_json all{{"summary",
                                    {{"both", score_json(scores.both)},
                                     {"forward", score_json(scores.forward)},
                                     {"backward", score_json(scores.backward)},
                                     {"one_rate", score_json(scores.rate)}}},
                                   {"rows", std::move(rows)}};
  return sim::json_text(all, 1);
}

}  // namespace stepcast::validate
