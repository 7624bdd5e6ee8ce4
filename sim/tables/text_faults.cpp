#include "sim/tables/text_faults.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>

namespace stepcast::sim {

/// Libraries spell types in their own ways, fp8(rowwise): the word before a bracket is known.
bool is_element_type(std::string_view text) {
  constexpr std::string_view known[] = {"",      "n/a",       "bf16",  "fp16",     "fp32",
                                        "fp64",  "tf32",      "fp8",   "fp8_e5m2", "mxfp8",
                                        "nvfp4", "fp8_block", "char",  "int8",     "uint8",
                                        "int32", "uint32",    "int64", "uint64"};
  return std::ranges::find(known, text.substr(0, text.find('('))) != std::end(known);
}

const char* version_fault(std::string_view text) {
  const bool begins = text.empty() || std::isalnum(static_cast<unsigned char>(text[0])) != 0;
  return begins ? "" : "is no version: 2.20.5";
}

const char* processes_fault(std::string_view text) {
  if (text.empty() || text == "one per GPU") return "";
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool known = error == std::errc{} && count > 0 && (rest.empty() || rest == " per node");
  return known ? "" : "is no number of processes: 1, 8 per node, one per GPU";
}

}  // namespace stepcast::sim
