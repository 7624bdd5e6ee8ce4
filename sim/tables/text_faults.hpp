// What texts of a table may say: words, and what is wrong with others. Knows no table.
#pragma once

#include <string_view>

namespace stepcast::sim {

/// What ranks talk over, and how a collective was timed; either may be left out.
inline constexpr std::string_view fabric_words[] = {
    "",       "infiniband", "roce",          "efa", "ethernet", "slingshot",
    "nvlink", "pcie",       "nvlink-bridge", "tcp", "omni-path"};
inline constexpr std::string_view timing_words[] = {"", "wall", "kernel", "event", "wall of lists"};

/// Of a type of elements: bf16, fp8(rowwise).
bool is_element_type(std::string_view text);

// Each: "" for a text that is none of these mistakes.
/// Of a version of NCCL, "2.20.5", or the name of another library; it may be left out.
const char* version_fault(std::string_view text);
/// Of how processes share the ranks: "1", "8 per node", "one per GPU"; it may be left out.
const char* processes_fault(std::string_view text);

}  // namespace stepcast::sim
