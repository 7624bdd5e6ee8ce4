#include "peer_table.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace stepcast::peers {

PeerTable::PeerTable(std::string peer) : peer_(std::move(peer)) {}

void PeerTable::add(const std::string& what, double peer, double ours, double tolerance) {
  const bool agrees = peer > 0 && std::abs(ours / peer - 1) <= tolerance;
  all_agree_ = all_agree_ && agrees;
  rows_.push_back({what, peer, ours, tolerance, agrees});
}

void PeerTable::print() const {
  fmt::print("{:<62} {:>14} {:>14} {:>11} {:>8}\n", peer_, "its time, us", "ours, us", "difference",
             "allowed");
  for (const Row& row : rows_)
    fmt::print("{:<62} {:>14.3f} {:>14.3f} {:>+10.4f}% {:>7.3g}%{}\n", row.what, row.peer * 1e6,
               row.ours * 1e6, (row.ours / row.peer - 1) * 100, row.tolerance * 100,
               row.agrees ? "" : "  DISAGREES");
}

double in_own_process(const std::function<double()>& simulate) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    const double result = simulate();
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(written ? 0 : 1);  // what the simulator leaves behind is not our business
  }
  close(ends[1]);
  double result = 0.0;
  const bool got = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!got || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw std::runtime_error("the simulator failed in its own process");
  return result;
}

}  // namespace stepcast::peers
