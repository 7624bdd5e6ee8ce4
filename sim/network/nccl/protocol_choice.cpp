#include "sim/network/nccl/protocol_choice.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/check.hpp"
#include "sim/network/nccl/choice.hpp"

namespace stepcast::sim {
namespace {

/// NCCL itself may take it here: LL128 where it must be forced may corrupt data.
bool offers(const topology::NodeSpec& node, const NcclTuning& tuning, const NcclOverrides& usual,
            const ProtocolChoice& choice, Protocol protocol) {
  const NcclMachine machine = planned_machine(node, choice.shape, usual);
  return std::ranges::any_of(nccl_options(tuning, machine, choice.call, usual),
                             [&](const NcclOption& o) { return o.protocol == protocol; });
}

/// What one protocol saves, by NCCL's function.
struct Savings {
  std::array<double, num_choices> seconds{};
  double most = 0.0;  // of one call, all its repeats
  ProtocolChoice heaviest;
};

Savings savings_of(std::span<const ProtocolChoice> choices, const CollectiveTimes& usual,
                   const CollectiveTimes& pinned) {
  Savings out;
  for (const ProtocolChoice& choice : choices) {
    const double saved =
        choice.calls * (seconds(usual.time_of(choice.call, choice.shape).duration) -
                        seconds(pinned.time_of(choice.call, choice.shape).duration));
    out.seconds[*choice_index(choice.call.kind)] += saved;
    if (saved > out.most) out.most = saved, out.heaviest = choice;
  }
  return out;
}

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
  const CollectiveTimes usual(node, nccl, {}, overrides);
  std::optional<BetterProtocol> best;
  for (const Word<Protocol>& word : protocol_words) {
    if (!std::ranges::all_of(choices, [&](const ProtocolChoice& choice) {
          return offers(node, nccl.tuning, overrides, choice, word.value);
        }))
      continue;
    NcclOverrides only = overrides;
    only.protocols.fill(ProtocolSet{}.set(static_cast<std::size_t>(word.value)));
    const Savings savings = savings_of(choices, usual, CollectiveTimes(node, nccl, {}, only));
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
