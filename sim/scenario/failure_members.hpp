// Keys of [failures] and of its tables, for members.hpp.
#pragma once

#include "sim/files/key.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/failures.hpp"

namespace stepcast::sim {

inline constexpr Names<EmptyPool, 2> empty_pool_names{{
    {"wait", EmptyPool::wait},
    {"shrink", EmptyPool::shrink},
}};

/// Per 1,000 node-days: from one in three millennia of a node to one each minute and a half.
inline constexpr double least_failure_rate = 1e-3, most_failure_rate = 1e6;
constexpr Key as_failure_rate(const Key& key) {
  return key.within(least_failure_rate, most_failure_rate);
}
/// Up to a month.
constexpr Key as_outage(const Key& key) { return key.within(0, 2'592'000); }

template <class Failures, class Visitor>
void visit_failures(Failures& failures, Visitor&& visit) {
  visit.part({"rates", "entry of scenarios/failures, a file, or a table of causes"});
  visit.positive(
      as_failure_rate({"per_1000_node_days", "all interruptions; default: the rates' own"}),
      failures.per_1000_node_days);
  visit.may({"sigma", "between clusters: deviation of ln(rate); default: the rates' own"},
            failures.sigma);
  visit.may(as_outage({"detection", "until a crash is noticed, beyond what restart includes"}),
            failures.detection);
  visit.may(as_outage({"watchdog", "until a hang is noticed"}), failures.watchdog);
  visit.may(as_outage({"restart", "to start again, without reading the checkpoint"}),
            failures.restart);
  visit.may({"spares", "nodes in reserve; default: there is always one"}, failures.spares);
  visit.positive({"repair", "that a node is away"}, failures.repair);
  visit.may({"empty", "without a spare: wait for a repair, or shrink the data degree"},
            failures.empty, empty_pool_names);
  visit.positive({"days", "of wall time that are simulated"}, failures.days);
  visit.positive({"runs", "of the simulation"}, failures.runs);
  visit.part({"checkpoint", "[[failures.checkpoint]]: tiers, the fastest first"});
}

template <class Tier, class Visitor>
void visit_checkpoint_tier(Tier& tier, Visitor&& visit) {
  visit.may({"to", "where they go, a name"}, tier.to);
  visit.positive({"survives", "share of interruptions after which it can be read"}, tier.survives);
  visit.may({"bandwidth", "of all nodes together"}, tier.bandwidth);
  visit.may({"per_node", "of one node; default: its NICs"}, tier.per_node);
  visit.may({"asynchronous", "the run waits for the copy to the host alone"}, tier.asynchronous);
  visit.may(as_outage({"blocking", "as measured, instead of bytes over bandwidths"}),
            tier.blocking);
  visit.may(as_outage({"load", "to read one, as measured"}), tier.load);
  visit.positive(Key{"every", "training between two; default: the best"}.within(0.01, 9e6),
                 tier.every);
}

template <class Slow, class Visitor>
void visit_slow_nodes(Slow& slow, Visitor&& visit) {
  visit.may(as_failure_rate({"per_1000_node_days", "nodes that turn slow"}),
            slow.per_1000_node_days);
  visit.positive({"slowdown", "their kernels take that much longer"}, slow.slowdown);
  visit.may(as_outage({"noticed_after", "and swapped, after a checkpoint"}), slow.noticed_after);
}

template <class Flaps, class Visitor>
void visit_link_flaps(Flaps& flap, Visitor&& visit) {
  visit.may(as_failure_rate({"per_1000_node_days", "links that are gone for a moment"}),
            flap.per_1000_node_days);
  visit.may(as_outage({"lasts", "that the run stands still for"}), flap.lasts);
}

}  // namespace stepcast::sim
