#include "topology/specs.hpp"

namespace stepcast::topology {

NodeSpec::NodeSpec() = default;
NodeSpec::NodeSpec(const NodeSpec&) = default;
NodeSpec::NodeSpec(NodeSpec&&) noexcept = default;
NodeSpec& NodeSpec::operator=(const NodeSpec&) = default;
NodeSpec& NodeSpec::operator=(NodeSpec&&) noexcept = default;
NodeSpec::~NodeSpec() = default;

}  // namespace stepcast::topology
