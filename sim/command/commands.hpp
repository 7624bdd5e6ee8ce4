// The verbs of stepcast, in the order of its help.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

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
Command mcp_command();

/// All verbs, those of the sister programs among them.
std::vector<Command> all_commands();

/// What `stepcast show schema NAME` knows: verbs, and documents beside their answers.
std::vector<std::string> schema_names();
/// The JSON schema of such a document. Of a verb of another program that program prints it, and
/// this one ends. Throws UsageError where there is none.
nlohmann::ordered_json schema_named(const std::string& name);

}  // namespace stepcast::sim
