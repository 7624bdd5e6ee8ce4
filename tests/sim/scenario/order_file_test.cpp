#include "sim/scenario/order_file.hpp"

#include <catch2/catch.hpp>

#include "engine/check.hpp"
#include "workloads/plan/pipeline.hpp"

namespace stepcast::sim {
namespace {

using workloads::Pass;
using workloads::Placement;
using workloads::Schedule;
using workloads::Turn;

/// What a file with this text is refused for.
std::string refusal(const std::string& text) {
  try {
    parse_orders("o.csv", text);
  } catch (const InputError& error) {
    return error.where() + ": " + error.problem();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an order is read as torch's pipelining writes it") {
  const auto orders = parse_orders("o.csv", "0F0,0F1,,0B0,,0B1\r\n,1F0,1I0,1F1,1I1,1W0,1W1\n");
  CHECK(orders.placement == Placement::looped);
  CHECK(orders.chunks == 1);
  CHECK(orders.micro_batches == 2);
  CHECK(orders.stages[0] ==
        std::vector<Turn>{
            {Pass::forward, 0}, {Pass::forward, 1}, {Pass::backward, 0}, {Pass::backward, 1}});
  CHECK(orders.stages[1][1] == Turn{Pass::input_gradient, 0});
  CHECK(orders.stages[1][4] == Turn{Pass::weight_gradient, 0});
  const auto pair = parse_orders("o.csv", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  CHECK(pair.stages[0][1].paired);
  CHECK(pair.stages[0][2] == Turn{Pass::backward, 0});
}

TEST_CASE("parts lie in loops or folded, as the rows say") {
  const auto loop = parse_orders("o.csv", "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n");
  CHECK(loop.placement == Placement::looped);
  CHECK(loop.chunks == 2);
  const auto fold = parse_orders("o.csv", "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  CHECK(fold.placement == Placement::folded);
  CHECK(fold.stages[1][1].chunk == 1);
  CHECK(refusal("0F0,2F0,2B0,0B0\n3F0,1F0,3B0,1B0\n0F1\n") ==
        "o.csv:1: 4 parts of the model on 3 ranks");
  CHECK(refusal("1F0,1B0\n0F0,0B0\n") == "o.csv:1: part 1 of the model on rank 0");
}

TEST_CASE("what is no order is refused with its line and cell") {
  CHECK(refusal("") == "o.csv: has no turns");
  CHECK(refusal("0F0,0X0\n") == "o.csv:1: cell 2 '0X0' is no turn");
  CHECK(refusal("0F0,0B\n") == "o.csv:1: cell 2 '0B' is no turn");
  CHECK(refusal("0F0,0F9999999999999\n") == "o.csv:1: cell 2 '0F9999999999999' is no turn");
  CHECK(refusal("0F0,0SEND_F0\n") == "o.csv:1: cell 2 '0SEND_F0' is no turn");
  CHECK(refusal("(0F0)OVERLAP_F_B\n") == "o.csv:1: cell 1 '(0F0)OVERLAP_F_B' is no pair");
  CHECK(refusal("(0B0;0F0)OVERLAP_F_B\n") == "o.csv:1: cell 1 '(0B0;0F0)OVERLAP_F_B' is no pair");
  CHECK(refusal("0F0,0B0,0F1\n") == "o.csv:1: rank 0: 0B1 is missing");
  CHECK(refusal("0F0,0I0\n") == "o.csv:1: rank 0: 0W0 is missing");
  CHECK(refusal("0F0,0B0\n1F0,1B0,1B0\n") ==
        "o.csv:2: rank 1, cell 3: 1B0 computes what was computed before");
  CHECK(refusal("0F0,0W0,0I0\n") == "o.csv:1: rank 0, cell 2: 0W0 stands before 0I0");
  CHECK(refusal("0B0,0F0\n") == "o.csv:1: rank 0, cell 1: 0B0 stands before 0F0");
  // Each has what the other waits for behind what it waits for itself.
  CHECK(refusal("0F0,0B0,0F1,0B1\n\n1F0,1F1,1B0,1B1\n") ==
        "o.csv:1: rank 0, cell 2: 0B0 waits for ever for 1B0");
}

TEST_CASE("orders that are built in are written and read back, and none waits for ever") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zb_h1,
                                  Schedule::zb_h2, Schedule::zb_v, Schedule::dualpipe_v}) {
    const Placement placement = workloads::placement_of(schedule, {});
    for (const std::int64_t stages : {2, 4, 8})
      for (const std::int64_t micro_batches : {2 * stages, 2 * stages + 3}) {
        workloads::ListedOrders orders{
            "o.csv", placement, placement == Placement::looped ? 1 : 2, micro_batches, {}};
        for (std::int64_t stage = 0; stage < stages; ++stage)
          orders.stages.push_back(workloads::turns_of_stage({.schedule = schedule,
                                                             .stages = stages,
                                                             .micro_batches = micro_batches,
                                                             .chunks = orders.chunks},
                                                            stage));
        CHECK(parse_orders("o.csv", write_orders(orders)) == orders);
      }
  }
}

}  // namespace stepcast::sim
