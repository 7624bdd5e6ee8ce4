// Figures with their bands, added and multiplied end by end; product() is for independent ones.
#pragma once

#include "sim/goal/whole_run.hpp"

namespace stepcast::sim {

inline Band scaled(const Band& band, double factor) {
  return {band.low * factor, band.value * factor, band.high * factor};
}

inline Band sum_of(const Band& a, const Band& b) {
  return {a.low + b.low, a.value + b.value, a.high + b.high};
}

}  // namespace stepcast::sim
