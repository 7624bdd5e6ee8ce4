// The GPUs of the catalogue, as the program hands them to what reads names of GPUs.
#pragma once

#include "calibrate/rows/cluster_facts.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::calibrate {

inline const sim::GpuIdentities& gpus_of_the_catalogue() {
  static const sim::Catalogue catalogue(STEPCAST_SOURCE_DIR "/scenarios");
  return catalogue.gpus();
}

inline ClusterFacts nothing_given() {
  ClusterFacts facts;
  facts.gpus = gpus_of_the_catalogue();
  return facts;
}

}  // namespace stepcast::calibrate
