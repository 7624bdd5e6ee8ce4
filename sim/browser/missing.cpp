// What the program links and WASI's C library has not: locks, loaded libraries and other programs.
#include <dlfcn.h>
#include <sys/file.h>

#include <string>
#include <vector>

#include "engine/check.hpp"
#include "sim/agent/server.hpp"
#include "sim/processes/child.hpp"

extern "C" {

int flock(int /*file*/, int /*how*/) { return 0; }  // nobody else is there
void* dlopen(const char* /*path*/, int /*how*/) { return nullptr; }
void* dlsym(void* /*library*/, const char* /*name*/) { return nullptr; }
char* dlerror() {
  static char sentence[] = "no libraries can be loaded here";
  return sentence;
}
}

namespace stepcast::sim {

void serve_agent(const AgentServer& /*server*/) {
  throw InputError("stepcast mcp", "no programs can be started here");
}

std::string become(std::vector<std::string> /*words*/) { return "no programs can be started here"; }

}  // namespace stepcast::sim
