// What a rank draws, holds and has under way over a step, from what its lanes do when.
#pragma once

#include "sim/run/timeline.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// "power" in W: mean_power() (sim/run/power.hpp) at each instant, of the kernels that run and the
/// collectives that are resident then. Over a step it means to the step's mean power, but where
/// the GPU's limit cuts peaks off.
void add_power(Timeline& timeline, const topology::GpuSpec& gpu);

/// "bytes in flight" in MB: of the transfers that have begun and are not over.
void add_bytes_in_flight(Timeline& timeline);

/// "memory allocated" in GiB: the allocations of docs/memory.md, turn by turn of the schedule.
/// Their replay knows no times within a turn: it is spread evenly over the turn's kernels, in at
/// most 16 parts with the most that each holds. Of micro-batches in the middle of 1F1B one stands
/// for all. None for software that plans its memory before the step, which stays as it is.
void add_memory(Timeline& timeline, const Scenario& scenario);

}  // namespace stepcast::sim
