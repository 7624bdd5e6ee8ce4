// Exchanges of tokens between experts by kernels that know where each token goes: one copy to each
// node over the network, from there one to each rank over NVLink. How fast they are is data
// (scenarios/exchange/*.toml). NCCL's AlltoAll, which sends a copy to each expert, is beside
// (sim/network/nccl/p2p_time.cpp).
//
//   time = fixed + fullest x max(bytes over NVLink / its share, bytes over NICs / their share)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/network/exchange/distinct.hpp"
#include "sim/network/model.hpp"
#include "sim/program/cache.hpp"
#include "topology/specs.hpp"

namespace stepcast::sim {

/// One library of such kernels.
struct ExchangeKernels {
  std::string name;
  workloads::Dispatcher dispatcher{};
  bool usual = false;              // where the scenario names none
  std::int64_t sms = 0;            // that they hold where the plan does not say
  double nvlink = 0.0;             // share of a GPU's NVLinks that they fill at most
  BytesPerSecond nvlink_per_sm{};  // that one SM moves over NVLink
  double forwarded = 1.0;          // of that, where NICs bring what is passed on
  double nic = 0.0;                // share of a NIC's line rate
  Duration fixed{};                // counting, announcing and a barrier, whatever the bytes

  friend bool operator==(const ExchangeKernels&, const ExchangeKernels&) = default;
};

/// All of a folder, by name. Throws InputError (file:line).
std::vector<ExchangeKernels> read_exchange_kernels(const std::string& directory);

/// Of those the ones that a run uses: `named`, or the usual one, for each dispatcher. Throws
/// InputError at `where` for a name that there is not.
std::vector<ExchangeKernels> chosen_exchange_kernels(const std::vector<ExchangeKernels>& all,
                                                     const std::string& named,
                                                     const std::string& where);

/// A collective that such kernels carry out.
bool is_node_aware(const workloads::Collective&);

/// Times of such exchanges on one kind of node. Threads may share one.
class TokenExchangeTimes {
 public:
  TokenExchangeTimes(topology::NodeSpec node, std::vector<ExchangeKernels> kernels);

  CollectiveTime time_of(const workloads::Collective&, const GroupShape&) const;

 private:
  struct Question {
    TokenChoice choice;
    std::int64_t parts = 1;
    friend bool operator==(const Question&, const Question&) = default;
  };
  double distinct(const workloads::TokenExchange&, std::int64_t parts) const;
  const ExchangeKernels& kernels_of(workloads::Dispatcher) const;

  topology::NodeSpec node_;
  std::vector<ExchangeKernels> kernels_;
  mutable Cache<Question, double> distinct_{64};
};

}  // namespace stepcast::sim
