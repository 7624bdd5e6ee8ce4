// The constants of constants.hpp, each with its table and key: listed once, used to read
// the file, to write it and to fit.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/network/constants.hpp"

namespace stepcast::sim {

inline constexpr std::array<std::string_view, 4> generation_tables{"volta", "ampere", "hopper",
                                                                   "blackwell"};
inline constexpr std::array<std::string_view, topology::num_networks> transport_tables{
    "infiniband", "roce", "efa", "ethernet", "slingshot", "omni_path"};

template <class Generation, class Visitor>
void visit_generation(Generation& g, const std::string& table, Visitor&& visit) {
  visit(table, "start", g.start);
  visit(table, "ring_ll", g.ring_ll);
  visit(table, "ring_ll128", g.ring_ll128);
  visit(table, "ring_simple", g.ring_simple);
  visit(table, "ring_step", g.ring_step);
  visit(table, "ring_drain", g.ring_drain);
  visit(table, "p2p_start", g.p2p_start);
  visit(table, "p2p_ramp", g.p2p_ramp);
  visit(table, "p2p_nvlink", g.p2p_nvlink);
  visit(table, "all_to_all", g.all_to_all);
  if (table == "volta" || table == "ampere") return;  // no NVLink SHARP
  visit(table, "nvls_start", g.nvls_start);
  visit(table, "nvls_reduce", g.nvls_reduce);
  visit(table, "nvls_tree", g.nvls_tree);
  visit(table, "nvls_gather", g.nvls_gather);
  visit(table, "nvls_fill", g.nvls_fill);
  if (table != "blackwell") return;
  visit(table, "nvls_bus", g.nvls_bus);
  visit(table, "all_to_all_rank", g.all_to_all_rank);
}

template <class Shared, class Visitor>
void visit_shared(Shared& s, Visitor&& visit) {
  const std::string table = "shared";
  visit(table, "nic_ring", s.nic_ring);
  visit(table, "nic_ll128", s.nic_ll128);
  visit(table, "nic_ll", s.nic_ll);
  visit(table, "nic_tree", s.nic_tree);
  visit(table, "nvlink_tree", s.nvlink_tree);
  visit(table, "tree_fill", s.tree_fill);
  visit(table, "nic_nvls_tree", s.nic_nvls_tree);
  visit(table, "nvls_tree_level", s.nvls_tree_level);
  visit(table, "nvls_tree_fill", s.nvls_tree_fill);
  visit(table, "p2p_network_start", s.p2p_network_start);
  visit(table, "nic_p2p", s.nic_p2p);
}

template <class Constants, class Visitor>
void visit_network_constants(Constants& c, Visitor&& visit) {
  for (std::size_t g = 0; g < c.generation.size(); ++g)
    visit_generation(c.generation[g], std::string(generation_tables[g]), visit);
  for (std::size_t n = 0; n < c.transport.size(); ++n) {
    const std::string table(transport_tables[n]);
    const std::size_t measured = c.transport[n].hop.size();
    for (std::size_t g = 0; g < measured; ++g)
      visit(table, "hop_" + std::string(generation_tables[g]), c.transport[n].hop[g]);
    for (std::size_t g = 0; g < measured; ++g)
      visit(table, "message_" + std::string(generation_tables[g]), c.transport[n].message[g]);
    visit(table, "ring_message", c.transport[n].ring_message);
    visit(table, "bandwidth", c.transport[n].bandwidth);
    visit(table, "tree", c.transport[n].tree);
    visit(table, "ll", c.transport[n].ll);
  }
  visit_shared(c.shared, visit);
  const std::string table = "measurement";
  visit(table, "launch", c.measurement.launch);
  visit(table, "launch_p2p", c.measurement.launch_p2p);
  visit(table, "single_process", c.measurement.single_process);
  visit(table, "kernel_timer", c.measurement.kernel_timer);
  visit(table, "list_copy", c.measurement.list_copy);
}

}  // namespace stepcast::sim
