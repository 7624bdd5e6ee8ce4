// The verbs of stepcast-calibrate, in the order of its help.
#pragma once

#include "sim/command/program.hpp"

namespace stepcast::calibrate {

sim::Command run_command();
sim::Command import_command();
sim::Command import_node_command();
sim::Command tuning_command();
sim::Command show_command();
sim::Command report_command();
sim::Command card_command();
sim::Command diff_command();
sim::Command export_command();
sim::Command merge_command();
sim::Command fit_network_command();

}  // namespace stepcast::calibrate
