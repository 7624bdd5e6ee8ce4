// What-if by leaving out: the same step with one effect switched off shows what the effect costs.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/network/model.hpp"

namespace stepcast::sim {

/// Effects that a run leaves out.
struct Ablation {
  bool interference = false;  // kernels take as long beside a collective as alone
  bool latency = false;       // collectives and sends take their transfer part only
  bool bandwidth = false;     // ... their latency part only, and load no link
  bool jitter = false;        // no noise, no spread between GPUs, no stragglers
  bool sharing = false;       // links are never shared: a transfer takes its time alone

  bool any() const { return interference || latency || bandwidth || jitter || sharing; }
  friend bool operator==(const Ablation&, const Ablation&) = default;
};

inline constexpr std::array<std::pair<std::string_view, bool Ablation::*>, 5> ablation_names{{
    {"interference", &Ablation::interference},
    {"latency", &Ablation::latency},
    {"bandwidth", &Ablation::bandwidth},
    {"jitter", &Ablation::jitter},
    {"sharing", &Ablation::sharing},
}};

/// The words of what is left out, in the order of ablation_names.
std::vector<std::string> words_of(const Ablation& ablation);

/// A network without its latency, its bandwidth or its sharing.
class AblatedNetwork : public NetworkModel {
 public:
  AblatedNetwork(const NetworkModel& whole, const Ablation& without)
      : whole_(whole), without_(without) {}

  CollectiveTime time_of(const workloads::Collective&, const GroupShape&) const override;
  std::vector<LinkLoad> loads_of(const Delivery&,
                                 const std::vector<std::int64_t>& ranks) const override;

 private:
  const NetworkModel& whole_;
  Ablation without_;
};

}  // namespace stepcast::sim
