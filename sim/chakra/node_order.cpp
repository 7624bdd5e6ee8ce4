#include "sim/chakra/node_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

std::vector<std::vector<std::size_t>> places_of_deps(const EtFile& file) {
  std::unordered_map<std::uint64_t, std::size_t> place;  // looked up only
  for (std::size_t i = 0; i < file.nodes.size(); ++i) place[file.nodes[i].id] = i;
  const bool data =
      std::ranges::any_of(file.nodes, [](const EtNode& n) { return !n.data_deps.empty(); });
  std::vector<std::vector<std::size_t>> out(file.nodes.size());
  for (std::size_t i = 0; i < file.nodes.size(); ++i)
    for (const std::uint64_t id : data ? file.nodes[i].data_deps : file.nodes[i].control_deps) {
      const auto at = place.find(id);
      if (at == place.end())
        throw InputError(
            file.path,
            fmt::format("node {} waits for node {}, which is not there", file.nodes[i].id, id),
            "the trace is cut, or of several files");
      out[i].push_back(at->second);
    }
  return out;
}

/// Follows what is awaited from a node that never runs until a node comes again.
[[noreturn]] void name_cycle(const EtFile& file, const NodeOrder& so_far,
                             const std::vector<std::size_t>& missing) {
  std::size_t at = 0;
  while (missing[at] == 0) ++at;
  std::vector<std::size_t> way;
  while (std::ranges::count(way, at) == 0) {
    way.push_back(at);
    at = *std::ranges::find_if(so_far.deps[at], [&](std::size_t d) { return missing[d] > 0; });
  }
  way.erase(way.begin(), std::ranges::find(way, at));
  std::string text = fmt::format("node {}", file.nodes[way.front()].id);
  for (std::size_t i = 1; i < way.size() && i < 6; ++i)
    text += fmt::format(" waits for {}", file.nodes[way[i]].id);
  throw InputError(
      file.path,
      fmt::format("{}{} waits for {}: a cycle of {} nodes", text, way.size() > 6 ? " ..." : "",
                  file.nodes[way.front()].id, way.size()),
      "nothing of it could ever run");
}

}  // namespace

NodeOrder node_order(const EtFile& file) {
  NodeOrder out;
  out.deps = places_of_deps(file);
  std::vector<std::vector<std::size_t>> later(file.nodes.size());
  std::vector<std::size_t> missing(file.nodes.size());
  for (std::size_t i = 0; i < out.deps.size(); ++i) {
    missing[i] = out.deps[i].size();
    for (const std::size_t dep : out.deps[i]) later[dep].push_back(i);
  }
  using Entry = std::tuple<std::int64_t, std::uint64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](std::size_t i) {
    ready.emplace(file.nodes[i].start_us, file.nodes[i].id, i);
  };
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (missing[i] == 0) push(i);
  while (!ready.empty()) {
    const std::size_t i = std::get<2>(ready.top());
    ready.pop();
    out.order.push_back(i);
    for (const std::size_t next : later[i])
      if (--missing[next] == 0) push(next);
  }
  if (out.order.size() < file.nodes.size()) name_cycle(file, out, missing);
  return out;
}

}  // namespace stepcast::sim
