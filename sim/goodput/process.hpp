// A run that fails, as numbers: seconds and events per second of the whole cluster. Knows no
// scenario.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace stepcast::sim {

/// Interruptions that cost the same.
struct Interruption {
  double per_second = 0.0;  // of wall time
  double down_s = 0.0;      // until it is noticed and the job is up again, before it reads
  bool takes_node = false;
};

/// A tier of checkpoints.
struct CheckpointCost {
  double every_s = 0.0;     // of full-speed training between two
  double blocking_s = 0.0;  // that training stands still for
  double behind_s = 0.0;    // after that, until it can be read
  double load_s = 0.0;
  double survives = 1.0;  // share of interruptions after which it can be read
};

/// Nodes that lag, and are swapped once noticed.
struct Slowness {
  double per_second = 0.0;
  double noticed_s = 0.0;
  double speed = 1.0;      // of the run, with one such node or more
  double restart_s = 0.0;  // to swap it, after a checkpoint of the fastest tier
};

struct SparePool {
  std::int64_t spares = 0;
  double repair_s = 0.0;
  // Of the run, for the first so many nodes that are missing, and again for as many more; none: it
  // waits for a repair.
  std::optional<double> lost_speed{};
  std::int64_t nodes_per_loss = 1;
  double restart_s = 0.0;  // to grow again
};

struct FailureProcess {
  std::vector<Interruption> interruptions;
  std::vector<CheckpointCost> tiers;  // fastest first; the last survives everything
  Slowness slow;
  double flaps_per_second = 0.0, flap_s = 0.0;
  std::optional<SparePool> pool;  // none: there is always a spare

  double interruptions_per_second() const;
  /// Mean over interruptions, before reading a checkpoint.
  double mean_down_s() const;
};

}  // namespace stepcast::sim
