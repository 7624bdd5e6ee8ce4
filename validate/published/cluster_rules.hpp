// The rules of published_clusters.toml: which GPU a name means and which machine it stood in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/catalogue.hpp"
#include "validate/published/rules.hpp"

namespace stepcast::validate {

/// A GPU of the catalogue behind a name, or why there is none.
struct GpuRule {
  std::string name;
  Condition when;
  std::string gpu;  // empty: refused
  std::string refused;
  bool aside = false;  // refused, and counted apart from rows that could have been entered
  YearMonth date;      // when most runs on it were made, for rows without a date
  std::string assumption;
};

struct NodeRule {
  std::string name;
  Condition when;
  topology::NodeSpec node;  // of the catalogue
  std::string catalogue_node;
  sim::TomlValue change = sim::toml_table("defaults");
  sim::TomlValue fabric;
  std::string assumption;
};

/// How a stated bandwidth is cut into NICs.
struct NicRule {
  Condition when;
  std::int64_t nics = 0;
};

/// What the NICs speak, by the words of the row.
struct NetworkRule {
  Condition when;
  std::string network;
  sim::TomlValue fabric;  // no text and no table: as the node's rule has it
};

struct ClusterFile {
  std::vector<GpuRule> gpus;
  std::vector<NodeRule> nodes;
  std::vector<NicRule> nics;
  std::vector<NetworkRule> networks;

  /// The rule for the row's GPU; the last one takes every name.
  const GpuRule& gpu_of(const PublishedRow& row) const;
  ClusterDefaults of(const PublishedRow& row, YearMonth date) const;
};

ClusterFile read_cluster_file(const std::string& path, const sim::Catalogue& catalogue);

}  // namespace stepcast::validate
