// How collectives at the same time share the fabric: loads on a cluster's own links, put through
// the event loop as a training step's are, against closed forms.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>

#include "collective_rows.hpp"
#include "engine/run.hpp"
#include "sim/files/toml_value.hpp"
#include "sim/network/links/loads.hpp"
#include "sim/network/links/picture.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/session.hpp"
#include "tests/topology/machines.hpp"
#include "topology/router.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using engine::Traffic;
using topology::FabricSpec;
using topology::Routing;
using workloads::CollectiveKind;

namespace {

using Ranks = std::vector<std::int64_t>;
constexpr auto AG = CollectiveKind::all_gather;
constexpr auto SR = CollectiveKind::send_receive;

struct Job {
  CollectiveKind kind{};
  Ranks ranks;
  double flow_bytes = 0.0;  // over the busiest NIC
};

/// Collectives that start together on H100 nodes (NICs of 50 GB/s), each as fast as its NICs allow.
class Machine {
 public:
  Machine(std::int64_t nodes, const FabricSpec& fabric)
      : cluster_(topology::Cluster::build(dgx(topology::NcclGeneration::hopper), nodes, fabric)),
        router_(cluster_),
        loads_(cluster_, router_) {}

  const topology::Cluster& cluster() const { return cluster_; }
  const topology::StaticRouter& router() const { return router_; }

  /// When each job ends. A GPU takes part in at most one ring and one message.
  std::vector<Duration> ends(const std::vector<Job>& jobs) const {
    const engine::RunResult result = engine::run(system_of(jobs), {.cold = true});
    std::vector<Duration> out;
    for (const Job& job : jobs)
      out.push_back(result.ranks[static_cast<std::size_t>(job.ranks.front())]
                        .communication[static_cast<std::size_t>(traffic_of(job))]);
    return out;
  }
  Duration end(const Job& job) const { return ends({job}).front(); }

 private:
  static Traffic traffic_of(const Job& job) {
    return job.kind == SR ? Traffic::pipeline : Traffic::data;
  }

  /// A message here is one queue pair's, so that a hash sends all of it one way.
  std::vector<LinkLoad> loads_of(const Job& job) const {
    if (job.kind != SR) return loads_.of({job.kind, Algorithm::ring}, job.ranks);
    std::vector<topology::LinkShare> shares;
    router_.append_shares(cluster_.gpu(job.ranks[0]), cluster_.gpu(job.ranks[1]), 0, shares);
    std::vector<LinkLoad> loads;
    for (const topology::LinkShare& s : shares) loads.push_back({s.link, s.share});
    return loads;
  }

  engine::System system_of(const std::vector<Job>& jobs) const {
    engine::System s;
    const auto ranks = static_cast<std::size_t>(cluster_.num_gpus());
    s.host_costs = {Duration{}};
    s.stretch.assign(engine::num_states, 1.0);
    s.communicator_of.assign(2, std::vector<std::uint32_t>(ranks, engine::no_communicator));
    s.num_patterns = static_cast<std::uint32_t>(jobs.size());
    s.transfers.resize(2 * jobs.size());
    std::vector<std::vector<LinkLoad>> loads_of_job;
    for (std::uint32_t j = 0; j < jobs.size(); ++j) {
      const std::uint32_t slot = jobs[j].kind == SR ? 1 : 0;
      engine::Communicator communicator{.members = {}, .pattern = j, .loads = {}};
      for (const std::int64_t r : jobs[j].ranks) {
        communicator.members.push_back(static_cast<std::uint32_t>(r));
        s.communicator_of[slot][static_cast<std::size_t>(r)] = j;
      }
      s.communicators.push_back(std::move(communicator));
      s.transfers[slot * jobs.size() + j] = {jobs[j].flow_bytes, cluster_.node().nic,
                                             traffic_of(jobs[j]), 0};
      auto loads = loads_of(jobs[j]);
      const double unit = busiest_end(cluster_, loads);
      for (LinkLoad& load : loads) load.bytes_per_byte /= unit;
      loads_of_job.push_back(std::move(loads));
    }
    const std::vector<double> fastest(jobs.size(), cluster_.node().nic.value);
    LinkPicture(cluster_, loads_of_job).put_on(s, fastest);
    add_roles(s);
    return s;
  }

  /// Lane 1 for rings, lane 2 for messages; a role for each mixture.
  static void add_roles(engine::System& s) {
    for (std::uint32_t role = 0; role < 4; ++role) {
      engine::ProgramBuilder program(3);
      for (std::uint8_t slot = 0; slot < 2; ++slot)
        if (role >> slot & 1U) program.join(static_cast<std::uint8_t>(slot + 1), slot, slot, 0);
      for (std::uint8_t slot = 0; slot < 2; ++slot)
        if (role >> slot & 1U) program.wait(0, program.record(static_cast<std::uint8_t>(slot + 1)));
      s.roles.push_back(program.take());
    }
    for (std::size_t r = 0; r < s.communicator_of[0].size(); ++r) {
      std::uint32_t role = 0;
      for (std::uint32_t slot = 0; slot < 2; ++slot)
        if (s.communicator_of[slot][r] != engine::no_communicator) role |= 1U << slot;
      s.role_of_rank.push_back(role);
    }
  }

  topology::Cluster cluster_;
  topology::StaticRouter router_;
  LinkLoads loads_;
};

FabricSpec rails(Routing routing = Routing::destination, std::int64_t seed = 1) {
  FabricSpec fabric = topology::rail_optimized();
  fabric.routing = routing;
  fabric.ecmp_seed = seed;
  return fabric;
}

/// GPU `gpu` of nodes first, first + stride, ...
Ranks on_nodes(std::int64_t first, std::int64_t stride, std::int64_t count, std::int64_t gpu = 0) {
  Ranks ranks;
  for (std::int64_t i = 0; i < count; ++i) ranks.push_back(8 * (first + i * stride) + gpu);
  return ranks;
}

Ranks whole_nodes(std::int64_t first, std::int64_t count) {
  Ranks ranks(static_cast<std::size_t>(8 * count));
  std::iota(ranks.begin(), ranks.end(), 8 * first);
  return ranks;
}

bool near(Duration a, Duration b) {
  return std::abs(seconds(a) - seconds(b)) <= 2e-9 * seconds(b);  // of the weights' fixed point
}

}  // namespace

TEST_CASE("a data-parallel ring and a pipeline message on one NIC each get half of it") {
  const Machine m(4, rails());
  const Job ring{AG, on_nodes(0, 1, 4), 3e9}, message{SR, {0, 8}, 1e9};
  CHECK(near(m.end(ring), 60_ms));
  CHECK(near(m.end(message), 20_ms));
  // 25 GB/s each: the message takes 40 ms; the ring's other 2 GB then take 40 ms at 50.
  const auto both = m.ends({ring, message});
  CHECK(near(both[0], 80_ms));
  CHECK(near(both[1], 40_ms));
}

TEST_CASE("a ring over all rails yields half of one NIC and waits for its slowest rail") {
  const Machine m(4, rails());
  const Job ring{AG, whole_nodes(0, 4), 3e9};
  const auto slowed = m.ends({ring, {SR, {0, 8}, 1e9}});
  CHECK(near(slowed[0], 80_ms));
  CHECK(near(slowed[1], 40_ms));
  // A second message on another rail costs the ring nothing more.
  const auto twice = m.ends({ring, {SR, {0, 8}, 1e9}, {SR, {3, 11}, 1e9}});
  CHECK(near(twice[0], 80_ms));
  CHECK(near(twice[2], 40_ms));
}

TEST_CASE("a cable of half a NIC's rate takes twice as long, a wider one no less") {
  for (const auto& [link, expected] :
       {std::pair{BytesPerSecond(25e9), 40_ms}, {BytesPerSecond(100e9), 20_ms}}) {
    FabricSpec fabric = rails();
    fabric.link = link;
    CHECK(near(Machine(4, fabric).ends({{SR, {0, 8}, 1e9}})[0], expected));
  }
}

TEST_CASE("messages in opposite directions do not share a cable") {
  const Machine m(2, rails());
  for (const Duration end : m.ends({{SR, {0, 8}, 1e9}, {SR, {9, 1}, 1e9}})) CHECK(near(end, 20_ms));
  CHECK(near(m.ends({{SR, {0, 8}, 1e9}, {AG, {8, 0}, 1e9}})[0], 40_ms));  // a ring goes both ways
}

TEST_CASE("rings on different rails or on different nodes do not notice each other") {
  const Machine m(8, rails());
  const Job first{AG, on_nodes(0, 1, 8, 2), 1e9};
  const Duration alone = m.end(first);
  const auto rail = m.ends({first, {AG, on_nodes(0, 1, 8, 5), 7e9}});
  CHECK(rail[0] == alone);
  CHECK(near(rail[1], 140_ms));
  const Job left{AG, whole_nodes(0, 4), 1e9};
  CHECK(m.ends({left, {AG, whole_nodes(4, 4), 7e9}})[0] == m.end(left));
}

TEST_CASE("at 4:1 rings across leaves get a quarter when all do so, all of it when one does") {
  // 40 ports: 32 nodes under a leaf with 8 uplinks. Ring g joins node g of the 4 units.
  for (const Routing routing : {Routing::destination, Routing::spray})
    for (const double k : {1.0, 4.0}) {
      FabricSpec fabric = rails(routing);
      fabric.ports = k == 4.0 ? 40 : 64;
      fabric.oversubscription = k;
      const Machine m(128, fabric);
      REQUIRE(m.cluster().nodes_per_unit() == 32);
      std::vector<Job> jobs;
      for (std::int64_t g = 0; g < 32; ++g) jobs.push_back({AG, on_nodes(g, 32, 4), 1e9});
      for (const Duration end : m.ends(jobs)) CHECK(near(end, to_duration(0.02 * k)));
      CHECK(near(m.end(jobs.front()), 20_ms));
      // A ring inside one leaf has the other rail's NICs and no uplink.
      jobs.push_back({AG, on_nodes(0, 1, 32, 1), 1e9});
      CHECK(near(m.ends(jobs).back(), 20_ms));
    }
}

TEST_CASE("one collective that overloads an uplink with its own flows is slower alone") {
  // Plain fat tree at 4:1, one node under a leaf: 8 rails of a ring over 2 uplinks.
  FabricSpec fabric = topology::fat_tree();
  fabric.routing = Routing::spray;
  fabric.ports = 10;
  fabric.oversubscription = 4;
  const Machine m(4, fabric);
  REQUIRE(m.cluster().nodes_per_unit() == 1);
  CHECK(near(m.end({AG, whole_nodes(0, 4), 1e9}), 80_ms));
}

TEST_CASE("two hashed flows on one cable get half each; other seeds keep them apart") {
  const Job first{SR, {0, 8 * 40}, 1e9}, second{SR, {8, 8 * 41}, 1e9};
  int met = 0, apart = 0;
  for (std::int64_t seed = 1; seed <= 200 && (met == 0 || apart == 0); ++seed) {
    const Machine m(64, rails(Routing::ecmp, seed));
    const auto way = [&](const Job& job) {
      return m.router().path(m.cluster().gpu(job.ranks[0]), m.cluster().gpu(job.ranks[1]), 0);
    };
    const topology::Path a = way(first), b = way(second);
    const bool meet = std::any_of(a.begin(), a.end(), [&](topology::LinkId link) {
      return std::find(b.begin(), b.end(), link) != b.end();
    });
    ++(meet ? met : apart);
    for (const Duration end : m.ends({first, second})) CHECK(near(end, meet ? 40_ms : 20_ms));
  }
  CHECK(met > 0);
  CHECK(apart > 0);
}

TEST_CASE("a leaf that sends to another leaf takes as long as its fullest cable has flows") {
  for (std::int64_t seed = 1; seed <= 5; ++seed) {
    std::vector<Job> jobs;
    for (std::int64_t n = 0; n < 32; ++n) jobs.push_back({SR, {8 * n, 8 * (n + 32)}, 1e9});
    const Machine hashed(64, rails(Routing::ecmp, seed));
    std::map<topology::LinkId, std::int64_t> flows;
    std::int64_t fullest = 0;
    for (const Job& job : jobs)
      for (const topology::LinkId link : hashed.router().path(
               hashed.cluster().gpu(job.ranks[0]), hashed.cluster().gpu(job.ranks[1]), 0))
        fullest = std::max(fullest, ++flows[link]);
    CHECK(fullest > 1);
    const auto slowest = [&](const Machine& m) {
      const auto ends = m.ends(jobs);
      return *std::max_element(ends.begin(), ends.end());
    };
    CHECK(near(slowest(hashed), fullest * 20_ms));
    CHECK(slowest(hashed) == slowest(Machine(64, rails(Routing::ecmp, seed))));
    CHECK(near(slowest(Machine(64, rails(Routing::spray))), 20_ms));
    CHECK(near(slowest(Machine(64, rails())), 20_ms));
  }
}

TEST_CASE("messages to another rail meet on the way through the spine") {
  // 32 nodes at 4:1 (40 ports), all under the same leaves: rail 0 to rail 1 shares 8 uplinks, rail
  // 0 to rail 0 crosses none.
  FabricSpec fabric = rails(Routing::spray);
  fabric.ports = 40;
  fabric.oversubscription = 4;
  fabric.tiers = 2;
  const Machine m(32, fabric);
  std::vector<Job> same, cross;
  for (std::int64_t n = 0; n < 32; ++n) {
    const std::int64_t to = 8 * ((n + 1) % 32);
    same.push_back({SR, {8 * n, to}, 1e9});
    cross.push_back({SR, {8 * n, to + 1}, 1e9});
  }
  // In pairs of nodes, so that a GPU is in one message only.
  const auto every_other = [](std::vector<Job> jobs) {
    std::vector<Job> out;
    for (std::size_t i = 0; i < jobs.size(); i += 2) out.push_back(jobs[i]);
    return out;
  };
  for (const Duration end : m.ends(every_other(same))) CHECK(near(end, 20_ms));
  for (const Duration end : m.ends(every_other(cross))) CHECK(near(end, 40_ms));  // 16 on 8
}

TEST_CASE("removing a collective never slows those that met it") {
  const Machine m(9, rails());
  const auto ring = [](std::int64_t first, std::int64_t count, double bytes) {
    return Job{AG, on_nodes(first, 1, count), bytes};
  };
  // a and b share a NIC of node 0, b and c one of node 2. With a, b has half of node 0's NIC, and c
  // half of node 2's; b cannot use more when a is gone, as c still has its half.
  const Job a = ring(0, 2, 1e9), b{SR, {0, 16}, 1e9}, c = ring(2, 2, 4e9);
  const auto all = m.ends({a, b, c}), without = m.ends({b, c});
  CHECK(without[0] <= all[1]);
  CHECK(without[1] <= all[2]);
  CHECK(m.ends({a, b})[0] <= all[0]);
  // What one leaves, max-min gives to others, who may then take from a third elsewhere; here, where
  // a rail's ring meets only its own message, nobody is a third.
  const auto slowest = [](const std::vector<Duration>& ends) {
    return *std::max_element(ends.begin(), ends.end());
  };
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    std::vector<Job> jobs;
    for (std::int64_t gpu = 0; gpu < 4; ++gpu) {
      const auto first = static_cast<std::int64_t>(random() % 4);
      const auto count = static_cast<std::int64_t>(2 + random() % 4);
      jobs.push_back(
          {AG, on_nodes(first, 1, count, gpu), 1e9 * static_cast<double>(1 + random() % 5)});
      jobs.push_back({SR, {8 * first + gpu, 8 * (first + count) + gpu}, 1e9});
    }
    const Duration before = slowest(m.ends(jobs));
    jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(random() % jobs.size()));
    CHECK(slowest(m.ends(jobs)) <= before);
  }
}

TEST_CASE("on a whole step hashing is slower than spraying and than static routes") {
  const auto step = [](const std::string& plan, const std::string& fabric) {
    Scenario s = read_scenario(
        read_toml("[model]\nname = \"llama2-7b\"\nsequence = 4096\n[cluster]\nnode = \"dgx-h100\"\n"
                  "nodes = 64\nfabric = {name = \"rail-optimized\", " +
                      fabric + "}\n[plan]\n" + plan +
                      "\n[batch]\nglobal = 512\n[software]\nframework = \"pytorch-fsdp2\"\n",
                  "mix.toml"),
        catalogue());
    s.run.ignore_memory = true;
    return session().step(s).step_time;
  };
  const std::string mix = "tensor = 4\npipeline = 4\ndata = \"zero2\"";
  const Duration fixed = step(mix, "routing = \"destination\"");
  const Duration sprayed = step(mix, "routing = \"spray\"");
  const Duration hashed = step(mix, "routing = \"ecmp\", ecmp_seed = 1");
  CHECK(hashed > fixed);
  CHECK(hashed > sprayed);
  CHECK(seconds(sprayed) == Approx(seconds(fixed)).epsilon(1.0 / 1024));
  CHECK(hashed == step(mix, "routing = \"ecmp\", ecmp_seed = 1"));
  Duration other = hashed;  // a step shows only its worst collision: most seeds have one alike
  for (int seed = 2; seed < 20 && other == hashed; ++seed)
    other = step(mix, "routing = \"ecmp\", ecmp_seed = " + std::to_string(seed));
  CHECK(hashed != other);
  // Rails alone: a leaf sends one flow up, which meets none.
  const std::string rings = "data = \"zero2\"";
  const double rail_fixed = seconds(step(rings, "routing = \"destination\""));
  CHECK(seconds(step(rings, "routing = \"spray\"")) == Approx(rail_fixed).epsilon(1.0 / 1024));
  CHECK(seconds(step(rings, "routing = \"ecmp\"")) == Approx(rail_fixed).epsilon(1.0 / 1024));
}
