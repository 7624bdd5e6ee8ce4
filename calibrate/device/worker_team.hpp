// One process per GPU that takes part in collectives, on this node and on others, all following one
// leader line by line. A process of its own, because NCCL takes a forced algorithm from the
// environment it starts in, and because one that hangs can be killed. Knows no CUDA.
//
//   leader (stepcast-calibrate run)   starts the workers of its node, asks the other nodes to
//   other nodes                       stepcast-nccl-worker join RENDEZVOUS: start theirs
//   workers                           stepcast-nccl-worker worker ADDRESS RANK GPU
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/processes/child.hpp"
#include "sim/processes/line_channel.hpp"
#include "sim/processes/meeting.hpp"

namespace stepcast::calibrate {

struct TeamOptions {
  std::int64_t gpus = 0;           // of this node; 0: as many as there are
  std::int64_t ranks_per_gpu = 1;  // more: over loopback sockets, to see that it works
  std::int64_t nodes = 1;          // this one included
  /// Where the other nodes find this one: "host:port", or a file that all can read and in which
  /// the leader writes that.
  std::string rendezvous{};
  std::string token{};         // of the run, needed at an address; "": made up
  std::string program{};       // of the workers; "": stepcast-nccl-worker beside this program
  double start_seconds = 120;  // until all workers are connected; NCCL's start takes 10 s at scale
};

/// What NCCL_ALGO and NCCL_PROTO force; "" leaves the choice to NCCL.
struct Forced {
  std::string algorithm, protocol;
  friend auto operator<=>(const Forced&, const Forced&) = default;
};

/// NCCL's own spelling of "ring", "tree", "ll128", ...; any other word as it is.
Forced spelled_for_nccl(const std::string& algorithm, const std::string& protocol);

/// Some workers of one node, as its leader or its `join` starts them.
struct LocalWorkers {
  std::int64_t first_rank = 0, count = 0, ranks_per_gpu = 1;
  Forced forced;

  std::string to_line() const;
  static LocalWorkers from_line(const std::string& line);
};
std::vector<sim::Child> start_workers(const LocalWorkers&, const std::string& program,
                                      const std::string& leader, const std::string& token);
/// How a worker that these have started, its token in its environment, greets the leader.
std::string worker_call(std::int64_t rank);
/// What a worker's environment has besides: NCCL's variables.
sim::Environment environment_of(const LocalWorkers&, std::int64_t rank);

/// The nodes that are there. Waits until all have joined.
class Nodes {
 public:
  explicit Nodes(const TeamOptions& options);

  std::int64_t num_nodes() const { return static_cast<std::int64_t>(others_.size()) + 1; }
  std::int64_t num_ranks() const;

 private:
  friend class WorkerTeam;
  struct Other {
    sim::LineChannel channel;
    std::int64_t gpus;
  };
  TeamOptions options_;
  sim::Listener listener_;
  std::unique_ptr<sim::RendezvousFile> file_;
  std::vector<Other> others_;
};

class WorkerTeam {
 public:
  WorkerTeam(Nodes& nodes, const Forced& forced);
  ~WorkerTeam();

  std::int64_t num_ranks() const { return static_cast<std::int64_t>(workers_.size()); }
  /// Says `line` to every worker and returns what each answered after "ok", by rank. Unsupported
  /// where one answers "no WHY"; InputError, and the team is dead, where one fails, dies or does
  /// not answer in time.
  std::vector<std::string> ask(const std::string& line, double seconds);
  std::string ask_first(const std::string& line, double seconds);

 private:
  void connect(Nodes& nodes, sim::Deadline deadline);
  std::string answer_of(std::size_t rank, sim::Deadline deadline);
  void check_alive() const;
  void stop();

  std::vector<sim::Child> children_;
  std::vector<std::unique_ptr<sim::LineChannel>> workers_;
};

/// Serves a leader elsewhere: starts workers whenever it asks; returns when it is gone. Throws
/// InputError where none is found in time, or it refuses.
void join(const std::string& rendezvous, std::int64_t gpus, const std::string& program,
          const std::string& token, double patience_s = 120);

}  // namespace stepcast::calibrate
