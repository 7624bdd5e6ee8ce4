// stepcast collective --tune FILE: NCCL's choices beside the fastest, as a table and as the file of
// NCCL's example tuner plugin.
#pragma once

#include <span>

#include "sim/files/toml_value.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

inline constexpr Option tune_options[] = {
    {"tune", "FILE", "",
     "over sizes and groups, write the fastest choices for NCCL's example tuner plugin; without "
     "KIND all five"},
    {"least-gain", "PERCENT", "", "of --tune: NCCL's choice stays below it (default: 10)"},
};

/// `document` is the cluster's, as the options say it. The exit code.
int tune_collectives(TomlValue document, const Arguments& arguments, const Catalogue& catalogue);

}  // namespace stepcast::sim
