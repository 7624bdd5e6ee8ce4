// The edges of a critical path, as programs get them.
#pragma once

#include <vector>

#include "sim/form/form.hpp"
#include "sim/why/named_path.hpp"

namespace stepcast::sim {

/// Times count from the begin of the path.
struct EdgeFrom {
  const NamedEdge& of;
  Time begin;
};

std::vector<EdgeFrom> edges_of(const NamedPath& path);
const Form<EdgeFrom>& edge_form();

}  // namespace stepcast::sim
