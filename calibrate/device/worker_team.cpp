#include "calibrate/device/worker_team.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "calibrate/device/device.hpp"
#include "engine/check.hpp"
#include "sim/files/nccl_names.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::calibrate {
namespace {

sim::Listener listen_for(const TeamOptions& options) {
  if (options.rendezvous.empty()) return sim::Listener("127.0.0.1:0");
  if (sim::is_address(options.rendezvous)) return sim::Listener(options.rendezvous);
  sim::Listener listener(sim::host_name() + ":0");
  sim::write_whole(options.rendezvous, listener.address() + "\n");
  return listener;
}

std::string worker_program(const std::string& given) {
  return given.empty() ? sim::beside_program("stepcast-nccl-worker") : given;
}

std::string or_dash(const std::string& word) { return word.empty() ? "-" : word; }
std::string from_dash(const std::string& word) { return word == "-" ? "" : word; }

}  // namespace

Forced spelled_for_nccl(const std::string& algorithm, const std::string& protocol) {
  const auto spelled = [](const auto& words, const std::string& word) {
    for (const auto& known : words)
      if (!known.nccl.empty() && sim::same_word(word, known.name)) return std::string(known.nccl);
    return word;
  };
  return {spelled(sim::algorithm_words, algorithm), spelled(sim::protocol_words, protocol)};
}

std::string LocalWorkers::to_line() const {
  return "start " + std::to_string(first_rank) + " " + std::to_string(count) + " " +
         std::to_string(ranks_per_gpu) + " " + or_dash(forced.algorithm) + " " +
         or_dash(forced.protocol);
}

LocalWorkers LocalWorkers::from_line(const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  LocalWorkers workers;
  words >> verb >> workers.first_rank >> workers.count >> workers.ranks_per_gpu >>
      workers.forced.algorithm >> workers.forced.protocol;
  if (!words || verb != "start" || workers.ranks_per_gpu < 1)
    throw InputError("--rendezvous", "the leader said \"" + line + "\"",
                     "are both nodes of the same version?");
  workers.forced = {from_dash(workers.forced.algorithm), from_dash(workers.forced.protocol)};
  return workers;
}

/// Several ranks on one GPU: NCCL refuses two of them on what it takes for one host, so each gets a
/// host of its own, and sockets are what is left between hosts (nccl init.cc:903).
sim::Environment environment_of(const LocalWorkers& workers, std::int64_t rank) {
  sim::Environment environment;
  if (workers.ranks_per_gpu > 1) {
    environment = {{"NCCL_HOSTID", "stepcast-rank-" + std::to_string(rank)},
                   {"NCCL_NET", "Socket"},
                   {"NCCL_IB_DISABLE", "1"},
                   {"NCCL_SOCKET_IFNAME", "lo"},
                   {"NCCL_P2P_DISABLE", "1"},
                   {"NCCL_SHM_DISABLE", "1"},
                   {"NCCL_NVLS_ENABLE", "0"},
                   {"NCCL_MNNVL_ENABLE", "0"},
                   {"NCCL_CUMEM_ENABLE", "0"},
                   {"NCCL_ALGO", "Ring"},
                   {"NCCL_PROTO", "Simple"},
                   {"NCCL_MAX_NCHANNELS", "2"},
                   {"NCCL_BUFFSIZE", "1048576"}};
  }
  if (!workers.forced.algorithm.empty()) environment["NCCL_ALGO"] = workers.forced.algorithm;
  if (!workers.forced.protocol.empty()) environment["NCCL_PROTO"] = workers.forced.protocol;
  return environment;
}

std::vector<sim::Child> start_workers(const LocalWorkers& workers, const std::string& program,
                                      const std::string& leader) {
  std::vector<sim::Child> children;
  for (std::int64_t i = 0; i < workers.count; ++i) {
    const std::int64_t rank = workers.first_rank + i;
    children.emplace_back(
        sim::ChildPlan{.words = {worker_program(program), "worker", leader, std::to_string(rank),
                                 std::to_string(i / workers.ranks_per_gpu)},
                       .environment = environment_of(workers, rank)});
  }
  return children;
}

Nodes::Nodes(const TeamOptions& options) : options_(options), listener_(listen_for(options)) {
  const sim::Deadline deadline = sim::in_seconds(options.start_seconds);
  while (num_nodes() < options.nodes) {
    try {
      sim::LineChannel channel = listener_.accept(deadline);
      std::istringstream words(channel.receive(deadline));
      std::string verb;
      std::int64_t gpus = 0;
      if (words >> verb >> gpus && verb == "node" && gpus > 0)
        others_.push_back({std::move(channel), gpus});
    } catch (const sim::ChannelBroken& error) {
      throw InputError("--rendezvous",
                       std::to_string(num_nodes()) + " of " + std::to_string(options.nodes) +
                           " nodes are there: " + error.what(),
                       "start `stepcast-nccl-worker join " + listener_.address() + "` on the rest");
    }
  }
}

std::int64_t Nodes::num_ranks() const {
  std::int64_t gpus = options_.gpus;
  for (const auto& other : others_) gpus += other.gpus;
  return gpus * options_.ranks_per_gpu;
}

WorkerTeam::WorkerTeam(Nodes& nodes, const Forced& forced) {
  const auto& options = nodes.options_;
  LocalWorkers local{.first_rank = 0,
                     .count = options.gpus * options.ranks_per_gpu,
                     .ranks_per_gpu = options.ranks_per_gpu,
                     .forced = forced};
  workers_.resize(static_cast<std::size_t>(nodes.num_ranks()));
  try {
    children_ = start_workers(local, options.program, nodes.listener_.address());
    for (auto& other : nodes.others_) {
      local.first_rank += local.count;
      local.count = other.gpus * options.ranks_per_gpu;
      other.channel.send(local.to_line());
    }
    const sim::Deadline deadline = sim::in_seconds(options.start_seconds);
    for (std::size_t connected = 0; connected < workers_.size();) {
      sim::LineChannel channel = accept_one(nodes.listener_, deadline);
      std::istringstream words(channel.receive(deadline));
      std::string verb;
      std::size_t rank = 0;
      if (!(words >> verb >> rank) || verb != "worker" || rank >= workers_.size() ||
          workers_[rank] != nullptr)
        continue;  // a stranger
      workers_[rank] = std::make_unique<sim::LineChannel>(std::move(channel));
      ++connected;
    }
  } catch (const sim::ChannelBroken& error) {
    stop();
    throw InputError("NCCL", std::string("not all workers have started: ") + error.what());
  }
  const std::string id = ask_first("id", options.start_seconds);
  ask("init " + id + " " + std::to_string(num_ranks()), options.start_seconds);
}

/// The next connection, unless a worker of this node has ended before it came.
sim::LineChannel WorkerTeam::accept_one(sim::Listener& listener, sim::Deadline deadline) {
  while (true) {
    const sim::Deadline soon = std::min(deadline, sim::in_seconds(0.5));
    try {
      return listener.accept(soon);
    } catch (const sim::ChannelBroken&) {
      if (soon == deadline) throw;
    }
    const bool all_run = std::all_of(children_.begin(), children_.end(),
                                     [](sim::Child& child) { return child.running(); });
    if (!all_run) throw sim::ChannelBroken("one has ended at once");
  }
}

/// Workers leave when their line is cut; those of this node are killed if they do not.
WorkerTeam::~WorkerTeam() { stop(); }

void WorkerTeam::stop() {
  workers_.clear();
  children_.clear();
}

void WorkerTeam::check_alive() const {
  if (workers_.empty()) throw InputError("NCCL", "its processes have ended");
}

std::string WorkerTeam::answer_of(std::size_t rank, sim::Deadline deadline) {
  const std::string answer = workers_[rank]->receive(deadline);
  const auto space = answer.find(' ');
  const std::string verdict = answer.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : answer.substr(space + 1);
  if (verdict == "ok") return rest;
  if (verdict == "no") throw Unsupported(rest);
  throw sim::ChannelBroken(rest.empty() ? answer : rest);
}

std::vector<std::string> WorkerTeam::ask(const std::string& line, double seconds) {
  check_alive();
  const sim::Deadline deadline = sim::in_seconds(seconds);
  std::vector<std::string> answers;
  std::string refusal;
  std::size_t rank = 0;
  try {
    for (auto& worker : workers_) worker->send(line);
    for (; rank < workers_.size(); ++rank) {
      try {
        answers.push_back(answer_of(rank, deadline));
      } catch (const Unsupported& error) {
        refusal = error.what();
      }
    }
  } catch (const sim::ChannelBroken& error) {
    stop();
    throw InputError("NCCL, rank " + std::to_string(rank), "\"" + line + "\": " + error.what());
  }
  if (answers.size() < workers_.size()) throw Unsupported(refusal);
  return answers;
}

std::string WorkerTeam::ask_first(const std::string& line, double seconds) {
  check_alive();
  try {
    workers_.front()->send(line);
    return answer_of(0, sim::in_seconds(seconds));
  } catch (const sim::ChannelBroken& error) {
    stop();
    throw InputError("NCCL, rank 0", "\"" + line + "\": " + error.what());
  }
}

std::string address_at(const std::string& rendezvous, sim::Deadline deadline) {
  if (sim::is_address(rendezvous)) return rendezvous;
  while (true) {
    std::ifstream in(rendezvous);
    std::string address;
    if (in >> address) return address;
    if (std::chrono::steady_clock::now() >= deadline)
      throw InputError("--rendezvous", rendezvous + " has not appeared");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void join(const std::string& rendezvous, std::int64_t gpus, const std::string& program) {
  const sim::Deadline soon = sim::in_seconds(120);
  const std::string leader = address_at(rendezvous, soon);
  try {
    sim::LineChannel channel = sim::connect_to(leader, soon);
    channel.send("node " + std::to_string(gpus));
    std::vector<sim::Child> children;
    while (true) {
      const auto workers = LocalWorkers::from_line(channel.receive(sim::Deadline::max()));
      children.clear();
      children = start_workers(workers, program, leader);
    }
  } catch (const sim::ChannelBroken&) {
    return;  // the leader has done its work
  }
}

}  // namespace stepcast::calibrate
