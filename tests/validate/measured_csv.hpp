// Small measurement files for the tests.
#pragma once

#include <string>

#include "tests/session.hpp"
#include "validate/compare/measurements.hpp"

namespace stepcast::validate {

inline std::vector<MeasuredRow> rows_of(const std::string& text) {
  return measured_rows(sim::parse_csv("x.csv", text));
}

inline const std::string collective_header =
    "gpu,kind,shape_or_bytes,ranks,nodes,gpus_per_node,dtype,value,unit,source,url_or_repo_path,"
    "confidence,fabric,inter_node_gbps_per_node,nccl\n";

}  // namespace stepcast::validate
