// A measured collective as a question to the network model: which machine it ran on.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/files/nccl_names.hpp"
#include "sim/network/model.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/tables/calibration_table.hpp"

namespace stepcast::calibrate {

/// Why a row cannot be predicted.
struct Unpredictable {
  std::string reason;
};

struct CollectiveCase {
  topology::NodeSpec node;  // as the row states its NICs
  sim::GroupShape shape;
  workloads::CollectiveKind kind{};
  Bytes bytes{};
  std::string nccl;                       // version; empty: not stated
  std::optional<sim::Protocol> protocol;  // that the row says it ran with
  bool assumed = false;  // the row does not state its NICs: the node's own were taken
};

/// Finds the machines of rows in the catalogue.
class CollectiveCases {
 public:
  explicit CollectiveCases(const sim::Catalogue& catalogue);

  /// Throws Unpredictable: no such node, no stated fabric, a peak without a size.
  CollectiveCase case_of(const sim::CollectiveRow& row) const;

 private:
  topology::NodeSpec node_of(const sim::CollectiveRow& row) const;
  std::vector<topology::NodeSpec> nodes_;
};

/// Throws Unpredictable for a collective that the model does not know.
workloads::CollectiveKind kind_of(const sim::CollectiveRow& row);

/// predicted / measured - 1; 0 within the reading error.
double error_of(Duration predicted, const sim::CollectiveRow& row, workloads::CollectiveKind kind);

}  // namespace stepcast::calibrate
