#include "sim/told/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/told/labelled_line.hpp"

namespace stepcast::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t channels_in_full = 2, nodes_in_full = 3, parents_in_full = 16;

double microseconds(Duration duration) { return seconds(duration) * 1e6; }
double gigabytes(BytesPerSecond bandwidth) { return bandwidth.value / 1e9; }

void add_line(ToldSection& out, const std::string& label, const std::string& value) {
  out.blocks.emplace_back(Listing{label, labelled_line(label, value)});
}

std::string list(const std::vector<std::int64_t>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

/// "nic0 > 0 7 6 5 4 3 2 1 > nic1", or "0 3 2 1 > 0" where the ring closes in the node.
std::string path_text(const NodeChannel& channel, bool hierarchical) {
  if (channel.nic_in < 0)
    return hierarchical ? list(channel.gpus)
                        : fmt::format("{} > {}", list(channel.gpus), channel.gpus.front());
  if (hierarchical) return fmt::format("nic{} <> {}", channel.nic_in, list(channel.gpus));
  const std::string pxn = channel.by_pxn() ? fmt::format(" (by {}, PXN)", channel.out_gpu) : "";
  return fmt::format("nic{} > {} > nic{}{}", channel.nic_in, list(channel.gpus), channel.nic_out,
                     pxn);
}

std::string more_text(std::size_t count, const char* what) {
  return fmt::format("{} more {}{} like these", grouped(static_cast<std::int64_t>(count)), what,
                     count == 1 ? "" : "s");
}

void tell_terms(ToldSection& out, const CollectiveExplanation& why) {
  TextTable table{filed("term"), filed("count"), filed("each_us"), filed("total_us")};
  for (const auto& term : why.terms) {
    const std::string each = to_text(term.each), total = to_text(term.total());
    add_line(out, table.num_rows() == 0 ? "made of" : "",
             term.count == 1
                 ? fmt::format("{:<20}{}", term.name, each)
                 : fmt::format("{:<20}{} = {} x {}", term.name, total, grouped(term.count), each));
    table.row({term.name, kept(term.count), kept(microseconds(term.each)),
               kept(microseconds(term.total()))},
              TextTable::For::files);
  }
  out.table("terms", std::move(table));
}

void tell_bottleneck(ToldSection& out, const CollectiveExplanation& why) {
  if (why.bottleneck.empty()) out.keep("busiest_link", nullptr);
  for (const CollectiveExplanation::Bottleneck& link : why.bottleneck) {
    const std::string alike =
        link.alike > 0 ? fmt::format(" ({} more like it)", grouped(link.alike)) : "";
    add_line(out, "busiest link",
             fmt::format("{} to {}: {} at {}, {}{}", link.from, link.to, to_text(link.load),
                         to_text(link.capacity), to_text(link.busy()), alike));
    out.keep("busiest_link/from", link.from);
    out.keep("busiest_link/to", link.to);
    out.keep("busiest_link/bytes", link.load.value);
    out.keep("busiest_link/gb_per_s", gigabytes(link.capacity));
    out.keep("busiest_link/busy_us", microseconds(link.busy()));
    out.keep("busiest_link/alike", link.alike);
  }
}

void say_channels(ToldSection& out, const CollectiveExplanation& why) {
  if (why.channels.empty()) return;
  const std::string crossing = why.crosses_nics ? ", crossing NICs in pairs" : "";
  add_line(out, why.hierarchical ? "chains" : "rings",
           fmt::format("{} of {} planned{}; GPUs in order", why.searched,
                       to_text(why.channel_speed), crossing));
  const std::size_t shown = std::min(channels_in_full, why.channels.size());
  for (std::size_t c = 0; c < shown; ++c) {
    const auto& nodes = why.channels[c];
    for (std::size_t at = 0; at < std::min(nodes_in_full, nodes.size()); ++at)
      add_line(out, at == 0 ? fmt::format("  channel {}", c) : "",
               fmt::format("node {}: {}", nodes[at].node,
                           path_text(nodes[at].channel, why.hierarchical)));
    if (nodes.size() > nodes_in_full)
      add_line(out, "", more_text(nodes.size() - nodes_in_full, "node"));
  }
  if (const std::size_t more = why.channels.size() - shown; more > 0)
    add_line(out, "", more_text(more, "channel"));
}

Json channel_json(const CollectiveExplanation::ChannelOnNode& on) {
  Json out{{"node", on.node}, {"gpus", on.channel.gpus}};
  if (on.channel.nic_in < 0) return out;
  out["nic_in"] = on.channel.nic_in;
  out["nic_out"] = on.channel.nic_out;
  out["pxn"] = on.channel.by_pxn();
  return out;
}

void tell_channels(ToldSection& out, const CollectiveExplanation& why) {
  say_channels(out, why);
  out.keep("channels/count", why.searched);
  out.keep("channels/planned_gb_per_s", gigabytes(why.channel_speed));
  out.keep("channels/kind", why.hierarchical ? "chain" : "ring");
  out.keep("channels/crosses_nics", why.crosses_nics);
  if (why.heads > 0) {
    add_line(out, "NVLS heads",
             fmt::format("{} a node, each with its part of the bytes and its NIC", why.heads));
    out.keep("nvls_heads", why.heads);
  }
  out.keep_json("paths", [&why] {
    Json paths = Json::array();
    for (const auto& channel : why.channels) {
      Json& nodes = paths.emplace_back(Json::array());
      for (const auto& on : channel) nodes.push_back(channel_json(on));
    }
    return paths;
  });
}

void tell_trees(ToldSection& out, const CollectiveExplanation& why) {
  for (std::size_t tree = 0; tree < 2; ++tree) {
    const auto& parents = why.parents[tree];
    if (parents.empty()) continue;
    std::string places;
    std::int64_t root = 0;
    for (std::size_t at = 0; at < parents.size(); ++at) {
      if (parents[at] < 0) root = static_cast<std::int64_t>(at);
      if (parents[at] >= 0 && at < parents_in_full)
        places += fmt::format(" {}>{}", at, parents[at]);
    }
    if (parents.size() > parents_in_full)
      places += fmt::format(" and {} more",
                            grouped(static_cast<std::int64_t>(parents.size() - parents_in_full)));
    add_line(out, fmt::format("tree {}", tree),
             fmt::format("root {}; node>parent:{}", root, places));
  }
  out.keep_json("tree_parents", [&why] {
    Json trees = Json::array();
    for (const auto& parents : why.parents)
      if (!parents.empty()) trees.push_back(parents);
    return trees;
  });
}

void tell_options(ToldSection& out, const CollectiveReport& report) {
  TextTable table{filed("algorithm"), filed("protocol"), filed("estimate_us"), filed("handicap"),
                  filed("bandwidth_gb_per_s")};
  for (const NcclOption& option : report.explanation->options) {
    const std::string algorithm(name_of(option.algorithm)), protocol(name_of(option.protocol));
    const bool chosen =
        option.algorithm == report.time.algorithm && option.protocol == report.time.protocol;
    add_line(out, table.num_rows() == 0 ? "NCCL estimated" : "",
             fmt::format("{:<16}{:<9}{}{}{}", algorithm, protocol, to_text(option.estimate),
                         option.handicap > 1.0
                             ? fmt::format(", kept for last (x {:g}): fp8 sums lose in a ring",
                                           option.handicap)
                             : "",
                         chosen ? ", taken" : ""));
    table.row({algorithm, protocol, kept(microseconds(option.estimate)), kept(option.handicap),
               kept(gigabytes(option.bandwidth))},
              TextTable::For::files);
  }
  out.table("nccl_options", std::move(table));
}

/// Spans from the end of one step to that of the next; the first from the start of the transfers.
std::vector<Duration> spans_of(const SteppedCollective& both) {
  std::vector<Duration> spans;
  Duration before = both.transfers_start;
  for (const Duration end : both.step_ends) {
    spans.push_back(end - before);
    before = end;
  }
  return spans;
}

std::string steps_text(const SteppedCollective& both) {
  std::vector<Duration> spans = spans_of(both);
  if (spans.empty()) return "none";
  const Duration first = spans.front();
  std::sort(spans.begin(), spans.end());
  return fmt::format("{} in {} transfers; the first {}, then {} to {}, median {}",
                     grouped(static_cast<std::int64_t>(spans.size())), grouped(both.transfers),
                     to_text(first), to_text(spans.front()), to_text(spans.back()),
                     to_text(spans[spans.size() / 2]));
}

}  // namespace

ToldSection explanation_of(const CollectiveReport& report) {
  expects(report.explanation.has_value(), "a collective that was explained");
  const CollectiveExplanation& why = *report.explanation;
  const CollectiveTime& time = report.time;
  ToldSection out;
  tell_terms(out, why);
  tell_bottleneck(out, why);
  tell_channels(out, why);
  tell_trees(out, why);
  add_line(out, "SMs held", fmt::format("{} on every GPU", time.ctas));
  out.keep("ctas", time.ctas);
  tell_options(out, report);
  add_line(out, "rests on", time.rests_on.empty() ? "the model alone" : time.rests_on);
  out.keep("rests_on", time.rests_on);
  if (time.correction != 1.0)
    add_line(out, "",
             fmt::format("which makes it {} times the model's", three_digits(time.correction)));
  out.keep("correction", time.correction);
  return out;
}

ToldSection told_of(const SteppedCollective& both) {
  ToldSection out;
  out.keep("one_variable_us", microseconds(both.one_variable));
  out.keep("stepped_us", microseconds(both.stepped));
  out.keep("ratio", both.ratio());
  constexpr auto to_the_left = TextTable::Align::left;
  TextTable table{{"stepped", "term", to_the_left},
                  {"one variable", "one_variable_us"},
                  {"stepped", "stepped_us"},
                  {"", "reason", to_the_left}};
  const auto add = [&](const std::string& name, Duration one, Duration stepped,
                       const std::string& reason, TextTable::For readers) {
    table.row({kept(name, "  " + name),
               {to_text(one), microseconds(one)},
               {to_text(stepped), microseconds(stepped)},
               reason},
              readers);
  };
  for (const SteppedTerm& term : both.terms)
    add(term.name, term.one_variable, term.stepped, term.reason, TextTable::For::all);
  add("total", both.one_variable, both.stepped, fmt::format("ratio {:.4f}", both.ratio()),
      TextTable::For::people);
  out.table("terms", std::move(table));
  add_line(out, "steps", steps_text(both));
  out.keep("transfers", both.transfers);
  out.keep_json("step_ends_us", [&both] {
    Json ends = Json::array();
    for (const Duration end : both.step_ends) ends.push_back(microseconds(end));
    return ends;
  });
  add_line(out, "busiest link",
           fmt::format("{}, {} of the time", both.busiest_name, percent(both.busiest_use)));
  out.keep("busiest_link", both.busiest_name);
  out.keep("busiest_use", both.busiest_use);
  return out;
}

}  // namespace stepcast::sim
