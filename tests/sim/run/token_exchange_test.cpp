// A token exchange in a step: bound to links and to the SMs that it holds, beside other traffic.
#include <catch2/catch.hpp>

#include "engine/run.hpp"
#include "sim/network/nccl/network.hpp"
#include "sim/run/step_transfers.hpp"
#include "tests/session.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using workloads::CollectiveKind;
using workloads::GroupKind;

namespace {

constexpr std::uint8_t exchange_lane = 1, gather_lane = 2;

/// On 4 DGX H100: ranks of a pair of nodes exchange tokens (their group takes the place of experts'
/// ranks), and each gathers with its like of the other pair, over the same NICs.
struct TwoGroups {
  TwoGroups()
      : cluster(topology::Cluster::build(catalogue().node(toml_text("dgx-h100", "test")), 4,
                                         catalogue().fabric(toml_text("rail-optimized", "test")))),
        router(cluster),
        network(cluster, router, catalogue().nccl("2.28")),
        layouts(cluster, network) {
    plan.tensor = 16;
    plan.data_degree = 2;
    workloads::Collective exchange =
        plain_collective(CollectiveKind::all_to_all, Bytes(std::int64_t{4096} * 8 * 14336));
    exchange.group = GroupKind::tensor;
    exchange.tokens = {.dispatcher = workloads::Dispatcher::node_aware,
                       .combine = true,
                       .tokens = 4096,
                       .row_bytes = 14336,
                       .experts = 256,
                       .per_token = 8};
    workloads::Collective gather = plain_collective(CollectiveKind::all_gather, Bytes(1 << 28));
    gather.group = GroupKind::data;
    program.collectives = {exchange, gather};
  }

  /// When all is over, with one or both of the collectives, and what the exchange takes alone.
  std::pair<Duration, Duration> end(bool with_exchange, bool with_gather) {
    engine::ProgramBuilder lanes(3);
    if (with_exchange) lanes.join(exchange_lane, workloads::slot_of(GroupKind::tensor), 0, 0);
    if (with_gather) lanes.join(gather_lane, workloads::slot_of(GroupKind::data), 1, 0);
    if (with_exchange) lanes.wait(0, lanes.record(exchange_lane));
    if (with_gather) lanes.wait(0, lanes.record(gather_lane));
    program.roles = {lanes.take()};
    const auto layout = layouts.of(layout_key(plan, program));
    StepTransfers transfers(program, *layout, network);
    transfers.wait_for_sms(wait);
    exchange_time = transfers.time_of(0);
    classes = transfers.class_loads();
    engine::System system = layout->groups();
    system.roles = program.roles;
    system.host_costs = {Duration{}};
    system.stretch.assign(engine::num_states, 1.0);
    transfers.put_on(system, calls_of(program));
    return {engine::run(system, {.cold = true}).step, transfers.time_of(0).duration};
  }

  topology::Cluster cluster;
  topology::StaticRouter router;
  NcclNetwork network;
  Layouts layouts;
  workloads::ParallelPlan plan;
  workloads::StepProgram program;
  CollectiveTime exchange_time;
  ClassLoads classes{};
  Duration wait{};
};

}  // namespace

TEST_CASE("an exchange alone takes its own time and holds its library's SMs") {
  TwoGroups groups;
  const auto [end, alone] = groups.end(true, false);
  CHECK(seconds(end) == Approx(seconds(alone)).epsilon(1e-6));
  CHECK(groups.exchange_time.algorithm == Algorithm::node_aware);
  std::int64_t most = 0;
  for (const ClassLoad& load : groups.classes) most = std::max(most, load.ctas);
  CHECK(groups.exchange_time.ctas == 20);
  CHECK(most >= 20);
}

TEST_CASE("beside a gather over the same NICs both take longer than the longer one alone") {
  TwoGroups groups;
  const Duration exchange = groups.end(true, false).first, gather = groups.end(false, true).first;
  const Duration both = groups.end(true, true).first;
  CHECK(both > std::max(exchange, gather));
  CHECK(both <= exchange + gather);
}

TEST_CASE(
    "an exchange launched under kernels begins when they leave their SMs, an apart one at once") {
  TwoGroups groups;
  const Duration alone = groups.end(true, false).first;
  groups.wait = std::chrono::microseconds(100);
  CHECK(groups.end(true, false).first == alone);
  groups.program.collectives[0].beside = true;
  CHECK(seconds(groups.end(true, false).first) == Approx(seconds(alone) + 1e-4).epsilon(1e-6));
}
