#include "sim/scenario/failure_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/member_writer.hpp"

namespace stepcast::sim {
namespace {

/// `interruptions` that were counted over `node_days` (0: not stated), or the rate itself.
FailureCause read_cause(const TomlValue& value, double node_days) {
  TableReader table(value, "cause");
  FailureCause cause;
  cause.name = table.required("name", table.text("name"));
  const auto counted = table.number("interruptions", Range::not_negative);
  const auto rate = table.number("per_1000_node_days", Range::not_negative);
  cause.hangs = table.flag("hangs").value_or(false);
  cause.takes_node = table.flag("takes_node").value_or(false);
  table.finish();
  if (counted.has_value() == rate.has_value())
    table.fail("name", "a cause has either 'interruptions' or 'per_1000_node_days'");
  if (counted && !(node_days > 0.0))
    table.fail("interruptions", "'interruptions' without 'nodes' and 'days' beside the causes");
  cause.per_1000_node_days = counted ? *counted / node_days * 1000.0 : rate.value_or(0.0);
  return cause;
}

void read_causes(TableReader& table, FailureRates& rates) {
  const auto nodes = table.number("nodes"), days = table.number("days");
  const TomlValue* list = table.value("cause");
  if (list == nullptr || list->array() == nullptr) table.missing("cause", "[[cause]]");
  if (nodes.has_value() != days.has_value())
    table.fail("nodes", "'nodes' and 'days' belong together",
               "interruptions were counted over both");
  const double node_days = nodes.value_or(0.0) * days.value_or(0.0);
  for (const TomlValue& cause : *list->array())
    rates.causes.push_back(read_cause(cause, node_days));
  const double all = rates.per_1000_node_days();
  if (!(all >= least_failure_rate && all <= most_failure_rate))
    table.fail("cause",
               fmt::format("{:.3g} interruptions per 1,000 node-days by these causes", all),
               fmt::format("{:g} to {:g} is what there is", least_failure_rate, most_failure_rate));
}

CheckpointTier read_tier(const TomlValue& value) {
  TableReader table(value, "failures.checkpoint");
  CheckpointTier tier;
  read_members(table, false, [&](auto&& visit) { visit_checkpoint_tier(tier, visit); });
  table.finish();
  if (tier.survives > 1.0)
    table.fail("survives", "'survives' in [[failures.checkpoint]] is more than 1",
               "0.9: after nine interruptions of ten");
  if (tier.blocking && tier.load && !tier.asynchronous)
    for (const char* key : {"bandwidth", "per_node"})
      if (table.value(key) != nullptr)
        table.fail(key, table.label(key) + " has no effect beside 'blocking' and 'load'",
                   "they are what it would decide");
  return tier;
}

void read_tiers(TableReader& table, Failures& failures) {
  const TomlValue* list = table.value("checkpoint");
  if (list == nullptr) {
    // Llama 3's store sustained 2 TB/s for 2,048 nodes (arXiv 2407.21783, 3.3.1).
    failures.tiers.emplace_back().per_node = BytesPerSecond(1e9);
    return;
  }
  if (list->array() == nullptr || list->array()->empty())
    table.fail("checkpoint", "'checkpoint' in [failures] must be written [[failures.checkpoint]]");
  table.note_change("checkpoint");
  for (const TomlValue& tier : *list->array()) {
    failures.tiers.push_back(read_tier(tier));
    const std::size_t count = failures.tiers.size();
    if (count > 1 && failures.tiers[count - 2].survives >= failures.tiers[count - 1].survives)
      throw InputError(tier.where,
                       "a tier of [[failures.checkpoint]] survives no more than the one before",
                       "the fastest first: each survives more interruptions, the last all of them");
  }
  if (failures.tiers.back().survives < 1.0)
    throw InputError(list->array()->back().where,
                     "the last tier of [[failures.checkpoint]] does not survive everything",
                     "add one with survives = 1.0, the default");
}

/// A table of [failures] that may be left out.
template <class Read>
void read_inner(TableReader& table, const char* key, Read read) {
  const TomlValue* value = table.table(key);
  if (value == nullptr) return;
  TableReader inner(*value, "failures." + std::string(key));
  read(inner);
  inner.finish();
  for (const std::string& path : inner.changes()) table.note_change(path.substr(9));
}

void check_ranges(TableReader& table, const Failures& failures) {
  if (failures.days > 3660.0) table.fail("days", "'days' in [failures] is more than ten years");
  if (failures.runs > 100'000) table.fail("runs", "'runs' in [failures] is too large");
  if (failures.runs < 10)
    table.fail("runs", "'runs' in [failures] is too small", "a band takes ten at least");
  if (failures.rate_sigma() > 3.0)
    table.fail("sigma", "'sigma' in [failures] is more than 3", "0.5: rates differ by e^0.5 = 1.6");
}

}  // namespace

FailureRates read_failure_rates(const TomlValue& value, const Catalogue& catalogue) {
  const std::string* name = value.text();
  const TomlValue& document =
      name != nullptr ? catalogue.entry("failures", *name, value.where) : value;
  if (document.table() == nullptr)
    throw InputError(value.where, "'rates' in [failures] must be a name or a table");
  TableReader table(document, "failures.rates");
  for (const char* key : {"source", "sources", "date", "note", "notes", "title"}) table.value(key);
  FailureRates rates;
  rates.name = table.required("name", table.text("name"));
  rates.gpus = table.integer("gpus", 0).value_or(0);
  rates.gpus_per_node = table.integer("gpus_per_node").value_or(8);
  rates.sigma = table.number("sigma", Range::not_negative).value_or(0.0);
  read_causes(table, rates);
  table.finish();
  return rates;
}

Failures read_failures(TableReader& table, const Catalogue& catalogue) {
  static const std::string usual = "llama3-405b";
  Failures failures;
  failures.on = true;
  read_members(table, false, [&](auto&& visit) { visit_failures(failures, visit); });
  const TomlValue* rates = table.value("rates");
  failures.rates =
      read_failure_rates(rates != nullptr ? *rates : toml_text(usual, table.where()), catalogue);
  if (failures.rates.name != usual) table.note_change("rates");
  read_tiers(table, failures);
  read_inner(table, "slow", [&](TableReader& inner) {
    read_members(inner, false, [&](auto&& visit) { visit_slow_nodes(failures.slow, visit); });
    if (failures.slow.slowdown < 1.0 || failures.slow.slowdown > 1000.0)
      inner.fail("slowdown", "'slowdown' in [failures.slow] is not between 1 and 1000",
                 "1.2 makes kernels take 20 % longer");
  });
  read_inner(table, "flap", [&](TableReader& inner) {
    read_members(inner, false, [&](auto&& visit) { visit_link_flaps(failures.flap, visit); });
  });
  check_ranges(table, failures);
  table.finish();
  return failures;
}

TomlValue failures_table(const Failures& failures) {
  const TomlValue empty = toml_table({});
  TomlValue out = written(empty, [&](auto&& visit) { visit_failures(failures, visit); });
  TomlValue rates = empty;
  rates.set("name", {failures.rates.name, {}});
  rates.set("gpus", {failures.rates.gpus, {}});
  rates.set("gpus_per_node", {failures.rates.gpus_per_node, {}});
  rates.set("sigma", {failures.rates.sigma, {}});
  TomlValue::Array causes, tiers;
  for (const FailureCause& cause : failures.rates.causes) {
    causes.push_back(empty);
    causes.back().set("name", {cause.name, {}});
    causes.back().set("per_1000_node_days", {cause.per_1000_node_days, {}});
    if (cause.hangs) causes.back().set("hangs", {true, {}});
    if (cause.takes_node) causes.back().set("takes_node", {true, {}});
  }
  rates.set("cause", {std::move(causes), {}});
  out.set("rates", std::move(rates));
  for (const CheckpointTier& tier : failures.tiers)
    tiers.push_back(written(empty, [&](auto&& visit) { visit_checkpoint_tier(tier, visit); }));
  out.set("checkpoint", {std::move(tiers), {}});
  out.set("slow", written(empty, [&](auto&& visit) { visit_slow_nodes(failures.slow, visit); }));
  out.set("flap", written(empty, [&](auto&& visit) { visit_link_flaps(failures.flap, visit); }));
  return out;
}

}  // namespace stepcast::sim
