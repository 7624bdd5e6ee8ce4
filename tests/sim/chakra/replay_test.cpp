#include "sim/chakra/replay.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/check.hpp"
#include "sim/chakra/export.hpp"
#include "sim/files/gzip.hpp"
#include "sim/files/protobuf.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/file.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

/// A folder that is gone with the test.
struct Folder {
  explicit Folder(const std::string& name) : path(tests::own_folder() / name) {
    fs::remove_all(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

Scenario exported_step(const std::string& plan) {
  const std::string text =
      "[model]\nname = \"llama2-1b\"\nlayers = 3\n[cluster]\nnode = \"dgx-h100\"\n[batch]\nlocal = "
      "4\nmicro_batch = 1\n[plan]\n";
  return read_scenario(read_toml(text + plan, "a.toml"), catalogue());
}

Scenario bare_cluster() {
  return read_scenario(
      read_toml("[cluster]\nnode = \"dgx-h100\"\n[collective]\nkind = \"all_reduce\"\nbytes = "
                "\"1 B\"\n",
                "b.toml"),
      catalogue());
}

void write_file(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string trace_of(const std::vector<EtNode>& nodes) {
  EtWriter out({});
  for (const EtNode& node : nodes) out.add(node);
  return out.text();
}

EtNode compute_node(std::uint64_t id, std::int64_t us, std::vector<std::uint64_t> deps = {}) {
  EtNode node;
  node.id = id;
  node.name = "c";
  node.type = EtType::compute;
  node.duration_us = us;
  node.data_deps = std::move(deps);
  return node;
}

EtNode reduce_node(std::uint64_t id, std::int64_t bytes, std::vector<std::uint64_t> deps = {}) {
  EtNode node = compute_node(id, 0, std::move(deps));
  node.type = EtType::collective;
  node.comm_type = static_cast<std::int64_t>(EtCollective::all_reduce);
  node.comm_size = bytes;
  return node;
}

Replay once(const Folder& folder) {
  return replay(read_trace(folder.path.string()), bare_cluster(), session(), true);
}

}  // namespace

TEST_CASE("a step that was exported is the same step when it is read back") {
  const std::string plans[] = {"data = \"ddp\"\n", "data = \"zero3\"\n",
                               "data = \"zero2\"\ntensor = 2\nsequence_parallel = true\n",
                               "data = \"ddp\"\ntensor = 2\npipeline = 2\n"};
  for (const std::string& plan : plans) {
    INFO(plan);
    const Scenario scenario = exported_step(plan);
    const StepReport report = session().step(scenario);
    Duration steps[2];
    for (const auto kind : {RankChoice::Kind::all, RankChoice::Kind::representatives}) {
      const Folder folder("stepcast_chakra_test");
      const ChakraExport written =
          export_trace(scenario, session(), folder.path.string(), {kind}, Bytes(1'000'000'000));
      const bool all = kind == RankChoice::Kind::all;
      CHECK((all ? written.files == 8 : written.files < 8));
      const Replay back =
          replay(read_trace(folder.path.string()), bare_cluster(), session(), false);
      CHECK(back.ranks == 8);
      CHECK(back.recorded == report.step_time);
      CHECK(back.mean.total() == back.step);
      // A microsecond a node on the longest chain would be some hundreds; the rounding is carried.
      CHECK(seconds(back.step) == Approx(seconds(report.step_time)).epsilon(0.005));
      // Copies on a lane of their own count as compute where they are waited for.
      CHECK(seconds(back.mean.compute) == Approx(seconds(report.compute)).epsilon(0.02));
      steps[all ? 0 : 1] = back.step;
    }
    CHECK(steps[0] == steps[1]);
  }
}

TEST_CASE("rounding to microseconds keeps the sum of every lane") {
  const Scenario scenario = exported_step("data = \"zero3\"\n");
  const Folder folder("stepcast_chakra_sum_test");
  export_trace(scenario, session(), folder.path.string(), {RankChoice::Kind::representatives},
               Bytes(1'000'000'000));
  Timeline timeline;
  session().timeline(scenario, timeline);
  std::map<std::string, double> exact, rounded;
  for (const TimelineEvent& e : timeline.events)
    if (e.rank == 0) exact[std::to_string(e.lane)] += seconds(e.duration - e.waited) * 1e6;
  const EtFile file = read_et(folder / "step.0.et");
  CHECK(file.facts.at("stands_for") == "0-7");
  for (const EtNode& n : file.nodes)
    if (!n.is_cpu_op) rounded[n.stream] += static_cast<double>(n.duration_us);
  REQUIRE(exact.size() == rounded.size());
  for (const auto& [lane, us] : exact) CHECK(std::abs(rounded[lane] - us) <= 0.51);
}

TEST_CASE("compute and a collective of two ranks take what their chain takes") {
  const Folder folder("stepcast_chakra_chain_test");
  // Rank 0 computes 30 us, rank 1 100 us; then they reduce; rank 0 computes 50 us more.
  write_file(folder / "t.0.et", trace_of({compute_node(1, 30), reduce_node(2, 1 << 20, {1}),
                                          compute_node(3, 50, {2})}));
  write_file(folder / "t.1.et", trace_of({compute_node(1, 100), reduce_node(2, 1 << 20, {1})}));
  const Replay found = once(folder);
  const auto network = session().network(bare_cluster());
  const CollectiveTime reduce = network->model->time_of(
      plain_collective(workloads::CollectiveKind::all_reduce, Bytes(1 << 20)),
      shape_of(network->cluster(), {0, 1}));
  CHECK(std::abs((found.step - 150_us - reduce.duration).count()) <= 2);
  CHECK(found.slowest_rank == 1);
  CHECK(found.slowest == 100_us);
}

TEST_CASE("a trace without durations is timed by the roofline, with a warning") {
  const Folder folder("stepcast_chakra_roofline_test");
  EtNode work = compute_node(1, 0), copy = compute_node(2, 0, {1});
  work.num_ops = 1'000'000'000'000;
  copy.num_ops = 1;
  copy.tensor_size = 1'000'000'000;
  write_file(folder / "t.0.et", trace_of({work, copy}));
  const Replay found = once(folder);
  const topology::GpuSpec& gpu = bare_cluster().node.gpu;
  CHECK(seconds(found.step) ==
        Approx(1e12 / gpu.tensor_peak.value + 1e9 / gpu.memory_bandwidth.value).epsilon(1e-6));
  REQUIRE(!found.warnings.empty());
  CHECK_THAT(found.warnings.front(), Catch::Contains("2 nodes have no duration"));
}

TEST_CASE("what cannot be run is refused with the file and the node") {
  const Folder folder("stepcast_chakra_refused_test");
  const auto refuses = [&](const std::string& words) {
    INFO(words);
    CHECK_THROWS_WITH(once(folder), Catch::Contains("t.0.et") && Catch::Contains(words));
  };
  const std::string path = folder / "t.0.et";
  const std::string whole = trace_of({compute_node(1, 5), compute_node(2, 5, {1})});
  write_file(path, whole.substr(0, whole.size() - 3));
  refuses("ends in the middle of a message");
  write_file(path,
             trace_of({compute_node(1, 5, {3}), compute_node(2, 5, {1}), compute_node(3, 5, {2})}));
  refuses("a cycle of 3 nodes");
  write_file(path, trace_of({compute_node(1, 5, {9})}));
  refuses("waits for node 9, which is not there");
  EtNode strange = compute_node(4, 5);
  strange.type = static_cast<EtType>(9);
  write_file(path, trace_of({strange}));
  refuses("node 4 \"c\" is of type 9, which is not read");
  write_file(path, trace_of({compute_node(4, 5), compute_node(4, 5)}));
  refuses("two nodes 4");
  EtNode gather = reduce_node(1, 8);
  gather.comm_type = static_cast<std::int64_t>(EtCollective::gather);
  write_file(path, trace_of({gather}));
  refuses("NCCL has no such collective");
  EtNode grouped = reduce_node(1, 8);
  grouped.pg_name = "5";
  write_file(path, trace_of({grouped}));
  refuses("comm_group.json does not list its ranks");
}

TEST_CASE("ranks that do not agree are refused, not run") {
  const Folder folder("stepcast_chakra_agree_test");
  write_file(folder / "t.0.et", trace_of({reduce_node(1, 1024)}));
  write_file(folder / "t.1.et", trace_of({reduce_node(1, 2048)}));
  CHECK_THROWS_WITH(once(folder), Catch::Contains("all_reduce of 2048 B") &&
                                      Catch::Contains("all_reduce of 1024 B"));
  write_file(folder / "t.1.et", trace_of({compute_node(1, 5)}));
  CHECK_THROWS_WITH(once(folder), Catch::Contains("rank 1 never meets rank 0"));
  EtNode send = reduce_node(1, 1024), receive = reduce_node(1, 1024);
  send.type = EtType::send;
  send.comm_dst = 1;
  receive.type = EtType::receive;
  receive.comm_src = 0;
  write_file(folder / "t.0.et", trace_of({send}));
  write_file(folder / "t.1.et", trace_of({receive}));
  CHECK(once(folder).step > Duration{});
  fs::rename(folder / "t.1.et", folder / "t.2.et");
  CHECK_THROWS_WITH(once(folder), Catch::Contains("has no trace of rank 1"));
}

TEST_CASE("groups stand in the metadata of PyTorch's traces, files may be packed") {
  const Folder folder("stepcast_chakra_pytorch_test");
  ProtoWriter info, metadata, stream;
  info.bytes(1, R"([{"pg_name": "7", "ranks": [0, 1], "backend_config": "cuda:nccl"}])");
  metadata.varint(1, 100);
  metadata.bytes(2, "## process_group:init ##");
  metadata.number(3, static_cast<std::int64_t>(EtType::metadata));
  metadata.message(8, info);
  stream.delimited(metadata.text());
  EtNode reduce = reduce_node(2, 1 << 20);
  reduce.pg_name = "7";
  const std::string text = trace_of({reduce}) + stream.text();
  write_file(folder / "t.0.et.gz", gzip(text));
  write_file(folder / "t.1.et.gz", gzip(text));
  CHECK(read_trace(folder.path.string()).groups.at("7") == std::vector<std::int64_t>{0, 1});
  CHECK(once(folder).step > Duration{});
}

TEST_CASE("numbers and their ranges") {
  CHECK(number_list({0, 1, 2, 3, 8, 10, 11}) == "0-3,8,10-11");
  CHECK(numbers_in("0-3,8,10-11", "x") == std::vector<std::int64_t>{0, 1, 2, 3, 8, 10, 11});
  CHECK_THROWS_AS(numbers_in("3-1", "x"), InputError);
}

}  // namespace stepcast::sim
