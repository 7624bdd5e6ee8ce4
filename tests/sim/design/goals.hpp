// Small goals for tests, with their machines.
#pragma once

#include <string>
#include <vector>

#include "sim/design/plan_finder.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/search/bases.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {

/// llama2-1b on machines of which `design` says the nodes; plans of few knobs.
inline DesignGoal small_goal(const std::string& design, const std::string& more = "") {
  return read_design_goal(
      read_toml("[design]\n" + design +
                    "\n[model]\nname = \"llama2-1b\"\nsequence = 2048\n[batch]\nglobal = 64\n"
                    "[software]\nframework = \"megatron-core\"\n"
                    "[run_goal]\ntokens = \"20B\"\ntoday = \"2026-11-23\"\n[space]\n"
                    "\"plan.tensor\" = [1, 2]\n\"plan.context\" = [1]\n\"plan.pipeline\" = [1, 2]\n"
                    "\"plan.virtual_stages\" = [1]\n\"plan.recompute\" = [\"none\"]\n"
                    "\"batch.micro_batch\" = [1, 2]\n\"plan.prefetch\" = [1]\n" +
                    more,
                "goal.toml"));
}

struct SmallDesign {
  explicit SmallDesign(DesignGoal wanted)
      : goal(std::move(wanted)),
        parts(read_parts(catalogue(), goal.parts, "test")),
        machines(machines_of(goal, catalogue(), parts, search_bases)) {}

  DesignGoal goal;
  PartList parts;
  Machines machines;
  std::atomic<bool> stop{false};

  PlanFinder finder() { return plan_finder(goal, machines, session(), {}, stop); }
  Designer designer(PlanFinder find) {
    return Designer(machines, parts, peak_rules(goal, machines), std::move(find), stop);
  }
};

}  // namespace stepcast::sim
