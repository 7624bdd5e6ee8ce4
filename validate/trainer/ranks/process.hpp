// The ranks as processes of this program, watched: under mpirun, or started here. Whatever ends one
// of them ends all, and none outlives the program that started them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/units.hpp"

namespace stepcast::validate {

struct RankLaunch {
  std::int64_t ranks = 2;
  std::string program;                 // what each rank runs
  std::vector<std::string> arguments;  // and with what
  Duration silence{};                  // no rank said anything for so long: all are ended
  bool quiet = true;                   // do not pass the ranks' progress on
};

/// The ranks that this node has, and where all nodes' ranks meet.
struct NodeShare {
  std::int64_t first_rank = 0, count = 0;
  std::string rendezvous;  // "host:port" or a file; empty: all ranks are of this node
  std::string token;       // of the run; empty: the nodes' launchers do not know it
};

/// Starts them and waits for their end; their standard output is this program's. Returns their exit
/// code (sim::exit_rank_lost where one was killed or hung, after a line that says so), after Ctrl-C
/// sim::stop_code(). Throws InputError where there is no mpirun.
int run_under_mpi(const RankLaunch& launch);
/// Each finds its place in its environment (place.hpp).
int run_as_processes(const RankLaunch& launch, const NodeShare& share);

/// Runs a program to its end, its standard output to nowhere; its exit code, 130 after Ctrl-C. It
/// ends with this one.
int run_program(const std::string& program, const std::vector<std::string>& arguments);

/// Goes on as another program.
[[noreturn]] void become_program(const std::string& program,
                                 const std::vector<std::string>& arguments);

/// In a rank that was started by one of these, which is to end with its parent. What it writes with
/// the mark of progress (child.hpp) is a sign of life.
bool started_by_launcher();

}  // namespace stepcast::validate
