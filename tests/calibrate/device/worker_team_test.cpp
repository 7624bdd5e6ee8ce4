#include "calibrate/device/worker_team.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/device/device.hpp"
#include "engine/check.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;

namespace {

/// Workers that answer without a GPU.
const std::string echo_worker = STEPCAST_SOURCE_DIR "/tests/calibrate/fixtures/echo_worker.py";

TeamOptions echoes(std::int64_t gpus) {
  TeamOptions options{.gpus = gpus};
  options.program = echo_worker;
  options.start_seconds = 120;
  return options;
}

}  // namespace

TEST_CASE("every worker answers, in the order of ranks") {
  Nodes nodes(echoes(3));
  WorkerTeam team(nodes, {});
  CHECK(nodes.num_ranks() == 3);
  CHECK(team.ask("rank", 120) == std::vector<std::string>{"0 on 0", "1 on 1", "2 on 2"});
  CHECK(team.ask("say it twice", 120) == std::vector<std::string>(3, "it twice"));
}

TEST_CASE("a worker that refuses leaves the team whole, one that fails ends it") {
  Nodes nodes(echoes(2));
  {
    WorkerTeam team(nodes, {});
    CHECK_THROWS_WITH(team.ask("refuse 1", 120), "rank 1 will not");
    CHECK_THROWS_AS(team.ask("refuse 0", 120), Unsupported);
    CHECK(team.ask("rank", 120).size() == 2);
    CHECK_THROWS_WITH(team.ask("fail 1", 120), Catch::Contains("rank 1 is broken"));
    CHECK_THROWS_WITH(team.ask("rank", 120), Catch::Contains("have ended"));
  }
  WorkerTeam next(nodes, {});  // the place where they meet is still there
  CHECK(next.ask("rank", 120).size() == 2);
}

TEST_CASE("a worker that dies or says nothing does not hang the leader") {
  Nodes nodes(echoes(2));
  {
    WorkerTeam team(nodes, {});
    CHECK_THROWS_WITH(team.ask("die 0", 120), Catch::Contains("is gone"));
  }
  WorkerTeam team(nodes, {});
  CHECK_THROWS_WITH(team.ask("sleep 1", 0.3), Catch::Contains("no answer in time"));
}

TEST_CASE("a program that cannot be started is the user's to know") {
  TeamOptions options = echoes(2);
  options.program = "/nowhere/worker";
  Nodes nodes(options);
  CHECK_THROWS_WITH(WorkerTeam(nodes, {}), Catch::Contains("cannot be started"));
}

TEST_CASE("workers that end at once are not waited for") {
  TeamOptions options = echoes(2);
  options.program = "/bin/false";
  Nodes nodes(options);
  CHECK_THROWS_WITH(WorkerTeam(nodes, {}), Catch::Contains("ended at once"));
}

TEST_CASE("a forced algorithm is in the workers' environment") {
  Nodes nodes(echoes(2));
  WorkerTeam team(nodes, spelled_for_nccl("nvls_tree", "ll128"));
  CHECK(team.ask("environment NCCL_ALGO", 120) == std::vector<std::string>(2, "NVLSTree"));
  CHECK(team.ask("environment NCCL_PROTO", 120) == std::vector<std::string>(2, "LL128"));
}

TEST_CASE("ranks on one GPU are hosts of their own to NCCL") {
  TeamOptions options = echoes(1);
  options.ranks_per_gpu = 2;
  Nodes nodes(options);
  WorkerTeam team(nodes, {});
  CHECK(team.ask("rank", 120) == std::vector<std::string>{"0 on 0", "1 on 0"});
  CHECK(team.ask("environment NCCL_HOSTID", 120) ==
        std::vector<std::string>{"stepcast-rank-0", "stepcast-rank-1"});
}

TEST_CASE("a second node joins through a file and brings its workers") {
  const auto file = tests::own_folder() / "meeting";
  TeamOptions options = echoes(1);
  options.nodes = 2;
  options.rendezvous = file.string();
  std::thread other([&] { join(file.string(), 2, echo_worker, ""); });
  {
    Nodes nodes(options);
    CHECK(nodes.num_nodes() == 2);
    CHECK(nodes.num_ranks() == 3);
    for (const char* algorithm : {"ring", "tree"}) {
      WorkerTeam team(nodes, spelled_for_nccl(algorithm, ""));
      CHECK(team.ask("rank", 120) == std::vector<std::string>{"0 on 0", "1 on 0", "2 on 1"});
      const std::string spelled = std::string(algorithm) == "ring" ? "Ring" : "Tree";
      CHECK(team.ask("environment NCCL_ALGO", 120) == std::vector<std::string>(3, spelled));
    }
  }
  other.join();
  std::filesystem::remove(file);
}

TEST_CASE("nodes that do not come are counted") {
  TeamOptions options = echoes(1);
  options.nodes = 2;
  options.rendezvous = "127.0.0.1:0";
  options.token = "run7";
  options.start_seconds = 0.2;
  CHECK_THROWS_WITH(Nodes(options), Catch::Contains("1 of 2 nodes") && Catch::Contains("join"));
}

TEST_CASE("at an address without a token no node is waited for, and none joins") {
  TeamOptions options = echoes(1);
  options.nodes = 2;
  options.rendezvous = "127.0.0.1:0";
  CHECK_THROWS_WITH(Nodes(options), Catch::Contains("open to whoever knocks"));
  CHECK_THROWS_WITH(join("127.0.0.1:9", 1, echo_worker, ""),
                    Catch::Contains("open to whoever knocks"));
}

TEST_CASE("who lacks the token, or says nothing, is no node of the run and holds nobody up") {
  const auto file = tests::own_folder() / "guarded";
  TeamOptions options = echoes(1);
  options.nodes = 2;
  options.rendezvous = file.string();
  options.token = "run7";
  std::vector<sim::LineChannel> strangers;
  std::string said;
  std::thread other([&] {
    std::optional<sim::RendezvousFile::Words> words;
    while (!(words = sim::words_in(file.string(), {"stepcast-calibrate", "1"})))
      std::this_thread::sleep_for(std::chrono::milliseconds(9));
    const auto soon = sim::in_seconds(60);
    for (const std::string line : {"", "node 4\n", "stepcast-calibrate 1 node wrong 4\n"}) {
      strangers.push_back(sim::connect_to(words->address, soon));
      if (!line.empty()) strangers.back().send(line.substr(0, line.size() - 1));
    }
    said = strangers.back().receive(soon);
    CHECK_THROWS_WITH(join(file.string(), 1, echo_worker, "run8", 0.3),
                      Catch::Contains("no run listens"));
    join(file.string(), 1, echo_worker, "run7");
  });
  {
    Nodes nodes(options);
    CHECK(nodes.num_ranks() == 2);
    WorkerTeam team(nodes, {});
    CHECK(team.ask("rank", 120) == std::vector<std::string>{"0 on 0", "1 on 0"});
  }
  other.join();
  CHECK(said == "refused it is of another run");
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("an order to start workers survives its line") {
  const LocalWorkers workers{
      .first_rank = 8, .count = 4, .ranks_per_gpu = 2, .forced = {"Tree", ""}};
  const auto again = LocalWorkers::from_line(workers.to_line());
  CHECK(again.first_rank == 8);
  CHECK(again.count == 4);
  CHECK(again.ranks_per_gpu == 2);
  CHECK(again.forced == workers.forced);
  CHECK_THROWS_AS(LocalWorkers::from_line("start 1 two"), InputError);
}

TEST_CASE("a kernel survives its line") {
  const GemmTask gemm{.dtype = "bf16",
                      .m = 1,
                      .n = 2,
                      .k = 3,
                      .layout = "TN",
                      .accumulate = true,
                      .best_of_8 = true};
  AttentionTask attention{.dtype = "fp16",
                          .backward = true,
                          .batch = 1,
                          .heads = 8,
                          .kv_heads = 2,
                          .sequence = 4096,
                          .head_dim = 128,
                          .causal = false};
  attention.implementation = "cudnn";
  GemmTask plain = gemm;
  plain.accumulate = plain.best_of_8 = false;
  AttentionTask causal = attention;
  causal.causal = !causal.causal;
  causal.backward = !causal.backward;
  for (const KernelTask& task :
       {KernelTask(gemm), KernelTask(plain), KernelTask(attention), KernelTask(causal)})
    CHECK(kernel_in(to_text(task)) == task);
  CHECK(kernel_in("gemm bf16 1x2x3") ==
        KernelTask(GemmTask{.dtype = "bf16", .m = 1, .n = 2, .k = 3}));
  for (const char* wrong :
       {"gemm bf16 1x2", "attention cudnn forward bf16 b=1 h=2 s=3", "sort 1 2"})
    CHECK_FALSE(kernel_in(wrong));
}
