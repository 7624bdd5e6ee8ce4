#include "sim/chakra/rank_lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/check.hpp"
#include "sim/chakra/node_order.hpp"
#include "sim/files/collective_words.hpp"

namespace stepcast::sim {
namespace {

using workloads::CollectiveKind;

// Of the engine's room for lanes (engine/rank_state.hpp).
constexpr std::size_t most_lanes = 15;

bool is_communication(const EtNode& n) {
  return n.type == EtType::collective || n.type == EtType::send || n.type == EtType::receive;
}

class LaneWriter {
 public:
  LaneWriter(const EtFile& file, std::int64_t rank, const topology::GpuSpec& gpu)
      : file_(file), rank_(rank), gpu_(gpu), order_(node_order(file)) {
    timed_ = std::ranges::any_of(file.nodes, [](const EtNode& n) {
      return n.type == EtType::compute && !n.is_cpu_op && n.duration_us > 0;
    });
  }

  RankLanes write(bool ends_together) {
    name_lanes();
    place_.resize(file_.nodes.size());
    std::vector<bool> awaited(file_.nodes.size());  // by another lane
    for (const std::size_t i : order_.order) place_[i] = {lane_of(file_.nodes[i]), 0, 0};
    for (std::size_t i = 0; i < order_.deps.size(); ++i)
      for (const std::size_t dep : order_.deps[i])
        if (place_[dep].lane != place_[i].lane) awaited[dep] = true;
    engine::ProgramBuilder builder(
        static_cast<std::uint8_t>(std::max<std::size_t>(1, lanes_.size())));
    waited_.assign(lanes_.size(), std::vector<std::int64_t>(lanes_.size(), -1));
    for (const std::size_t i : order_.order) write_node(i, awaited[i], builder);
    if (ends_together || out_.compute == Duration{})
      for (std::size_t lane = 1; lane < lanes_.size(); ++lane)
        builder.wait(0, builder.record(static_cast<std::uint8_t>(lane)));
    out_.program = builder.take();
    return std::move(out_);
  }

 private:
  struct Place {
    std::uint8_t lane = 0;
    std::int64_t turn = 0;  // of the lane
    std::uint32_t event = 0;
  };

  /// What runs on one lane; groups stay on the lane that used them first.
  std::string key_of(const EtNode& n) {
    if (is_communication(n)) {
      std::string own = n.stream.empty() ? "" : "stream " + n.stream;
      if (own.empty() && n.type == EtType::collective) own = "group " + n.pg_name;
      if (own.empty())
        own =
            fmt::format("{} {}", n.type == EtType::send ? "to" : "from",
                        n.type == EtType::send ? n.comm_dst.value_or(-1) : n.comm_src.value_or(-1));
      return lane_of_peers_.try_emplace(peers_of(n), own).first->second;
    }
    if (n.is_cpu_op) return "host";
    if (!n.stream.empty()) return "stream " + n.stream;
    return n.type == EtType::compute ? "compute" : "memory";
  }

  /// Lane 0 is that with the most compute; the others as they come.
  void name_lanes() {
    std::map<std::string, std::int64_t> compute;
    std::vector<std::string> keys;
    for (const std::size_t i : order_.order) {
      const EtNode& n = file_.nodes[i];
      if (n.type == EtType::metadata) continue;
      const std::string key = key_of(n);
      if (std::ranges::count(keys, key) == 0) keys.push_back(key);
      if (n.type == EtType::compute && !n.is_cpu_op)
        compute[key] += std::max<std::int64_t>(1, time_of(n).count());
    }
    const auto most = std::ranges::max_element(compute, {}, [](const auto& c) { return c.second; });
    out_.lanes.push_back(most == compute.end() ? "compute" : most->first);
    for (const std::string& key : keys)
      if (key != out_.lanes.front()) out_.lanes.push_back(key);
    if (out_.lanes.size() > most_lanes)
      throw InputError(file_.path, fmt::format("uses {} lanes", out_.lanes.size()),
                       fmt::format("there is room for {}", most_lanes));
    for (std::size_t lane = 0; lane < out_.lanes.size(); ++lane)
      lanes_[out_.lanes[lane]] = static_cast<std::uint8_t>(lane);
  }

  std::uint8_t lane_of(const EtNode& n) {
    return n.type == EtType::metadata ? std::uint8_t{0} : lanes_.at(key_of(n));
  }

  EtPeers peers_of(const EtNode& n) const {
    using Kind = EtPeers::Kind;
    if (n.type == EtType::collective)
      return n.pg_name.empty() ? EtPeers{} : EtPeers{Kind::group, n.pg_name};
    const bool sends = n.type == EtType::send;
    if (!n.pair.empty())
      return {sends ? Kind::sender : Kind::receiver, n.pair, -1, -1, n.comm_tag.value_or(0)};
    const std::int64_t source = sends ? rank_ : n.comm_src.value_or(-1);
    const std::int64_t destination = sends ? n.comm_dst.value_or(-1) : rank_;
    if (source < 0 || destination < 0)
      throw InputError(file_.path,
                       fmt::format("node {} \"{}\" does not say its {}", n.id, n.name,
                                   sends ? "receiver (comm_dst)" : "sender (comm_src)"));
    return {sends ? Kind::sender : Kind::receiver, "", source, destination, n.comm_tag.value_or(0)};
  }

  EtTransfer transfer_of(const EtNode& n) const {
    if (!n.comm_size || *n.comm_size < 0)
      throw InputError(file_.path, fmt::format("node {} \"{}\" has no comm_size", n.id, n.name));
    EtTransfer out{CollectiveKind::send_receive, workloads::Dtype::bf16, *n.comm_size};
    if (const auto dtype = dtype_named(n.dtype)) out.dtype = *dtype;
    if (n.type != EtType::collective) return out;
    const std::int64_t type = n.comm_type.value_or(-1);
    if (type < 0 || type >= num_et_collectives)
      throw InputError(file_.path,
                       fmt::format("node {} \"{}\" has no known comm_type", n.id, n.name));
    switch (static_cast<EtCollective>(type)) {
      case EtCollective::all_reduce:
        out.kind = CollectiveKind::all_reduce;
        return out;
      case EtCollective::barrier:  // NCCL has none: frameworks reduce a number
        out.kind = CollectiveKind::all_reduce;
        out.bytes = std::max<std::int64_t>(out.bytes, 4);
        return out;
      case EtCollective::reduce:
        out.kind = CollectiveKind::reduce;
        return out;
      case EtCollective::all_gather:
        out.kind = CollectiveKind::all_gather;
        return out;
      case EtCollective::broadcast:
        out.kind = CollectiveKind::broadcast;
        return out;
      case EtCollective::all_to_all:
        out.kind = CollectiveKind::all_to_all;
        return out;
      case EtCollective::reduce_scatter:
      case EtCollective::reduce_scatter_block:
        out.kind = CollectiveKind::reduce_scatter;
        return out;
      case EtCollective::gather:
      case EtCollective::scatter:
        break;
    }
    throw InputError(file_.path,
                     fmt::format("node {} \"{}\" gathers or scatters at one rank", n.id, n.name),
                     "NCCL has no such collective: write its sends and receives");
  }

  /// Microseconds that stand there; in a file without any, the GPU's roofline.
  Duration time_of(const EtNode& n) {
    if (n.duration_us > 0 || n.is_cpu_op || timed_) return n.duration_us * et_time;
    const double ops = static_cast<double>(n.num_ops.value_or(0)) / gpu_.tensor_peak.value;
    const double bytes =
        static_cast<double>(n.tensor_size.value_or(0)) / gpu_.memory_bandwidth.value;
    return to_duration(std::max(ops, bytes));
  }

  template <class T>
  static std::uint32_t index_in(std::vector<T>& all, std::map<T, std::uint32_t>& places,
                                const T& value) {
    const auto [at, added] = places.try_emplace(value, static_cast<std::uint32_t>(all.size()));
    if (added) all.push_back(value);
    return at->second;
  }

  void wait_for_deps(std::size_t i, engine::ProgramBuilder& builder) {
    Place& place = place_[i];
    for (const std::size_t dep : order_.deps[i]) {
      const Place& before = place_[dep];
      std::int64_t& known = waited_[place.lane][before.lane];
      if (before.lane == place.lane || known >= before.turn) continue;
      known = before.turn;
      builder.wait(place.lane, before.event);
    }
  }

  void write_node(std::size_t i, bool awaited, engine::ProgramBuilder& builder) {
    const EtNode& n = file_.nodes[i];
    Place& place = place_[i];
    wait_for_deps(i, builder);
    place.turn = next_turn_++;
    if (is_communication(n)) {
      const std::uint32_t peers = index_in(out_.peers, peer_places_, peers_of(n));
      builder.join(place.lane, peers, index_in(out_.transfers, transfer_places_, transfer_of(n)),
                   0);
    } else if (n.type != EtType::metadata) {
      const Duration time = time_of(n);
      (n.is_cpu_op ? out_.host : out_.compute) += time;
      if (!timed_ && !n.is_cpu_op && n.duration_us == 0 && time > Duration{}) ++out_.rooflined;
      const std::uint32_t work = index_in(works_, work_places_, std::pair(time, n.is_cpu_op));
      if (work == out_.works.size()) {
        out_.works.push_back(time);
        out_.of_host.push_back(n.is_cpu_op);
      }
      builder.work(place.lane, work, 0);
    }
    if (awaited) place.event = builder.record(place.lane);
  }

  const EtFile& file_;
  const std::int64_t rank_;
  const topology::GpuSpec& gpu_;
  const NodeOrder order_;
  bool timed_ = false;
  RankLanes out_;
  std::map<std::string, std::uint8_t> lanes_;
  std::map<EtPeers, std::string> lane_of_peers_;
  std::map<EtPeers, std::uint32_t> peer_places_;
  std::map<EtTransfer, std::uint32_t> transfer_places_;
  std::vector<std::pair<Duration, bool>> works_;
  std::map<std::pair<Duration, bool>, std::uint32_t> work_places_;
  std::vector<Place> place_;
  std::vector<std::vector<std::int64_t>> waited_;  // [lane][lane]: the last turn waited for
  std::int64_t next_turn_ = 0;
};

}  // namespace

RankLanes lanes_of(const EtFile& file, std::int64_t rank, const topology::GpuSpec& gpu,
                   bool ends_together) {
  return LaneWriter(file, rank, gpu).write(ends_together);
}

}  // namespace stepcast::sim
