#include "validate/cluster/trained.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "sim/processes/child.hpp"
#include "sim/program/exit_codes.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::validate {
namespace {

constexpr int rendezvous_port = 42000;  // in namespaces of our own every port is free

/// All nodes' ranks fail when one does: the first speaks for all.
sim::Child started(const Box& box, std::int64_t node, std::vector<std::string> words) {
  words.insert(words.end(), {"--node", std::to_string(node)});
  const Visit there(box.node(node));
  return sim::Child({.words = std::move(words),
                     .in = sim::Stream::nowhere,
                     .out = sim::Stream::nowhere,
                     .errors = node == 0 ? sim::Stream::ours : sim::Stream::nowhere,
                     .ends_with_parent = true});
}

}  // namespace

int train_in_box(const Box& box, const Point& point, const std::vector<std::string>& options) {
  const std::int64_t nodes = box.plan().nodes;
  std::vector<std::string> words{sim::beside_program("stepcast-trainer"),
                                 point.file(".toml"),
                                 "--out",
                                 point.file(".results.json"),
                                 "--timeline",
                                 point.file(".measured.json"),
                                 "--quiet",
                                 "--ranks",
                                 "processes",
                                 "--nodes",
                                 std::to_string(nodes),
                                 "--rendezvous",
                                 fmt::format("{}:{}", address_of(0), rendezvous_port)};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<sim::Child> ranks;
  for (std::int64_t node = 0; node < nodes; ++node) ranks.push_back(started(box, node, words));
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
