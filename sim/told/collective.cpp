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
  for (const auto& term : why.terms) {
    const std::string each = to_text(term.each), total = to_text(term.total());
    add_line(out, &term == &why.terms.front() ? "made of" : "",
             term.count == 1
                 ? fmt::format("{:<20}{}", term.name, each)
                 : fmt::format("{:<20}{} = {} x {}", term.name, total, grouped(term.count), each));
  }
}

void tell_bottleneck(ToldSection& out, const CollectiveExplanation& why) {
  for (const CollectiveExplanation::Bottleneck& link : why.bottleneck) {
    const std::string alike =
        link.alike > 0 ? fmt::format(" ({} more like it)", grouped(link.alike)) : "";
    add_line(out, "busiest link",
             fmt::format("{} to {}: {} at {}, {}{}", link.from, link.to, to_text(link.load),
                         to_text(link.capacity), to_text(link.busy()), alike));
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

void tell_channels(ToldSection& out, const CollectiveExplanation& why) {
  say_channels(out, why);
  if (why.heads > 0)
    add_line(out, "NVLS heads",
             fmt::format("{} a node, each with its part of the bytes and its NIC", why.heads));
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
}

void tell_options(ToldSection& out, const CollectiveReport& report) {
  const auto& options = report.explanation->options;
  for (const NcclOption& option : options) {
    const std::string algorithm(name_of(option.algorithm)), protocol(name_of(option.protocol));
    const bool chosen =
        option.algorithm == report.time.algorithm && option.protocol == report.time.protocol;
    add_line(out, &option == &options.front() ? "NCCL estimated" : "",
             fmt::format("{:<16}{:<9}{}{}{}", algorithm, protocol, to_text(option.estimate),
                         option.handicap > 1.0
                             ? fmt::format(", kept for last (x {:g}): fp8 sums lose in a ring",
                                           option.handicap)
                             : "",
                         chosen ? ", taken" : ""));
  }
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

constexpr auto to_the_left = TextTable::Align::left;

TextTable stepped_terms_columns() {
  return {{"stepped", "term", to_the_left},
          {"one variable", "one_variable_us"},
          {"stepped", "stepped_us"},
          {"", "reason", to_the_left}};
}

TextTable stepped_terms_table(const SteppedCollective& both) {
  TextTable table = stepped_terms_columns();
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
  return table;
}

const Form<CollectiveExplanation::ChannelOnNode>& channel_form() {
  using C = const CollectiveExplanation::ChannelOnNode&;
  const auto of_nic = [](auto value) {
    return [value](C c) -> std::optional<decltype(value(c))> {
      if (c.channel.nic_in < 0) return std::nullopt;
      return value(c);
    };
  };
  static const Form<CollectiveExplanation::ChannelOnNode> form =
      Form<CollectiveExplanation::ChannelOnNode>("channel")
          .has("node", "Counted from 0.", [](C c) { return c.node; })
          .has("gpus", "In the order of the channel.", [](C c) { return c.channel.gpus; })
          .has("nic_in", "That it comes in by.", of_nic([](C c) { return c.channel.nic_in; }))
          .has("nic_out", "That it leaves by.", of_nic([](C c) { return c.channel.nic_out; }))
          .has("pxn", "Over NVLink to another GPU's NIC.",
               of_nic([](C c) { return c.channel.by_pxn(); }));
  return form;
}

const Form<CollectiveExplanation::Term>& term_form() {
  using T = const CollectiveExplanation::Term&;
  static const Form<CollectiveExplanation::Term> form =
      Form<CollectiveExplanation::Term>("term")
          .has("term", "What it is.", [](T t) { return t.name; })
          .has("count", "How often.", [](T t) { return t.count; })
          .has("each_us", "Once.", [](T t) { return microseconds(t.each); })
          .has("total_us", "All together.", [](T t) { return microseconds(t.total()); });
  return form;
}

const Form<CollectiveExplanation::Bottleneck>& bottleneck_form() {
  using B = const CollectiveExplanation::Bottleneck&;
  static const Form<CollectiveExplanation::Bottleneck> form =
      Form<CollectiveExplanation::Bottleneck>("busiest_link")
          .has("from", "A device.", [](B b) { return b.from; })
          .has("to", "A device.", [](B b) { return b.to; })
          .has("bytes", "That cross it.", [](B b) { return b.load.value; })
          .has("gb_per_s", "Its bandwidth.", [](B b) { return gigabytes(b.capacity); })
          .has("busy_us", "The time that this takes.", [](B b) { return microseconds(b.busy()); })
          .has("alike", "Other links that are just as busy.", [](B b) { return b.alike; });
  return form;
}

const Form<NcclOption>& option_form() {
  using O = const NcclOption&;
  static const Form<NcclOption> form =
      Form<NcclOption>("nccl_option")
          .has("algorithm", "", [](O o) { return std::string(name_of(o.algorithm)); })
          .has("protocol", "", [](O o) { return std::string(name_of(o.protocol)); })
          .has("estimate_us", "NCCL's own.", [](O o) { return microseconds(o.estimate); })
          .has("handicap", "That the estimate is multiplied with: above 1 kept for last.",
               [](O o) { return o.handicap; })
          .has("bandwidth_gb_per_s", "That NCCL expects.",
               [](O o) { return gigabytes(o.bandwidth); });
  return form;
}

Json paths_json(const CollectiveExplanation& why) {
  Json paths = Json::array();
  for (const auto& channel : why.channels) {
    Json& nodes = paths.emplace_back(Json::array());
    for (const auto& on : channel) nodes.push_back(channel_form().json(on));
  }
  return paths;
}

std::vector<std::vector<std::int64_t>> tree_parents(const CollectiveExplanation& why) {
  std::vector<std::vector<std::int64_t>> trees;
  for (const auto& parents : why.parents)
    if (!parents.empty()) trees.push_back(parents);
  return trees;
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
  tell_options(out, report);
  add_line(out, "rests on", time.rests_on.empty() ? "the model alone" : time.rests_on);
  if (time.correction != 1.0)
    add_line(out, "",
             fmt::format("which makes it {} times the model's", three_digits(time.correction)));
  return out;
}

ToldSection told_of(const SteppedCollective& both) {
  ToldSection out;
  out.table("", stepped_terms_table(both));
  add_line(out, "steps", steps_text(both));
  add_line(out, "busiest link",
           fmt::format("{}, {} of the time", both.busiest_name, percent(both.busiest_use)));
  return out;
}

const Form<CollectiveReport>& explanation_form() {
  using C = const CollectiveReport&;
  const auto why = [](auto of) { return [of](C c) { return of(*c.explanation); }; };
  using E = const CollectiveExplanation&;
  static const Form<CollectiveReport> form =
      Form<CollectiveReport>("explanation")
          .list("terms", "They add up to the time.", term_form(), why([](E e) { return e.terms; }))
          .object_or_null("busiest_link", "Null where nothing moves.", bottleneck_form(),
                          [](C c) {
                            const auto& links = c.explanation->bottleneck;
                            return links.empty() ? nullptr : &links.back();
                          })
          .has("channels/count", "That the search found, copies included.",
               why([](E e) { return e.searched; }))
          .has("channels/planned_gb_per_s", "Of each, as NCCL plans it.",
               why([](E e) { return gigabytes(e.channel_speed); }))
          .word("channels/kind", "Of trees a chain.", {"chain", "ring"},
                why([](E e) { return e.hierarchical ? "chain" : "ring"; }))
          .has("channels/crosses_nics", "In pairs.", why([](E e) { return e.crosses_nics; }))
          .has("nvls_heads", "GPUs of a node, each for its part of the bytes.",
               why([](E e) { return e.heads > 0 ? std::optional(e.heads) : std::nullopt; }))
          .json(
              "paths", "By channel, by node.",
              [](Definitions& all) { return list_schema(list_schema(channel_form().schema(all))); },
              why(paths_json))
          .has("tree_parents", "Of every node in each tree, -1 of the root.", why(tree_parents))
          .has("ctas", "SMs held on every GPU.", [](C c) { return c.time.ctas; })
          .list("nccl_options", "What NCCL weighed.", option_form(),
                why([](E e) { return e.options; }))
          .has("rests_on", "Measurements; empty: the model alone.",
               [](C c) { return c.time.rests_on; })
          .has("correction", "Of the model's time by these.",
               [](C c) { return c.time.correction; });
  return form;
}

const Form<SteppedCollective>& stepped_form() {
  using S = const SteppedCollective&;
  static const Form<SteppedCollective> form =
      Form<SteppedCollective>("stepped")
          .has("one_variable_us", "As one transfer at an even rate.",
               [](S s) { return microseconds(s.one_variable); })
          .has("stepped_us", "As chunks.", [](S s) { return microseconds(s.stepped); })
          .has("ratio", "stepped_us / one_variable_us", [](S s) { return s.ratio(); })
          .table("terms", "Both, term by term.", stepped_terms_columns(), stepped_terms_table)
          .has("transfers", "Of chunks.", [](S s) { return s.transfers; })
          .has("step_ends_us", "From the start of the collective.",
               [](S s) {
                 std::vector<double> ends;
                 for (const Duration end : s.step_ends) ends.push_back(microseconds(end));
                 return ends;
               })
          .has("busiest_link", "By name.", [](S s) { return s.busiest_name; })
          .has("busiest_use", "Share of the time in which it carries bytes.",
               [](S s) { return s.busiest_use; });
  return form;
}

}  // namespace stepcast::sim
