#include "sim/chakra/replay_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/network/links/load_list.hpp"
#include "sim/network/links/picture.hpp"

namespace stepcast::sim {
namespace {

using engine::Traffic;
using workloads::CollectiveKind;
using Members = std::vector<std::int64_t>;

/// The host's work is told from compute by what waiting for it counts as.
constexpr auto host_work = static_cast<std::uint8_t>(Traffic::offload);

/// What an axis of ours is waited for as; others' groups are data-parallel.
Traffic traffic_of(std::string_view axis) {
  for (int k = 0; k < workloads::num_group_kinds; ++k) {
    const workloads::Axis& known = workloads::axis_of(static_cast<workloads::GroupKind>(k));
    if (known.name == axis) return known.traffic;
  }
  return Traffic::data;
}

/// The groups of the trace: who is in them, and where a rank finds its own.
class Groups {
 public:
  explicit Groups(const EtTrace& trace) : trace_(trace) {
    all_.resize(static_cast<std::size_t>(trace.num_ranks()));
    std::iota(all_.begin(), all_.end(), 0);
    for (const EtFile& file : trace.files)
      for (const auto& [fact, numbers] : file.facts)
        if (fact.starts_with(fact_groups))
          for (const std::int64_t number : numbers_in(numbers, file.path))
            axis_of_[std::to_string(number)] = fact.substr(fact_groups.size());
    for (const auto& [name, axis] : axis_of_) {
      const auto members = trace.groups.find(name);
      if (members == trace.groups.end()) continue;
      for (const std::int64_t rank : members->second) of_axis_[{axis, rank}].push_back(name);
    }
  }

  /// Sender first, of a message.
  Members members(const EtPeers& peers, std::int64_t rank, const std::string& file) const {
    using Kind = EtPeers::Kind;
    if (peers.kind == Kind::all) return all_;
    if (peers.kind == Kind::group) return of(name(peers, rank, file), file);
    if (peers.group.empty()) return checked({peers.source, peers.destination}, file);
    const Members& ring = of(own_name(peers, rank, file), file);
    const auto at = static_cast<std::size_t>(std::ranges::find(ring, rank) - ring.begin());
    const std::size_t n = ring.size();
    if (peers.kind == Kind::sender) return {rank, ring[(at + 1) % n]};
    return {ring[(at + n - 1) % n], rank};
  }

  /// Of a group; two of the same ranks are two. Empty for messages.
  std::string name(const EtPeers& peers, std::int64_t rank, const std::string& file) const {
    return peers.kind == EtPeers::Kind::group ? own_name(peers, rank, file) : "";
  }

  Traffic traffic(const EtPeers& peers) const {
    const auto axis = axis_of_.find(peers.group);
    if (axis != axis_of_.end()) return traffic_of(axis->second);
    const bool message =
        peers.kind == EtPeers::Kind::sender || peers.kind == EtPeers::Kind::receiver;
    return message ? Traffic::pipeline : Traffic::data;
  }

 private:
  const Members& of(const std::string& name, const std::string& file) const {
    const auto group = trace_.groups.find(name);
    if (group == trace_.groups.end())
      throw InputError(file, "names process group '" + name + "'",
                       std::string(comm_group_file) + " does not list its ranks");
    return checked(group->second, file);
  }

  const Members& checked(const Members& members, const std::string& file) const {
    for (const std::int64_t rank : members)
      if (rank < 0 || rank >= trace_.num_ranks())
        throw InputError(file, fmt::format("meets rank {}", rank),
                         fmt::format("the trace has {} ranks", trace_.num_ranks()));
    return members;
  }
  Members checked(Members&& members, const std::string& file) const {
    checked(static_cast<const Members&>(members), file);
    return std::move(members);
  }

  /// The file's own group where the rank is in it; else that of the same axis which has it: first
  /// of a pair as sender, last as receiver.
  std::string own_name(const EtPeers& peers, std::int64_t rank, const std::string& file) const {
    using Kind = EtPeers::Kind;
    const auto fits = [&](const std::string& name, bool exactly) {
      const Members& members = of(name, file);
      if (std::ranges::count(members, rank) == 0) return false;
      if (!exactly || peers.kind == Kind::group || members.size() > 2) return true;
      return (peers.kind == Kind::sender ? members.front() : members.back()) == rank;
    };
    if (fits(peers.group, true)) return peers.group;
    const auto axis = axis_of_.find(peers.group);
    if (axis != axis_of_.end())
      if (const auto own = of_axis_.find({axis->second, rank}); own != of_axis_.end())
        for (const bool exactly : {true, false})
          for (const std::string& name : own->second)
            if (fits(name, exactly)) return name;
    if (fits(peers.group, false)) return peers.group;
    throw InputError(file, fmt::format("meets group '{}'", peers.group),
                     fmt::format("rank {}, for which the file stands, is in none like it", rank));
  }

  const EtTrace& trace_;
  Members all_;
  std::map<std::string, std::string> axis_of_;  // by group
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::string>> of_axis_;
};

class SystemWriter {
 public:
  SystemWriter(const EtTrace& trace, const std::vector<RankLanes>& lanes, const Network& network)
      : trace_(trace), lanes_(lanes), network_(network), groups_(trace) {}

  ReplaySystem write() {
    engine::System& s = out_.system;
    out_.network_seconds.assign(num_provenances, 0.0);
    s.host_costs = {Duration{}};
    s.stretch.assign(engine::num_states, 1.0);
    s.role_of_rank.resize(static_cast<std::size_t>(trace_.num_ranks()));
    meet();
    roles();
    for (std::size_t r = 0; r < s.role_of_rank.size(); ++r)
      s.role_of_rank[r] = role_of_file_[trace_.file_of_rank[r]];
    check_agreement();
    transfers();
    return std::move(out_);
  }

 private:
  struct Calls {
    std::size_t file = 0;
    std::uint32_t slot = 0;
    friend auto operator<=>(const Calls&, const Calls&) = default;
  };

  /// Communicators by their members and, of messages, their tag; slots by each file's peers.
  void meet() {
    engine::System& s = out_.system;
    std::size_t slots = 0;
    for (const RankLanes& lanes : lanes_) slots = std::max(slots, lanes.peers.size());
    s.communicator_of.assign(slots,
                             std::vector<std::uint32_t>(s.num_ranks(), engine::no_communicator));
    std::map<std::tuple<Members, std::string, std::int64_t>, std::uint32_t> known;
    for (std::size_t r = 0; r < s.num_ranks(); ++r) {
      const std::size_t file = trace_.file_of_rank[r];
      const RankLanes& lanes = lanes_[file];
      for (std::size_t slot = 0; slot < lanes.peers.size(); ++slot) {
        const EtPeers& peers = lanes.peers[slot];
        const auto rank = static_cast<std::int64_t>(r);
        const std::string& path = trace_.files[file].path;
        const Members members = groups_.members(peers, rank, path);
        const bool all = peers.kind == EtPeers::Kind::all;
        const auto [at, added] =
            known.try_emplace({members, groups_.name(peers, rank, path), all ? -1 : peers.tag},
                              static_cast<std::uint32_t>(members_.size()));
        if (added) add_communicator(members, groups_.traffic(peers));
        s.communicator_of[slot][r] = at->second;
        calls_of_.try_emplace(at->second, Calls{file, static_cast<std::uint32_t>(slot)});
        joined_[at->second].push_back(static_cast<std::uint32_t>(r));
        callers_[at->second].insert({file, static_cast<std::uint32_t>(slot)});
      }
    }
    check_all_come();
  }

  void add_communicator(const Members& members, Traffic traffic) {
    engine::Communicator communicator;
    communicator.members.assign(members.begin(), members.end());
    out_.system.communicators.push_back(std::move(communicator));
    members_.push_back(members);
    traffic_.push_back(traffic);
  }

  void check_all_come() const {
    for (const auto& [c, ranks] : joined_)
      for (const std::int64_t member : members_[c])
        if (std::ranges::count(ranks, static_cast<std::uint32_t>(member)) == 0)
          throw InputError(trace_.files[trace_.file_of_rank[static_cast<std::size_t>(member)]].path,
                           fmt::format("rank {} never meets rank {}", member,
                                       ranks.front() == member ? ranks.back() : ranks.front()),
                           "which waits for it in a collective or a message");
  }

  /// Works and transfers of all files in tables of all; files that say the same are one role.
  void roles() {
    engine::System& s = out_.system;
    std::map<std::pair<Duration, bool>, std::uint32_t> works;
    for (const RankLanes& lanes : lanes_) {
      engine::Program role = lanes.program;
      for (engine::Instruction& i : role.instructions) {
        if (i.op == engine::Op::join) {
          i.arg = number_of(lanes.transfers[i.arg]);
        } else if (i.op == engine::Op::work) {
          const std::pair key(lanes.works[i.arg], bool{lanes.of_host[i.arg]});
          const auto [at, added] =
              works.try_emplace(key, static_cast<std::uint32_t>(s.works.size()));
          if (added) s.works.push_back({key.first, 0, key.second ? host_work : engine::own_work});
          i.arg = at->second;
        }
      }
      const auto alike = std::ranges::find(s.roles, role);
      role_of_file_.push_back(static_cast<std::uint32_t>(alike - s.roles.begin()));
      if (alike == s.roles.end()) s.roles.push_back(std::move(role));
    }
    s.num_patterns = 1;
  }

  std::uint32_t number_of(const EtTransfer& transfer) {
    const auto [at, added] =
        numbers_.try_emplace(transfer, static_cast<std::uint32_t>(transfers_.size()));
    if (added) transfers_.push_back(transfer);
    return at->second;
  }

  const engine::Program& role_of(const Calls& calls) const {
    return out_.system.roles[role_of_file_[calls.file]];
  }

  /// What the calls of a file's slot move, in their order.
  std::vector<std::uint32_t> sequence_of(const Calls& calls) const {
    std::vector<std::uint32_t> out;
    for (const engine::Instruction& i : role_of(calls).instructions)
      if (i.op == engine::Op::join && i.communicator == calls.slot) out.push_back(i.arg);
    return out;
  }

  std::string words_for(const std::vector<std::uint32_t>& sequence, std::size_t at) const {
    if (at >= sequence.size()) return "nothing";
    const EtTransfer& what = transfers_[sequence[at]];
    return fmt::format("{} of {} B", word_for(collective_names, what.kind), what.bytes);
  }

  /// All members of a group call the same, in the same order.
  void check_agreement() const {
    std::map<Calls, std::vector<std::uint32_t>> sequences;
    for (const auto& [c, callers] : callers_)
      for (const Calls& calls : callers)
        if (!sequences.contains(calls)) sequences[calls] = sequence_of(calls);
    for (const auto& [c, callers] : callers_) {
      const auto& first = sequences.at(*callers.begin());
      for (const Calls& calls : callers) {
        const auto& other = sequences.at(calls);
        if (other == first) continue;
        const std::size_t at =
            static_cast<std::size_t>(std::ranges::mismatch(first, other).in1 - first.begin());
        throw InputError(trace_.files[calls.file].path,
                         fmt::format("its call {} between ranks {} is {}", at + 1,
                                     number_list(members_[c]), words_for(other, at)),
                         fmt::format("{} has {}", trace_.files[callers.begin()->file].path,
                                     words_for(first, at)));
      }
    }
  }

  /// What a communicator's calls come to: how often each transfer, in one member's step.
  std::map<std::uint32_t, double> calls_of(std::uint32_t c) const {
    std::map<std::uint32_t, double> out;
    for (const std::uint32_t number : sequence_of(calls_of_.at(c))) ++out[number];
    return out;
  }

  CollectiveTime time_of(const EtTransfer& what, std::uint32_t c) const {
    return network_.model->time_of(collective(what, c), shape_of(network_.cluster(), members_[c]));
  }

  workloads::Collective collective(const EtTransfer& what, std::uint32_t c) const {
    const bool gathers = what.kind == CollectiveKind::all_gather;
    const std::int64_t bytes = gathers ? what.bytes * std::ssize(members_[c]) : what.bytes;
    return plain_collective(what.kind, Bytes(bytes), what.dtype);
  }

  /// How a communicator moves most of its bytes, and the bytes of one flow per byte of it.
  struct Way {
    GroupShape shape;
    Traffic traffic{};
    Delivery delivery{};
    friend auto operator<=>(const Way&, const Way&) = default;
  };

  void transfers() {
    engine::System& s = out_.system;
    std::map<Way, std::uint32_t> patterns;
    std::vector<std::uint32_t> first;                    // communicator of a pattern
    std::vector<std::map<std::uint32_t, double>> calls;  // by communicator
    for (std::uint32_t c = 0; c < members_.size(); ++c) {
      calls.push_back(calls_of(c));
      const Way way = way_of(c, calls.back());
      const auto [at, added] = patterns.try_emplace(way, static_cast<std::uint32_t>(first.size()));
      if (added) first.push_back(c), ways_.push_back(way);
      s.communicators[c].pattern = at->second;
    }
    s.num_patterns = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(first.size()));
    s.transfers.assign(transfers_.size() * s.num_patterns, {0.0, BytesPerSecond(1.0)});
    std::vector<double> units, fastest(first.size());
    for (std::uint32_t p = 0; p < first.size(); ++p)
      units.push_back(busiest_end(network_.cluster(), loads_of(ways_[p].delivery, first[p])));
    for (std::uint32_t c = 0; c < members_.size(); ++c)
      for (const auto& [number, times] : calls[c]) add_transfer(number, c, times, units, fastest);
    put_loads(units, fastest);
  }

  Way way_of(std::uint32_t c, const std::map<std::uint32_t, double>& calls) const {
    Way way{shape_of(network_.cluster(), members_[c]), traffic_[c], {}};
    double most = -1.0;
    std::map<Delivery, double> bytes;
    for (const auto& [number, times] : calls) {
      const EtTransfer& what = transfers_[number];
      const Delivery delivery = delivery_of(what.kind, time_of(what, c));
      bytes[delivery] += times * static_cast<double>(collective(what, c).bytes.value);
    }
    for (const auto& [delivery, sum] : bytes)
      if (sum > most) most = sum, way.delivery = delivery;
    return way;
  }

  std::vector<LinkLoad> loads_of(const Delivery& delivery, std::uint32_t c) const {
    return network_.model->loads_of(delivery, members_[c]);
  }

  void add_transfer(std::uint32_t number, std::uint32_t c, double times,
                    const std::vector<double>& units, std::vector<double>& fastest) {
    engine::System& s = out_.system;
    const std::uint32_t p = s.communicators[c].pattern;
    const EtTransfer& what = transfers_[number];
    const CollectiveTime time = time_of(what, c);
    // Nothing to move: over at once.
    const double alone = std::max(seconds(time.duration), 1e-12);
    const Delivery own = delivery_of(what.kind, time);
    const double unit =
        own == ways_[p].delivery ? units[p] : busiest_end(network_.cluster(), loads_of(own, c));
    const double bytes = unit * static_cast<double>(collective(what, c).bytes.value);
    s.transfers[number * s.num_patterns + p] = {bytes, BytesPerSecond(bytes / alone), traffic_[c]};
    fastest[p] = std::max(fastest[p], bytes / alone);
    out_.network_seconds[static_cast<std::size_t>(time.provenance)] += times * alone;
  }

  void put_loads(const std::vector<double>& units, const std::vector<double>& fastest) {
    engine::System& s = out_.system;
    LoadList loads;
    std::vector<double> fastest_of;
    for (std::uint32_t c = 0; c < members_.size(); ++c) {
      const std::uint32_t p = s.communicators[c].pattern;
      loads.add(loads_of(ways_[p].delivery, c), units[p]);
      fastest_of.push_back(fastest[p]);
    }
    LinkPicture(network_.cluster(), loads).put_on(s, fastest_of);
  }

  const EtTrace& trace_;
  const std::vector<RankLanes>& lanes_;
  const Network& network_;
  const Groups groups_;
  ReplaySystem out_;
  std::vector<std::uint32_t> role_of_file_;
  std::vector<Members> members_;  // by communicator
  std::vector<Traffic> traffic_;  // by communicator
  std::map<std::uint32_t, Calls> calls_of_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> joined_;
  std::map<std::uint32_t, std::set<Calls>> callers_;
  std::map<EtTransfer, std::uint32_t> numbers_;
  std::vector<EtTransfer> transfers_;
  std::vector<Way> ways_;  // by pattern
};

}  // namespace

ReplaySystem replay_system(const EtTrace& trace, const std::vector<RankLanes>& lanes,
                           const Network& network) {
  return SystemWriter(trace, lanes, network).write();
}

}  // namespace stepcast::sim
