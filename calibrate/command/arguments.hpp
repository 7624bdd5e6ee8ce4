// What stepcast-calibrate is called with: the command, its files and options, and the help text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepcast::calibrate {

/// The command line itself is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::string command;
  std::vector<std::string> files;
  std::string out, title, csv, from;
  std::string name, node, gpu, fabric, node_bandwidth, nccl, collective;
  std::int64_t ranks = 0, nodes = 0;
  std::string device, rendezvous, command_line;
  std::vector<std::string> scenarios;
  std::int64_t seed = 1, gpu_index = 0;
  bool help = false, cross_validate = false, quick = false, resume = false;
};

const char* usage();

/// Throws UsageError on an option that is unknown (with a suggestion) or not what it must be.
Arguments parse(int argc, char** argv);

/// ", did you mean WORD?", or nothing where no command is near.
std::string suggested_command(const std::string& word);

}  // namespace stepcast::calibrate
