#include "sim/network/nccl/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/check.hpp"

namespace stepcast::sim {
namespace {

constexpr std::int64_t smallest = 1 << 10, largest = std::int64_t{1} << 32;
constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
/// Every way has all its channels long before.
constexpr std::int64_t enough = std::int64_t{1} << 40;

std::vector<std::int64_t> powers_up_to(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n < most; n *= 2) out.push_back(n);
  out.push_back(most);
  return out;
}

/// The end of the range around a size: the geometric mean with the next.
Bytes end_of(std::int64_t size) {
  if (size >= largest) return Bytes(no_end);
  return Bytes(std::llround(static_cast<double>(size) * std::sqrt(2.0)));
}

/// All ways of one group.
class Weighing {
 public:
  Weighing(const TunerQuestion& question, const GroupShape& shape)
      : question_(question),
        overrides_(with_fabric(question)),
        machine_(planned_machine(question.cluster.node(), shape, overrides_)),
        times_(question.cluster.node(), question.nccl, {}, overrides_),
        paths_(question.cluster, question.router),
        shape_(shape) {}

  bool asks_the_tuner(workloads::CollectiveKind kind) const {
    return !runs_on_copy_engines(question_.nccl.tuning, machine_, kind, overrides_);
  }
  TunerChoice choice(workloads::CollectiveKind kind, Bytes bytes, Bytes least, Bytes most) const;

 private:
  static NcclOverrides with_fabric(const TunerQuestion& question) {
    NcclOverrides out = question.overrides;
    out.fabric_has_sharp = question.cluster.fabric().sharp;
    return out;
  }
  TunerChoice::Way way(const NcclCall& call, const NcclOption& option, Bytes most) const;

  const TunerQuestion& question_;
  NcclOverrides overrides_;
  NcclMachine machine_;
  CollectiveTimes times_;
  PathLatency paths_;
  GroupShape shape_;
};

TunerChoice::Way Weighing::way(const NcclCall& call, const NcclOption& option, Bytes most) const {
  const CollectiveTime time =
      paths_.added_to(times_.time_of_way(call, machine_, option), call.kind, call.bytes, shape_);
  NcclCall longest = call;
  longest.bytes = std::min(most, Bytes(enough));
  return {option.algorithm, option.protocol, times_.time_of_way(longest, machine_, option).channels,
          time.duration};
}

TunerChoice Weighing::choice(workloads::CollectiveKind kind, Bytes bytes, Bytes least,
                             Bytes most) const {
  const NcclCall call{.kind = kind, .bytes = bytes, .dtype = question_.dtype};
  const NcclTuning& tuning = question_.nccl.tuning;
  TunerChoice out{.kind = kind,
                  .shape = shape_,
                  .bytes = bytes,
                  .least = least,
                  .most = most,
                  .usual = way(call, nccl_choice(tuning, machine_, call, overrides_), most),
                  .taken = {}};
  TunerChoice::Way best = out.usual;
  for (const NcclOption& option : nccl_options(tuning, machine_, call, overrides_)) {
    const TunerChoice::Way other = way(call, option, most);
    if (other.duration < best.duration) best = other;
  }
  const double gain = seconds(out.usual.duration) / seconds(best.duration);
  out.taken = gain >= 1 + question_.least_gain ? best : out.usual;
  return out;
}

bool same_line(const TunerChoice& a, const TunerChoice& b) {
  return a.kind == b.kind && a.shape == b.shape && a.taken.algorithm == b.taken.algorithm &&
         a.taken.protocol == b.taken.protocol && a.taken.channels == b.taken.channels;
}

}  // namespace

std::vector<GroupShape> tuner_shapes(const topology::Cluster& cluster) {
  std::vector<GroupShape> out;
  for (const std::int64_t nodes : powers_up_to(cluster.num_nodes()))
    for (const std::int64_t each : powers_up_to(cluster.node().gpus))
      if (nodes * each > 1) out.push_back({nodes * each, nodes, each, 1});
  return out;
}

std::vector<TunerChoice> tuner_choices(const TunerQuestion& question,
                                       workloads::CollectiveKind kind,
                                       std::span<const GroupShape> shapes) {
  expects(choice_index(kind).has_value(), "a collective that NCCL chooses an algorithm for");
  std::vector<TunerChoice> out;
  for (const GroupShape& shape : shapes) {
    const Weighing weighing(question, shape);
    if (!weighing.asks_the_tuner(kind)) continue;
    Bytes least{};
    for (std::int64_t size = smallest; size <= largest; size *= 2) {
      out.push_back(weighing.choice(kind, Bytes(size), least, end_of(size)));
      if (size < largest) least = end_of(size) + Bytes(1);
    }
  }
  return out;
}

std::string tuner_file(std::span<const TunerChoice> choices,
                       const std::vector<std::string>& comments) {
  std::string out;
  for (const std::string& comment : comments) out += "# " + comment + "\n";
  out +=
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
      "numPipeOps,regBuff\n";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const TunerChoice& first = choices[i];
    while (i + 1 < choices.size() && same_line(first, choices[i + 1])) ++i;
    out += fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", row_word(first.kind), first.least.value,
                       choices[i].most.value, name_of(first.taken.algorithm),
                       name_of(first.taken.protocol), first.taken.channels, first.shape.nodes,
                       first.shape.ranks);
  }
  return out;
}

}  // namespace stepcast::sim
