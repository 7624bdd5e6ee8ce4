#include "calibrate/device/worker_team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "calibrate/device/device.hpp"
#include "engine/check.hpp"
#include "sim/files/nccl_names.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::calibrate {
namespace {

constexpr sim::Greeting greeting{"stepcast-calibrate", "1"};

sim::Listener listen_for(const TeamOptions& options) {
  if (options.rendezvous.empty()) return sim::Listener("127.0.0.1:0");
  sim::check_token(options.rendezvous, options.token);
  return sim::Listener(sim::is_address(options.rendezvous) ? options.rendezvous
                                                           : sim::host_name() + ":0");
}

/// What comes first over a connection: "stepcast-calibrate 1 node TOKEN GPUS", or a worker's rank.
std::string call_of(const char* verb, const std::string& token, std::int64_t number) {
  return fmt::format("{} {} {} {} {}", greeting.program, greeting.version, verb, token, number);
}

/// Lets in who says the token and `verb`, if `take` has nothing against his number.
template <class Take>
sim::Door::Enter entry(const std::string& token, const std::string& verb, Take take) {
  return [=](const std::string& line, sim::Guest& guest) -> sim::Door::Answer {
    std::istringstream words(line);
    std::string program, version, said, its_token;
    std::int64_t number = 0;
    if (!(words >> program >> version >> said >> its_token >> number) ||
        program != greeting.program)
      return std::nullopt;
    if (version != greeting.version) return "it is of another version";
    if (its_token != token) return "it is of another run";
    return said == verb ? take(number, guest) : "it comes while each " + verb + " is waited for";
  };
}

sim::Door door_at(sim::Listener& listener, const char* wanted) {
  return {listener, greeting.program.data(), wanted};
}

bool is_over(sim::Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

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
                                      const std::string& leader, const std::string& token) {
  std::vector<sim::Child> children;
  for (std::int64_t i = 0; i < workers.count; ++i) {
    const std::int64_t rank = workers.first_rank + i;
    sim::Environment environment = environment_of(workers, rank);
    environment.merge(sim::environment_with_token(token));
    children.emplace_back(
        sim::ChildPlan{.words = {worker_program(program), "worker", leader, std::to_string(rank),
                                 std::to_string(i / workers.ranks_per_gpu)},
                       .environment = std::move(environment)});
  }
  return children;
}

std::string worker_call(std::int64_t rank) {
  return call_of("worker", sim::token_in_environment(), rank);
}

Nodes::Nodes(const TeamOptions& options) : options_(options), listener_(listen_for(options)) {
  std::string& token = options_.token;
  if (token.empty()) token = sim::make_token();
  if (!options.rendezvous.empty() && !sim::is_address(options.rendezvous))
    file_ = std::make_unique<sim::RendezvousFile>(
        options.rendezvous, greeting,
        sim::RendezvousFile::Words{
            .address = listener_.address(), .token = token, .ranks = options.nodes});
  const sim::Deadline deadline = sim::in_seconds(options.start_seconds);
  sim::Door door = door_at(listener_, "a node");
  const auto enter = entry(token, "node", [this](std::int64_t gpus, sim::Guest& guest) {
    if (gpus < 1) return "it has no GPU";
    if (num_nodes() == options_.nodes) return "all nodes are there";
    guest.channel.send("hello");
    others_.push_back({std::move(guest.channel), gpus});
    return "";
  });
  while (num_nodes() < options.nodes) {
    if (is_over(deadline))
      throw InputError("--rendezvous",
                       fmt::format("{} of {} nodes are there", num_nodes(), options.nodes),
                       "start `stepcast-nccl-worker join " +
                           (file_ ? options.rendezvous : listener_.address()) + "` on the rest");
    door.open(deadline, {}, enter);
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
    children_ = start_workers(local, options.program, nodes.listener_.address(), options.token);
    for (auto& other : nodes.others_) {
      local.first_rank += local.count;
      local.count = other.gpus * options.ranks_per_gpu;
      other.channel.send(local.to_line());
    }
    const sim::Deadline deadline = sim::in_seconds(options.start_seconds);
    connect(nodes, deadline);
  } catch (const sim::ChannelBroken& error) {
    stop();
    throw InputError("NCCL", std::string("not all workers have started: ") + error.what());
  }
  const std::string id = ask_first("id", options.start_seconds);
  ask("init " + id + " " + std::to_string(num_ranks()), options.start_seconds);
}

/// Waits for all workers, unless one of this node has ended before it came.
void WorkerTeam::connect(Nodes& nodes, sim::Deadline deadline) {
  std::size_t connected = 0;
  sim::Door door = door_at(nodes.listener_, "a worker");
  const auto enter =
      entry(nodes.options_.token, "worker", [&](std::int64_t number, sim::Guest& guest) {
        const auto rank = static_cast<std::size_t>(number);
        if (rank >= workers_.size()) return "there is no such rank";
        if (workers_[rank] != nullptr) return "another process is that rank already";
        workers_[rank] = std::make_unique<sim::LineChannel>(std::move(guest.channel));
        ++connected;
        return "";
      });
  while (connected < workers_.size()) {
    if (is_over(deadline)) throw sim::ChannelBroken("no answer in time");
    if (!std::ranges::all_of(children_, [](sim::Child& child) { return child.running(); }))
      throw sim::ChannelBroken("one has ended at once");
    door.open(deadline, {}, enter);
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

namespace {

/// The leader, whom a file may yet have to name, and who may yet have to listen.
struct Leader {
  sim::LineChannel channel;
  std::string address, token;
};
std::optional<Leader> leader_at(const std::string& rendezvous, const std::string& token,
                                sim::Deadline deadline) {
  Leader leader{sim::LineChannel(sim::Descriptor()), rendezvous, token};
  if (!sim::is_address(rendezvous)) {
    const auto words = sim::words_in(rendezvous, greeting);
    if (!words || (!token.empty() && words->token != token)) return std::nullopt;
    leader.address = sim::reached_here(words->address);
    leader.token = words->token;
  }
  try {
    leader.channel = sim::LineChannel(sim::open_connection(leader.address, deadline));
  } catch (const sim::ChannelBroken&) {
    return std::nullopt;
  }
  return leader;
}

}  // namespace

void join(const std::string& rendezvous, std::int64_t gpus, const std::string& program,
          const std::string& token, double patience_s) {
  sim::check_token(rendezvous, token);
  const sim::Deadline soon = sim::in_seconds(patience_s);
  std::optional<Leader> leader;
  while (!(leader = leader_at(rendezvous, token, soon))) {
    if (is_over(soon))
      throw InputError("--rendezvous", "no run listens at " + rendezvous,
                       "start stepcast-calibrate run --rendezvous there");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  try {
    leader->channel.send(call_of("node", leader->token, gpus));
    if (const std::string said = leader->channel.receive(soon); said != "hello")
      throw InputError("--rendezvous", "the leader at " + leader->address + " says: " + said);
    std::vector<sim::Child> children;
    while (true) {
      const auto workers = LocalWorkers::from_line(leader->channel.receive(sim::Deadline::max()));
      children.clear();
      children = start_workers(workers, program, leader->address, leader->token);
    }
  } catch (const sim::ChannelBroken&) {
    return;  // the leader has done its work
  }
}

}  // namespace stepcast::calibrate
