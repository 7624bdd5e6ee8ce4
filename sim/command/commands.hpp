// The verbs of stepcast, in the order of its help.
#pragma once

#include "sim/command/program.hpp"

namespace stepcast::sim {

Command run_command();
Command sweep_command();
Command collective_command();
Command search_command();
Command design_command();
Command compare_command();
Command why_command();
Command export_command();
Command replay_command();
Command goodput_command();
Command report_command();
Command launch_command();
Command convert_command();
Command show_command();
Command explain_command();
Command import_model_command();
Command new_command();

}  // namespace stepcast::sim
