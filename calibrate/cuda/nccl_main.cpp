// stepcast-nccl-worker: one GPU's part in the collectives that stepcast-calibrate measures.
// Exit codes: 0 ok, 1 internal, 2 usage, 3 bad input.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/cuda/nccl_worker.hpp"
#include "calibrate/device/worker_team.hpp"
#include "calibrate/kernels/check.hpp"
#include "sim/files/collective_words.hpp"
#include "sim/files/printable.hpp"
#include "sim/processes/child.hpp"
#include "sim/processes/meeting.hpp"

namespace {

namespace calibrate = stepcast::calibrate;
namespace sim = stepcast::sim;
using stepcast::Bytes;
using stepcast::InputError;

constexpr const char* usage =
    "stepcast-nccl-worker: collectives for stepcast-calibrate over several GPUs and nodes\n\n"
    "  stepcast-nccl-worker join RENDEZVOUS\n"
    "      on every node but the first, beside `stepcast-calibrate run --rendezvous RENDEZVOUS`:\n"
    "      host:port, with one secret word in STEPCAST_TRAINER_TOKEN on all nodes, or a file that\n"
    "      all nodes see\n"
    "  mpirun -N 1 stepcast-nccl-worker lead RENDEZVOUS COMMAND ...\n"
    "      the first process runs COMMAND, all others join (Open MPI, MPICH, Slurm)\n"
    "  stepcast-nccl-worker table [RANKS-PER-GPU]\n"
    "      times and checks all collectives over this node's GPUs, as nccl-tests prints them\n"
    "  stepcast-nccl-worker version\n";

int num_gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// A worker that is stuck in a collective whose peer died would spin for ever.
constexpr unsigned longest_order_s = 300;

int work(const std::string& leader, int rank, int gpu) {
  alarm(longest_order_s);
  auto channel = sim::connect_to(leader, sim::in_seconds(60));
  channel.send(calibrate::worker_call(rank));
  calibrate::NcclWorker worker(rank, gpu);
  while (true) {
    alarm(0);
    std::string line;
    try {
      line = channel.receive(sim::Deadline::max());
    } catch (const sim::ChannelBroken&) {
      alarm(10);  // the leader has gone; the communicator may hang when it is torn down
      return 0;
    }
    alarm(longest_order_s);
    channel.send(worker.answer(line));
  }
}

/// This process's place among those that one launcher started, by the launchers' own variables.
std::optional<int> place(const std::array<const char*, 3>& names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return std::nullopt;
}

int join(const std::string& rendezvous) {
  calibrate::join(rendezvous, num_gpus(), "", sim::token_in_environment());
  return 0;
}

int lead(const std::string& rendezvous, const std::vector<std::string>& command) {
  const auto rank = place({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
  const auto local = place({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"});
  if (!rank) throw InputError("lead", "no launcher's variables are set", "start it under mpirun");
  if (*rank == 0) {
    throw InputError(command.front(), "cannot be started: " + sim::become(command));
  }
  if (local.value_or(0) == 0) join(rendezvous);
  return 0;
}

int table(std::int64_t ranks_per_gpu) {
  calibrate::TeamOptions options{.gpus = num_gpus(), .ranks_per_gpu = ranks_per_gpu};
  if (options.gpus * ranks_per_gpu < 2)
    throw InputError("table", fmt::format("{} GPU here", options.gpus), "try: table 2");
  calibrate::Nodes nodes(options);
  calibrate::WorkerTeam team(nodes, {});
  const auto n = static_cast<double>(team.num_ranks());
  fmt::print("{:.0f} ranks on {} GPUs\n{:<14}{:>12}{:>12}{:>14}{:>14}{:>12}\n", n, options.gpus,
             "collective", "bytes", "us", "algbw GB/s", "busbw GB/s", "error");
  double worst = 0;
  for (const std::string collective :
       {"allreduce", "allgather", "reducescatter", "alltoall", "sendrecv"}) {
    for (std::int64_t size = 1 << 10; size <= 1 << 28; size <<= 6) {
      constexpr int repetitions = 20;
      team.ask(fmt::format("prepare {} {} 1", collective, size), 60);
      team.ask("warm", 60);
      double error = 0, ps = 0;
      for (const auto& answer : team.ask("error", 60)) error = std::max(error, std::stod(answer));
      for (const auto& answer : team.ask(fmt::format("run {}", repetitions), 120))
        ps += std::stod(answer) / repetitions / n;
      const double rate = static_cast<double>(size) / ps * 1e3;  // GB/s
      fmt::print("{:<14}{:>12}{:>12.2f}{:>14.3f}{:>14.3f}{:>12.1e}\n", collective, size, ps * 1e-6,
                 rate, rate * sim::bus_factor(*sim::collective_named(collective), team.num_ranks()),
                 error);
      std::fflush(stdout);
      worst = std::max(worst, error);
    }
  }
  if (!(worst <= 1e-5)) throw InputError("table", fmt::format("a result is wrong by {}", worst));
  return 0;
}

int version() {
  int number = 0;
  NCCL_TRY(ncclGetVersion(&number));  // 22809: 2.28.9
  fmt::print("{}.{}.{}\n", number / 10000, number / 100 % 100, number % 100);
  return 0;
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string verb = words.empty() ? "" : words.front();
  if (verb == "worker" && words.size() == 4)
    return work(words[1], std::stoi(words[2]), std::stoi(words[3]));
  if (verb == "join" && words.size() == 2) return join(words[1]);
  if (verb == "lead" && words.size() >= 3) return lead(words[1], {words.begin() + 2, words.end()});
  if (verb == "table" && words.size() <= 2)
    return table(words.size() == 2 ? std::stoi(words[1]) : 1);
  if (verb == "version" && words.size() == 1) return version();
  std::fputs(usage, verb == "--help" ? stdout : stderr);
  return verb == "--help" ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const InputError& error) {
    sim::tell(stderr, fmt::format("stepcast-nccl-worker: {}\n", error.what()));
    return 3;
  } catch (const std::exception& error) {
    sim::tell(stderr, fmt::format("stepcast-nccl-worker: {}\n", error.what()));
    return 1;
  }
}
