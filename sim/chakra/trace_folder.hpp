// A folder with the Chakra traces of a step: NAME.RANK.et for ranks, comm_group.json with the
// ranks of each process group, as ASTRA-sim reads them. What ours say beside it, so that one file
// may stand for many ranks, stands in GlobalMetadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/chakra/et_file.hpp"

namespace stepcast::sim {

using EtGroups = std::map<std::string, std::vector<std::int64_t>>;  // by pg_name

inline constexpr std::string_view comm_group_file = "comm_group.json";

// Facts of our GlobalMetadata.
inline constexpr std::string_view fact_ranks = "stands_for";  // "0-3,8": ranks that do the same
inline constexpr std::string_view fact_step = "step_ps";      // as it was simulated
inline constexpr std::string_view fact_groups = "groups.";    // + axis: "17-24", its groups

/// Numbers and ranges of them: "0-3,8".
std::string number_list(const std::vector<std::int64_t>& numbers);
/// Throws InputError at `where`.
std::vector<std::int64_t> numbers_in(std::string_view text, const std::string& where);

struct EtTrace {
  std::string folder;
  std::vector<EtFile> files;
  std::vector<std::size_t> file_of_rank;
  EtGroups groups;

  std::int64_t num_ranks() const { return static_cast<std::int64_t>(file_of_rank.size()); }
};

/// Throws InputError where there is no trace, or a rank has none.
EtTrace read_trace(const std::string& folder);

std::string comm_group_json(const EtGroups& groups);

}  // namespace stepcast::sim
