#include <fmt/format.h>

#include <algorithm>

#include "engine/check.hpp"
#include "engine/units_text.hpp"
#include "sim/files/text_table.hpp"
#include "sim/told/explanation_report.hpp"
#include "sim/told/labelled_line.hpp"

namespace stepcast::sim {
namespace {

constexpr std::size_t channels_in_full = 2, nodes_in_full = 3, parents_in_full = 16;

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

std::string channels_text(const CollectiveExplanation& why) {
  if (why.channels.empty()) return "";
  const std::string crossing = why.crosses_nics ? ", crossing NICs in pairs" : "";
  std::string out = labelled_line(why.hierarchical ? "chains" : "rings",
                                  fmt::format("{} of {} planned{}; GPUs in order", why.searched,
                                              to_text(why.channel_speed), crossing));
  const std::size_t shown = std::min(channels_in_full, why.channels.size());
  for (std::size_t c = 0; c < shown; ++c) {
    const auto& nodes = why.channels[c];
    for (std::size_t at = 0; at < std::min(nodes_in_full, nodes.size()); ++at)
      out += labelled_line(at == 0 ? fmt::format("  channel {}", c) : "",
                           fmt::format("node {}: {}", nodes[at].node,
                                       path_text(nodes[at].channel, why.hierarchical)));
    if (nodes.size() > nodes_in_full)
      out += labelled_line("", more_text(nodes.size() - nodes_in_full, "node"));
  }
  if (const std::size_t more = why.channels.size() - shown; more > 0)
    out += labelled_line("", more_text(more, "channel"));
  return out;
}

std::string heads_text(const CollectiveExplanation& why) {
  if (why.heads == 0) return "";
  return labelled_line(
      "NVLS heads",
      fmt::format("{} a node, each with its part of the bytes and its NIC", why.heads));
}

std::string trees_text(const CollectiveExplanation& why) {
  std::string out;
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
    out += labelled_line(fmt::format("tree {}", tree),
                         fmt::format("root {}; node>parent:{}", root, places));
  }
  return out;
}

std::string terms_text(const CollectiveExplanation& why) {
  std::string out;
  for (const CollectiveExplanation::Term& term : why.terms)
    out += labelled_line(out.empty() ? "made of" : "",
                         term.count == 1
                             ? fmt::format("{:<20}{}", term.name, to_text(term.each))
                             : fmt::format("{:<20}{} = {} x {}", term.name, to_text(term.total()),
                                           grouped(term.count), to_text(term.each)));
  return out;
}

std::string bottleneck_text(const CollectiveExplanation& why) {
  std::string out;
  for (const CollectiveExplanation::Bottleneck& link : why.bottleneck) {
    const std::string alike =
        link.alike > 0 ? fmt::format(" ({} more like it)", grouped(link.alike)) : "";
    out += labelled_line("busiest link", fmt::format("{} to {}: {} at {}, {}{}", link.from, link.to,
                                                     to_text(link.load), to_text(link.capacity),
                                                     to_text(link.busy()), alike));
  }
  return out;
}

std::string options_text(const CollectiveReport& report) {
  const CollectiveTime& time = report.time;
  std::string out;
  for (const NcclOption& option : report.explanation->options) {
    const bool chosen = option.algorithm == time.algorithm && option.protocol == time.protocol;
    out += labelled_line(
        out.empty() ? "NCCL estimated" : "",
        fmt::format(
            "{:<16}{:<9}{}{}{}", name_of(option.algorithm), name_of(option.protocol),
            to_text(option.estimate),
            option.handicap > 1.0
                ? fmt::format(", kept for last (x {:g}): fp8 sums lose in a ring", option.handicap)
                : "",
            chosen ? ", taken" : ""));
  }
  return out;
}

}  // namespace

std::string explanation_text(const CollectiveReport& report) {
  expects(report.explanation.has_value(), "a collective that was explained");
  const CollectiveExplanation& why = *report.explanation;
  const CollectiveTime& time = report.time;
  std::string out = "\n" + terms_text(why) + bottleneck_text(why) + channels_text(why) +
                    heads_text(why) + trees_text(why) +
                    labelled_line("SMs held", fmt::format("{} on every GPU", time.ctas)) +
                    options_text(report);
  out += labelled_line("rests on", time.rests_on.empty() ? "the model alone" : time.rests_on);
  if (time.correction != 1.0)
    out += labelled_line(
        "", fmt::format("which makes it {} times the model's", three_digits(time.correction)));
  return out;
}

}  // namespace stepcast::sim
