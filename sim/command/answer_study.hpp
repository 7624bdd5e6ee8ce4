// A study answered as a command line asks for it: its points read, simulated, kept in --out,
// printed. Knows no verb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/output/folder.hpp"
#include "sim/output/study_run.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

struct StudyRequest {
  TomlValue document;
  std::vector<std::string> options;  // that change answers: "ignore-memory"
  std::optional<OutputRequest> output{};
  Shard shard{};
  NextPoint next{};      // instead of the points of `shard`
  bool merges = false;   // takes the rows that are there, and runs none
  unsigned threads = 0;  // 0: as the arguments say
  bool quiet = false;    // of a part: neither progress nor what became of it

  bool is_part() const { return output && !output->part.empty(); }
};

/// What the arguments ask of this document.
StudyRequest request_of(TomlValue document, const Arguments& arguments);

/// Returns the exit code.
int answer_study(StudyRequest request, const Verb& verb, const Arguments& arguments,
                 const Catalogue& catalogue);

/// Of a step and of its sweeps: options that set keys of a scenario, and the others.
const std::vector<Option>& run_options();

}  // namespace stepcast::sim
