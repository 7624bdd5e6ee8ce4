#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "sim/told/explanation_report.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(Duration duration) { return seconds(duration) * 1e6; }
double gigabytes(BytesPerSecond bandwidth) { return bandwidth.value / 1e9; }

Json channel_json(const CollectiveExplanation::ChannelOnNode& on) {
  Json out{{"node", on.node}, {"gpus", on.channel.gpus}};
  if (on.channel.nic_in < 0) return out;
  out["nic_in"] = on.channel.nic_in;
  out["nic_out"] = on.channel.nic_out;
  out["pxn"] = on.channel.by_pxn();
  return out;
}

Json terms_json(const CollectiveExplanation& why) {
  Json out = Json::array();
  for (const CollectiveExplanation::Term& term : why.terms)
    out.push_back({{"term", term.name},
                   {"count", term.count},
                   {"each_us", microseconds(term.each)},
                   {"total_us", microseconds(term.total())}});
  return out;
}

Json options_json(const CollectiveExplanation& why) {
  Json out = Json::array();
  for (const NcclOption& option : why.options)
    out.push_back({{"algorithm", name_of(option.algorithm)},
                   {"protocol", name_of(option.protocol)},
                   {"estimate_us", microseconds(option.estimate)},
                   {"handicap", option.handicap},
                   {"bandwidth_gb_per_s", gigabytes(option.bandwidth)}});
  return out;
}

}  // namespace

Json explanation_json(const CollectiveReport& report) {
  expects(report.explanation.has_value(), "a collective that was explained");
  const CollectiveExplanation& why = *report.explanation;
  Json out;
  out["terms"] = terms_json(why);
  out["busiest_link"] = nullptr;
  for (const CollectiveExplanation::Bottleneck& link : why.bottleneck)
    out["busiest_link"] = {{"from", link.from},
                           {"to", link.to},
                           {"bytes", link.load.value},
                           {"gb_per_s", gigabytes(link.capacity)},
                           {"busy_us", microseconds(link.busy())},
                           {"alike", link.alike}};
  out["channels"] = {{"count", why.searched},
                     {"planned_gb_per_s", gigabytes(why.channel_speed)},
                     {"kind", why.hierarchical ? "chain" : "ring"},
                     {"crosses_nics", why.crosses_nics}};
  if (why.heads > 0) out["nvls_heads"] = why.heads;
  Json paths = Json::array();
  for (const auto& channel : why.channels) {
    Json nodes = Json::array();
    for (const auto& on : channel) nodes.push_back(channel_json(on));
    paths.push_back(nodes);
  }
  out["paths"] = paths;
  out["tree_parents"] = Json::array();
  for (const auto& parents : why.parents)
    if (!parents.empty()) out["tree_parents"].push_back(parents);
  out["ctas"] = report.time.ctas;
  out["nccl_options"] = options_json(why);
  out["rests_on"] = report.time.rests_on;
  out["correction"] = report.time.correction;
  return out;
}

}  // namespace stepcast::sim
