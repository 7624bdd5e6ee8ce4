#include <nlohmann/json.hpp>

#include "sim/files/json_text.hpp"
#include "validate/compare/report.hpp"

namespace stepcast::validate {
namespace {

using Json = nlohmann::ordered_json;

Json microseconds(const std::optional<Duration>& duration) {
  return duration ? Json(seconds(*duration) * 1e6) : Json(nullptr);
}

Json row_json(const ComparedRow& row) {
  const bool compared = row.predicted && row.measured > Duration(0);
  Json out = {{"line", row.line}, {"gpu", row.gpu}, {"kind", row.kind}, {"what", row.what}};
  if (row.bytes > Bytes(0)) out["bytes"] = row.bytes.value;
  out["measured_us"] =
      microseconds(row.measured > Duration(0) ? std::optional(row.measured) : std::nullopt);
  out["predicted_us"] = microseconds(row.predicted);
  out["error"] = compared ? Json(row.error()) : Json(nullptr);
  out["nccl_estimate_us"] = microseconds(row.nccl_estimate);
  out["provenance"] = row.provenance;
  out["rests_on"] = row.rests_on;
  out["scored"] = row.scored();
  out["not_scored"] = row.not_scored;
  return out;
}

Json median_json(const std::optional<Score>& score) {
  return score ? Json(score->median_ape) : Json(nullptr);
}

}  // namespace

std::string report_json(const Comparison& comparison) {
  const Summary summary = summary_of(comparison);
  Json out;
  out["summary"] = {{"rows", summary.rows},
                    {"predicted", summary.all ? summary.all->rows : 0},
                    {"median_ape", median_json(summary.all)},
                    {"median_ape_from_1mib", median_json(summary.from_1mib)},
                    {"median_ape_below_1mib", median_json(summary.below_1mib)},
                    {"mape", summary.all ? Json(summary.all->mape) : Json(nullptr)},
                    {"bias", summary.all ? Json(summary.all->bias) : Json(nullptr)},
                    {"nccl_median_ape", median_json(summary.nccl)},
                    {"left_out", comparison.left_out}};
  out["rows"] = Json::array();
  for (const ComparedRow& row : comparison.rows) out["rows"].push_back(row_json(row));
  return sim::json_text(out, 2);
}

}  // namespace stepcast::validate
