// A comparison as JSON: keys with units in their names.
#include <nlohmann/json.hpp>

#include "sim/compare/comparison.hpp"
#include "sim/files/json_text.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

Json number_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json time_json(const std::optional<std::int64_t>& ps) {
  return ps ? Json(seconds(Duration(*ps))) : Json(nullptr);
}

Json side_json(const Comparison& c, std::size_t i) {
  const Side& side = c.sides[i];
  Json out{{"label", side.label}, {"name", side.name}, {"measured", side.measured}};
  if (const auto reason = side.row.unanswered()) {
    out["refused"] = *reason;
    return out;
  }
  for (const char* key :
       {"gpus", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "mfu", "memory_gib_per_gpu"})
    out[key] = number_json(side.row.number(key));
  out["tokens"] = number_json(side.tokens());
  const double base = *c.comparable_step_s(c.base()), own = *c.comparable_step_s(i);
  out["time_per_token_change"] = own / base - 1;
  out["order_probability"] = number_json(c.order_right(i));
  Json parts = Json::object(), differences = Json::object();
  for (const StepPart& part : parts_of(c)) {
    const auto value = part_s(c, i, part), of_base = part_s(c, c.base(), part);
    parts[std::string(part.key)] = number_json(value);
    if (value && of_base) differences[std::string(part.key)] = *value - *of_base;
  }
  out["parts_s"] = parts;
  out["differences_s"] = differences;
  return out;
}

Json effect_json(const ChangeEffect& effect) {
  Json out{{"change", effect.name}};
  if (!effect.from.empty()) out["from"] = effect.from;
  if (!effect.to.empty()) out["to"] = effect.to;
  out["alone_s"] = time_json(effect.alone_ps);
  if (!effect.fits_alone) out["fits_alone"] = false;
  if (!effect.impossible.empty()) out["impossible_alone"] = effect.impossible;
  out["share_s"] = time_json(effect.share_ps);
  if (effect.error_ps > 0) out["share_standard_error_s"] = effect.error_ps * 1e-12;
  out["without_effect"] = effect.without_effect();
  return out;
}

Json way_json(const Comparison& c, const Difference& way) {
  Json out{{"from", c.sides[way.from].label}, {"to", c.sides[way.to].label}};
  if (!way.keys.empty()) out["keys"] = way.keys;
  if (!way.why_not.empty()) out["no_shares"] = way.why_not;
  if (!way.attribution) return out;
  const Attribution& a = *way.attribution;
  out["from_s"] = time_json(a.from_ps);
  out["to_s"] = time_json(a.to_ps);
  out["changes"] = Json::array();
  for (const ChangeEffect& effect : a.changes) out["changes"].push_back(effect_json(effect));
  out["interaction_s"] = time_json(a.interaction_ps());
  out["runs"] = a.runs;
  out["runs_beyond_memory"] = a.unfit;
  out["orders"] = a.orders;
  out["orders_asked"] = a.asked;
  out["every_order"] = a.exact;
  return out;
}

}  // namespace

std::string comparison_json(const Comparison& c) {
  Json out;
  out["base"] = c.sides[c.base()].label;
  out["same_tokens"] = c.same_tokens();
  out["sides"] = Json::array();
  for (std::size_t i = 0; i < c.sides.size(); ++i) out["sides"].push_back(side_json(c, i));
  out["ways"] = Json::array();
  for (const Difference& way : c.ways) out["ways"].push_back(way_json(c, way));
  out["notes"] = notes_on(c);
  return json_text(out, 2);
}

}  // namespace stepcast::sim
