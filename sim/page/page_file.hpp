// The page that holds the whole program (docs/page.md): a shell that ./dev page builds, filled with
// the catalogue and a question to begin with. Knows no simulation.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// What a page opens with.
struct PageQuestion {
  std::vector<std::string> words;  // of a command line, without the verb
  std::string scenario{};          // TOML of the file that they begin with; empty: none
  bool report = false;             // open, and written anew at every change
};

/// Name of the scenario in the page, among the words.
inline constexpr const char* page_scenario = "/scenario.toml";

/// The file, UTF-8; it offers the values of these options. Throws InputError where ./dev page has
/// not built the shell yet.
std::string page_file(const PageQuestion& question, std::span<const Option> options,
                      const Catalogue& catalogue);

/// RFC 4648, section 4, with padding.
std::string base64(std::string_view bytes);

}  // namespace stepcast::sim
