#include "sim/told/text.hpp"

#include <catch2/catch.hpp>

namespace stepcast::sim {

TEST_CASE("the line of a plan names every degree") {
  Scenario s;
  s.global_batch = 8;
  s.plan.data_degree = 8;
  s.batch = {.micro_batch = 1, .micro_batches = 1, .sequence = 4096};
  const auto line = [&] { return plan_text(s).substr(0, plan_text(s).find(';')); };
  s.plan.data = workloads::DataParallel::zero1;
  s.plan.sequence_parallel = true;  // of one tensor rank nothing
  CHECK(line() == "zero1 8 x tensor 1 x pipeline 1");
  s.plan.context = 2;
  s.plan.tensor = 4;
  s.plan.pipeline = 2;
  s.plan.virtual_stages = 3;
  CHECK(line() ==
        "zero1 8 x context 2 x tensor 4 (sequence parallel) x pipeline 2 (1f1b, 3 chunks a stage)");
  s.plan.virtual_stages = 1;
  s.plan.expert.degree = 16;
  CHECK(line() ==
        "zero1 8 x context 2 x tensor 4 (sequence parallel) x pipeline 2 (1f1b), experts over 16");
  s.plan.expert.tensor = 2;
  CHECK(line().ends_with(", experts over 16 x tensor 2"));
}

}  // namespace stepcast::sim
