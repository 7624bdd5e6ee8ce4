#include <cstdio>
#include <fstream>

void ways_out(const std::string& name) {
  system(name.c_str());
  std::fputs(name.c_str(), stdout);
  std::ofstream(name) << "half a file";
}
