#include "validate/cluster/trained.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/processes/child.hpp"
#include "sim/processes/meeting.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/installation.hpp"
#include "validate/trainer/ranks/place.hpp"

namespace stepcast::validate {
namespace {

constexpr int rendezvous_port = 42000;  // in namespaces of our own every port is free

/// The words that all ranks of a job share.
std::vector<std::string> words_of(const std::string& scenario, const TrainedJob& job) {
  return {sim::beside_program("stepcast-trainer"),
          scenario,
          "--out",
          job.results,
          "--timeline",
          job.timeline,
          "--quiet",
          "--ranks",
          "processes",
          "--nodes",
          std::to_string(job.nodes.size()),
          "--rendezvous",
          fmt::format("{}:{}", address_of(job.nodes.front()), rendezvous_port)};
}

/// All ranks of a job fail when one does: the first speaks for all.
sim::Child started(const Box& box, const TrainedJob& job, std::size_t rank,
                   std::vector<std::string> words, const std::string& token) {
  words.insert(words.end(), {"--node", std::to_string(rank)});
  const Visit there(box.node(job.nodes[rank]));
  return sim::Child({.words = std::move(words),
                     .environment = sim::environment_with_token(token),
                     .in = sim::Stream::nowhere,
                     .out = sim::Stream::nowhere,
                     .errors = rank == 0 ? sim::Stream::ours : sim::Stream::nowhere,
                     .ends_with_parent = true});
}

}  // namespace

int train_in_box(const Box& box, const std::string& scenario, const std::vector<TrainedJob>& jobs,
                 const std::vector<std::string>& options) {
  std::vector<sim::Child> ranks;
  for (const TrainedJob& job : jobs) {
    const std::string token = sim::make_token();
    std::vector<std::string> words = words_of(scenario, job);
    words.insert(words.end(), options.begin(), options.end());
    for (std::size_t rank = 0; rank < job.nodes.size(); ++rank)
      ranks.push_back(started(box, job, rank, words, token));
  }
  for (;;) {
    const auto left = std::ranges::count_if(ranks, [](sim::Child& rank) { return rank.running(); });
    for (const sim::Child& rank : ranks)
      if (const int status = rank.status().value_or(0); status != 0) {
        // Its peers notice it, and those who can say why.
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        return WIFEXITED(status) ? WEXITSTATUS(status) : sim::exit_rank_lost;
      }
    if (left == 0) return sim::exit_ok;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace stepcast::validate
