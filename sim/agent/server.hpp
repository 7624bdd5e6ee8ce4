// The Model Context Protocol over standard input and output: JSON-RPC 2.0, one message a line.
// Knows no tool.
#pragma once

#include <string>
#include <vector>

#include "sim/agent/tool.hpp"

namespace stepcast::sim {

struct AgentServer {
  std::vector<AgentTool> tools;
  std::string program;       // that answers the calls
  std::string instructions;  // for the agent
  std::string version;
  std::size_t at_once = 2;  // calls; others wait
};

/// Answers until standard input ends, and the calls that were made before it does. A call that is
/// cancelled is ended and has no answer. Throws OutputError where the client is gone.
void serve_agent(const AgentServer& server);

}  // namespace stepcast::sim
