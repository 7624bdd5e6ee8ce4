#include "calibrate/import/nccl_init_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "calibrate/import/nccl_log_words.hpp"
#include "calibrate/rows/numbers.hpp"
#include "engine/units_text.hpp"

namespace stepcast::calibrate {
namespace {

constexpr std::string_view info_mark = "NCCL INFO ";

/// Of "[0]mlx5_0:1/RoCE" the text behind the slash; "" for a word that names no device.
std::string link_layer(const std::string& word) {
  const std::size_t slash = word.find('/');
  const bool device = word.starts_with('[') && word.find(']') < slash && word.find(':') < slash;
  return device && slash != std::string::npos ? word.substr(slash + 1) : std::string();
}

class InitReader {
 public:
  NcclInit read(const TextFile& file) {
    for (const TextLine& line : file.lines) {
      if (const auto version = nccl_in_text(line.text); version && out_.nccl.empty())
        out_.nccl = *version;
      const std::size_t at = line.text.find(info_mark);
      if (at == std::string::npos) continue;
      const std::string process = process_in(std::string_view(line.text).substr(0, at));
      info(line.text.substr(at + info_mark.size()), process);
    }
    finish();
    return out_;
  }

 private:
  void info(const std::string& text, const std::string& process) {
    const auto words = words_of(text);
    if (text.starts_with("NET/IB : Using "))
      infiniband(words);
    else if (text.starts_with("NET/IB: ["))
      speed(words, process);
    else if (text.starts_with("NET/Socket : Using "))
      socket(words);
    else if (text.starts_with("NET/OFI Selected ") && text.find(" is efa") != std::string::npos)
      efa(words);
    else if (text.find(" coll channels, ") != std::string::npos)
      channels(words, process);
    else
      communicator(words, process);
  }

  void infiniband(const std::vector<std::string>& words) {
    std::int64_t devices = 0;
    bool roce = false;
    for (const std::string& word : words) {
      const std::string layer = link_layer(word);
      if (layer.empty()) continue;
      ++devices;
      roce = roce || layer.starts_with("RoCE");
    }
    if (devices > 0) network(roce ? "roce" : "infiniband", devices);
  }

  void socket(const std::vector<std::string>& words) {
    network("ethernet", std::count_if(words.begin(), words.end(), [](const std::string& word) {
              return word.starts_with('[') && word.find("]") + 1 < word.size();
            }));
  }

  /// "... (found 4 nics)"
  void efa(const std::vector<std::string>& words) {
    const auto found = std::find(words.begin(), words.end(), "(found");
    const auto nics = found == words.end() || found + 1 == words.end()
                          ? std::nullopt
                          : number_in<std::int64_t>(*(found + 1));
    network("efa", nics.value_or(0));
  }

  /// A process may tell of InfiniBand and then of sockets for its start: the first counts.
  void network(const std::string& fabric, std::int64_t nics) {
    if (!out_.fabric.empty()) return;
    out_.fabric = fabric;
    if (nics > 0) out_.nics = nics;
  }

  /// "NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 ...", Mbit/s.
  void speed(const std::vector<std::string>& words, const std::string& process) {
    constexpr std::string_view key = "speed=";
    for (const std::string& word : words)
      if (const auto megabits = number_in<double>(std::string_view(word).substr(
              std::min(word.size(), word.starts_with(key) ? key.size() : word.size())));
          megabits && *megabits > 0 && words.size() > 2)
        speeds_[process][words[2]] = *megabits * 1e6 / 8;
  }

  void channels(const std::vector<std::string>& words, const std::string& process) {
    const auto coll = std::find(words.begin(), words.end(), "coll");
    if (coll == words.begin() || coll == words.end()) return;
    if (const auto count = number_in<std::int64_t>(*(coll - 1))) channels_[process] = *count;
  }

  /// "comm 0x55d0 rank 0 nRanks 16 nNodes 2 ...", "comm 0x55d0 rank 0 nranks 16 cudaDev 0 ...".
  void communicator(const std::vector<std::string>& words, const std::string& process) {
    const auto behind = [&](std::string_view name) -> std::optional<std::int64_t> {
      for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == name) return number_in<std::int64_t>(words[i + 1]);
      return std::nullopt;
    };
    if (std::find(words.begin(), words.end(), "comm") == words.end()) return;
    auto ranks = behind("nRanks");
    if (!ranks) ranks = behind("nranks");
    if (!ranks || *ranks < 1 || *ranks > 10'000'000) return;
    if (!out_.ranks || *ranks > *out_.ranks) {
      out_.ranks = *ranks;
      out_.nodes.reset();
      processes_.clear();
    }
    if (*ranks != *out_.ranks) return;
    if (const auto nodes = behind("nNodes"); nodes && *nodes > 0 && *nodes <= *ranks)
      out_.nodes = *nodes;
    if (const auto rank = behind("rank")) processes_[*rank] = process;
  }

  void finish() {
    // Without nNodes (before 2.19) the hosts of all ranks tell, if the log has all ranks.
    std::set<std::string> hosts;
    for (const auto& [rank, process] : processes_)
      hosts.insert(process.substr(0, process.rfind(':')));
    if (out_.ranks && !out_.nodes && !hosts.contains("") &&
        static_cast<std::int64_t>(processes_.size()) == *out_.ranks)
      out_.nodes = static_cast<std::int64_t>(hosts.size());
    for (const auto& [rank, process] : processes_)
      if (const auto told = channels_.find(process); told != channels_.end() && !out_.channels)
        out_.channels = told->second;
    if (!out_.channels && !channels_.empty()) out_.channels = channels_.begin()->second;
    const bool whole = !speeds_.empty() && out_.nics &&
                       static_cast<std::int64_t>(speeds_.begin()->second.size()) == *out_.nics;
    if (!whole) return;
    double all = 0;
    for (const auto& [nic, bytes_per_second] : speeds_.begin()->second) all += bytes_per_second;
    out_.node_bandwidth = BytesPerSecond(all);
  }

  NcclInit out_;
  std::map<std::int64_t, std::string> processes_;  // of the largest communicator's ranks
  std::map<std::string, std::int64_t> channels_;   // of a process
  std::map<std::string, std::map<std::string, double>> speeds_;  // of a process, by NIC
};

}  // namespace

NcclInit nccl_init_of(const TextFile& file) { return InitReader().read(file); }

bool says_something(const NcclInit& init) {
  return !init.nccl.empty() || init.ranks || !init.fabric.empty() || init.channels;
}

std::string to_text(const NcclInit& init) {
  std::vector<std::string> parts;
  if (!init.nccl.empty()) parts.push_back("NCCL " + init.nccl);
  if (init.ranks)
    parts.push_back(fmt::format("{} ranks{}", *init.ranks,
                                init.nodes ? fmt::format(" on {} nodes", *init.nodes) : ""));
  if (init.nics)
    parts.push_back(fmt::format(
        "{} NICs of {}{}", *init.nics, init.fabric,
        init.node_bandwidth ? ", " + stepcast::to_text(*init.node_bandwidth) + " in all" : ""));
  else if (!init.fabric.empty())
    parts.push_back(init.fabric);
  if (init.channels) parts.push_back(fmt::format("{} channels", *init.channels));
  return fmt::format("{}", fmt::join(parts, ", "));
}

ClusterFacts completed(ClusterFacts facts, const NcclInit& init) {
  if (facts.fabric.empty()) facts.fabric = init.fabric;
  if (!facts.node_bandwidth) facts.node_bandwidth = init.node_bandwidth;
  if (facts.nccl.empty()) facts.nccl = init.nccl;
  if (!facts.ranks) facts.ranks = init.ranks;
  if (!facts.nodes) facts.nodes = init.nodes;
  return facts;
}

}  // namespace stepcast::calibrate
