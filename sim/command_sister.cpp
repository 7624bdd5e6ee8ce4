#include <unistd.h>

#include <filesystem>

#include "engine/check.hpp"
#include "sim/commands.hpp"

namespace stepcast::sim {

int command_sister(const std::string& name, const Words& words) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / ("stepcast-" + name)).string();
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw InputError("stepcast " + name, "stepcast-" + name + " does not stand beside stepcast",
                   "build it with ./dev build");
}

}  // namespace stepcast::sim
