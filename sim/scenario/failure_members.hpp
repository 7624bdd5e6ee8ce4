// Keys of [failures] and of its tables, for members.hpp.
#pragma once

#include "sim/files/names.hpp"
#include "sim/scenario/failures.hpp"

namespace stepcast::sim {

inline constexpr Names<EmptyPool, 2> empty_pool_names{{
    {"wait", EmptyPool::wait},
    {"shrink", EmptyPool::shrink},
}};

template <class Failures, class Visitor>
void visit_failures(Failures& failures, Visitor&& visit) {
  visit.part({"rates", "entry of scenarios/failures, a file, or a table of causes"});
  visit.positive({"per_1000_node_days", "all interruptions; default: the rates' own"},
                 failures.per_1000_node_days);
  visit.may({"sigma", "between clusters: deviation of ln(rate); default: the rates' own"},
            failures.sigma);
  visit.may({"detection", "until a crash is noticed, beyond what restart includes"},
            failures.detection);
  visit.may({"watchdog", "until a hang is noticed"}, failures.watchdog);
  visit.may({"restart", "to start again, without reading the checkpoint"}, failures.restart);
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
  visit.may({"blocking", "as measured, instead of bytes over bandwidths"}, tier.blocking);
  visit.may({"load", "to read one, as measured"}, tier.load);
  visit.positive({"every", "training between two; default: the best"}, tier.every);
}

template <class Slow, class Visitor>
void visit_slow_nodes(Slow& slow, Visitor&& visit) {
  visit.may({"per_1000_node_days", "nodes that turn slow"}, slow.per_1000_node_days);
  visit.positive({"slowdown", "their kernels take that much longer"}, slow.slowdown);
  visit.may({"noticed_after", "and swapped, after a checkpoint"}, slow.noticed_after);
}

template <class Flaps, class Visitor>
void visit_link_flaps(Flaps& flap, Visitor&& visit) {
  visit.may({"per_1000_node_days", "links that are gone for a moment"}, flap.per_1000_node_days);
  visit.may({"lasts", "that the run stands still for"}, flap.lasts);
}

}  // namespace stepcast::sim
