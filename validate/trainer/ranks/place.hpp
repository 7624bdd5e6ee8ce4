// Which rank of which run this process is, as its environment says: this program's own launcher,
// mpirun or srun.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stepcast::validate {

struct RankPlace {
  std::int64_t rank = 0, ranks = 1;
  std::string rendezvous{};  // empty: not known
  std::string token{};       // of the run, the same on all its ranks; empty: not known
  int listening = -1;        // of rank 0: a socket of its parent's, at the rendezvous
};

/// None in a process that a user called.
std::optional<RankPlace> own_place();        // by run_as_processes()
std::optional<RankPlace> launchers_place();  // by mpirun or srun
bool started_by_mpirun();

/// What own_place() reads.
std::map<std::string, std::string> environment_of(const RankPlace& place);

}  // namespace stepcast::validate
