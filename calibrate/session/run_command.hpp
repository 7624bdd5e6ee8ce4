// stepcast-calibrate run: from options to a session on a device.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "calibrate/rows/cluster_facts.hpp"
#include "calibrate/session/devices.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::calibrate {

struct RunRequest {
  std::string device;  // host, cuda, "" what is there
  DeviceOptions options;
  std::vector<std::string> scenarios;  // --for
  bool quick = false, resume = false;
  std::string out;
  bool scratch = false;  // out is a passing file: it is not told
  std::FILE* report = stdout;
  std::uint64_t seed = 1;
  std::string date, command;
  ClusterFacts facts;  // fabric and bandwidth between nodes
};

/// Returns the exit code (sim::exit_wrong_kernel when all else went well); prints its report, and
/// progress on standard error.
int run_calibration(const RunRequest& request, const sim::Catalogue& catalogue);

}  // namespace stepcast::calibrate
