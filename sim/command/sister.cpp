#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/processes/child.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::sim {

int command_sister(const std::string& name, const Words& words) {
  const std::string program = beside_program("stepcast-" + name);
  std::vector<std::string> command{program};
  command.insert(command.end(), words.begin(), words.end());
  become(command);
  throw InputError("stepcast " + name, "stepcast-" + name + " does not stand beside stepcast",
                   "build it with ./dev build");
}

}  // namespace stepcast::sim
