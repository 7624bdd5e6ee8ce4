#include "sim/network/ablation.hpp"

namespace stepcast::sim {

std::vector<std::string> words_of(const Ablation& ablation) {
  std::vector<std::string> out;
  for (const auto& [word, member] : ablation_names)
    if (ablation.*member) out.emplace_back(word);
  return out;
}

CollectiveTime AblatedNetwork::time_of(const workloads::Collective& collective,
                                       const GroupShape& shape) const {
  CollectiveTime out = whole_.time_of(collective, shape);
  if (!without_.latency && !without_.bandwidth) return out;
  const Duration before = out.duration;
  if (without_.latency) out.latency = Duration{};
  if (without_.bandwidth) out.transfer = Duration{};
  out.duration = out.latency + out.transfer;
  // What moves is moved in less time; without bandwidth nothing that could be seen moves at all.
  const bool moves = out.duration > Duration{};
  const double faster = moves ? seconds(before) / seconds(out.duration) : 0.0;
  out.memory_traffic = out.memory_traffic * (without_.bandwidth ? 0.0 : faster);
  out.algbw = out.algbw * faster;
  out.busbw = out.busbw * faster;
  return out;
}

std::vector<LinkLoad> AblatedNetwork::loads_of(const Delivery& delivery,
                                               const std::vector<std::int64_t>& ranks) const {
  if (without_.sharing || without_.bandwidth) return {};
  return whole_.loads_of(delivery, ranks);
}

}  // namespace stepcast::sim
