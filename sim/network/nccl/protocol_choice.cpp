#include "sim/network/nccl/protocol_choice.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "engine/check.hpp"
#include "sim/network/nccl/choice.hpp"

namespace stepcast::sim {
namespace {

/// What one protocol saves, by NCCL's function.
struct Savings {
  std::array<double, num_choices> seconds{};
  double most = 0.0;  // of one call, all its repeats
  ProtocolChoice heaviest;
};

/// The calls on their machines: NCCL's search for channels is worth doing once for a shape.
class Weighed {
 public:
  Weighed(std::span<const ProtocolChoice> choices, const topology::NodeSpec& node,
          const NcclFacts& nccl, const NcclOverrides& usual)
      : choices_(choices), tuning_(nccl.tuning), usual_(usual), times_(node, nccl, {}, usual) {
    for (const ProtocolChoice& choice : choices)
      if (!machines_.contains(choice.shape))
        machines_.emplace(choice.shape, planned_machine(node, choice.shape, usual));
  }

  /// NCCL itself may take it for all of them: LL128 where it must be forced may corrupt data.
  bool offers(Protocol protocol) const {
    return std::ranges::all_of(choices_, [&](const ProtocolChoice& choice) {
      return std::ranges::any_of(
          nccl_options(tuning_, machines_.at(choice.shape), choice.call, usual_),
          [&](const NcclOption& o) { return o.protocol == protocol; });
    });
  }

  Savings savings(Protocol protocol) const {
    NcclOverrides only = usual_;
    only.protocols.fill(ProtocolSet{}.set(static_cast<std::size_t>(protocol)));
    Savings out;
    for (const ProtocolChoice& choice : choices_) {
      const double saved = choice.calls * (seconds_of(choice, usual_) - seconds_of(choice, only));
      out.seconds[*choice_index(choice.call.kind)] += saved;
      if (saved > out.most) out.most = saved, out.heaviest = choice;
    }
    return out;
  }

 private:
  double seconds_of(const ProtocolChoice& choice, const NcclOverrides& overrides) const {
    const NcclMachine& machine = machines_.at(choice.shape);
    const NcclOption way = nccl_choice(tuning_, machine, choice.call, overrides);
    return seconds(times_.time_of_way(choice.call, machine, way).duration);
  }

  std::span<const ProtocolChoice> choices_;
  const NcclTuning& tuning_;
  const NcclOverrides& usual_;
  CollectiveTimes times_;
  std::map<GroupShape, NcclMachine> machines_;
};

/// "AllGather:Simple;ReduceScatter:Simple": the functions that gain by it.
std::string list_of(const Savings& savings, std::string_view protocol) {
  std::string out;
  for (const Word<workloads::CollectiveKind>& word : collective_words) {
    const auto index = choice_index(word.value);
    if (!index || savings.seconds[*index] <= 0.0) continue;
    if (!out.empty()) out += ";";
    out.append(word.nccl).append(":").append(protocol);
  }
  return out;
}

}  // namespace

std::optional<BetterProtocol> better_protocol(std::span<const ProtocolChoice> choices,
                                              const topology::NodeSpec& node, const NcclFacts& nccl,
                                              const NcclOverrides& overrides) {
  if (choices.empty() || overrides.pins_anything()) return std::nullopt;
  const Weighed calls(choices, node, nccl, overrides);
  std::optional<BetterProtocol> best;
  for (const Word<Protocol>& word : protocol_words) {
    if (!calls.offers(word.value)) continue;
    const Savings savings = calls.savings(word.value);
    double saved = 0.0;
    for (const double s : savings.seconds)
      if (s > 0.0 || !nccl.tuning.lists_by_function) saved += s;
    if (saved <= (best ? best->saved_s : 0.0)) continue;
    std::string value(word.nccl);
    if (nccl.tuning.lists_by_function) value = list_of(savings, word.nccl);
    best = {{"NCCL_PROTO", std::move(value), "NCCL's choice"}, saved, savings.heaviest};
  }
  return best;
}

}  // namespace stepcast::sim
