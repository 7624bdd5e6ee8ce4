// Shapes of what people paste into public threads (tests/validate/diagnose/threads, written anew),
// against the table of docs/diagnose.md: which of them a scenario follows from, unedited.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/check.hpp"
#include "sim/files/names.hpp"
#include "sim/scenario/file.hpp"
#include "sim/scripts/text_pieces.hpp"
#include "tests/session.hpp"
#include "validate/diagnose/files.hpp"

using namespace stepcast;
using namespace stepcast::validate;

namespace {

struct Row {
  std::string number, thread, holds, scenario;
};

/// "| 7 | owner/name#12 | a command line | llama3-8b on ... |"
std::vector<Row> rows() {
  std::ifstream file(STEPCAST_SOURCE_DIR "/docs/diagnose.md");
  std::vector<Row> out;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, '|');) cells.emplace_back(sim::bare(cell));
    const bool ours = cells.size() == 5 && cells[2].find('#') != std::string::npos;
    if (ours) out.push_back({cells[1], cells[2], cells[3], cells[4]});
  }
  return out;
}

/// What follows from a file: "llama3-8b on 8 x h100-sxm5-80gb, zero3, 64 x 4096", or why nothing.
std::string scenario_of(const std::string& path) {
  try {
    const DiagnoseInputs inputs = read_diagnose_files({path}, catalogue());
    const sim::Scenario s =
        sim::read_scenario(document_of(inputs.run.facts, {}, catalogue()), catalogue());
    return fmt::format("{} on {} x {}, {}, {} x {}", s.model.name, s.gpus, s.node.gpu.name,
                       sim::word_for(sim::data_parallel_names, s.plan.data), s.global_batch,
                       s.batch.sequence);
  } catch (const InputError& error) {
    return fmt::format("no: {}", error.what());
  }
}

}  // namespace

TEST_CASE("a scenario follows unedited from 34 of forty threads") {
  const std::vector<Row> all = rows();
  REQUIRE(all.size() == 40);
  std::set<std::string> threads;
  int follow = 0;
  for (const Row& row : all) {
    INFO(row.number << " " << row.thread);
    CHECK(threads.insert(row.thread).second);
    const std::string found = scenario_of(fmt::format(
        "{}/tests/validate/diagnose/threads/{:0>2}.md", STEPCAST_SOURCE_DIR, row.number));
    const std::string no = "no: ";
    if (row.scenario.starts_with(no)) {
      // "no: cluster.node (the GPU is not in the catalogue)": the first is what the message says.
      const std::string missing = row.scenario.substr(
          no.size(), std::min(row.scenario.find(" ("), row.scenario.size()) - no.size());
      INFO(found);
      CHECK(found.starts_with(no));
      CHECK(found.find(missing) != std::string::npos);
    } else {
      CHECK(found == row.scenario);
      ++follow;
    }
  }
  CHECK(follow == 34);
}
