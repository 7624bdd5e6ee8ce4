#include <unistd.h>

#include "engine/check.hpp"
#include "sim/command/commands.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::sim {

int command_sister(const std::string& name, const Words& words) {
  const std::string program = beside_program("stepcast-" + name);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw InputError("stepcast " + name, "stepcast-" + name + " does not stand beside stepcast",
                   "build it with ./dev build");
}

}  // namespace stepcast::sim
