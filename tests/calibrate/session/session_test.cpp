#include "calibrate/session/session.hpp"

#include <unistd.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "calibrate/report/diff.hpp"
#include "calibrate/session/task_rows.hpp"
#include "engine/check.hpp"
#include "tests/calibrate/catalogue_gpus.hpp"
#include "tests/calibrate/fake_device.hpp"
#include "tests/own_folder.hpp"

using namespace stepcast;
using namespace stepcast::calibrate;
using namespace stepcast::literals;

namespace {

GemmTask gemm(std::int64_t m) { return {.dtype = "bf16", .m = m, .n = 1024, .k = 512}; }

std::vector<Job> some_jobs() {
  return {{LaunchTask{}},
          {gemm(512)},
          {gemm(512), Cache::hot},
          {gemm(1024)},
          {AttentionTask{.dtype = "bf16",
                         .batch = 1,
                         .heads = 8,
                         .kv_heads = 8,
                         .sequence = 1024,
                         .head_dim = 128}},
          {ElementwiseTask{"rmsnorm", "bf16", 1024, 4096}},
          {CopyTask{"memory", 64_MiB}}};
}

/// A session in a folder of its own.
struct Bed {
  Bed()
      : folder(tests::own_folder() / ("stepcast_session_" + std::to_string(getpid()))),
        device(time) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
    options.out = (folder / "table.h5").string();
    options.date = "2026-11-21";
    options.command = "stepcast-calibrate run";
    options.gpus = gpus_of_the_catalogue();
  }
  ~Bed() { std::filesystem::remove_all(folder); }
  Bed(const Bed&) = delete;
  Bed& operator=(const Bed&) = delete;

  SessionReport run(const std::vector<Job>& jobs) {
    device.prepared.clear();
    return run_session(device, jobs, options, stop, time.clock(),
                       [&](const SessionProgress& p) { shown.push_back(p); });
  }
  sim::CalibrationTable table() const { return sim::read_calibration(options.out); }

  std::filesystem::path folder;
  FakeTime time;
  FakeDevice device;
  SessionOptions options;
  std::atomic<bool> stop = false;
  std::vector<SessionProgress> shown;
};

}  // namespace

TEST_CASE("every task becomes a row with its time, quality and machine") {
  Bed bed;
  const SessionReport report = bed.run(some_jobs());
  CHECK(report.measured == 7);
  const sim::CalibrationTable table = bed.table();
  REQUIRE(table.gemm.size() == 3);
  const sim::GemmRow& row = table.gemm[0];
  CHECK(row.gpu == "H100-SXM5-80GB");
  CHECK(row.layout == "NT");
  CHECK(row.choice == "heuristic");
  CHECK(row.cache == "cold");
  const double flops = 2.0 * 512 * 1024 * 512;
  CHECK(row.rate.value == Approx(flops / (1e-6 + flops / 1e12)).epsilon(1e-3));
  CHECK(row.quality.samples >= 10);
  CHECK(row.quality.error == Approx(1e-3));
  CHECK(row.source->confidence == "high");
  CHECK(row.source->on.driver == "580.1");
  CHECK(row.source->on.command == "stepcast-calibrate run");
  CHECK(table.gemm[1].cache == "hot");
  CHECK(table.gemm[1].rate.value == Approx(2 * row.rate.value).epsilon(1e-3));
  REQUIRE(table.launches.size() == 1);
  CHECK(table.launches[0].duration == 1_us);
  REQUIRE(table.elementwise.size() == 1);
  CHECK(table.elementwise[0].bytes == Bytes(6 * 1024 * 4096));
  REQUIRE(table.copies.size() == 1);
  CHECK(table.copies[0].rate.value == Approx(1e11).epsilon(0.01));  // read and written
  REQUIRE(table.powers.size() == 4);  // at rest, of product, attention and copy
  CHECK(table.powers[0].load == "idle");
  CHECK(table.powers[0].power == Watts(65));
}

TEST_CASE("a collective that breaks while it runs is listed as failed, and the next task goes on") {
  Bed bed;
  bed.device.ranks = 2;
  const CollectiveTask first{"allreduce", Bytes(1 << 20), {}, {}},
      next{"allgather", Bytes(1 << 20), {}, {}};
  const GemmTask gemm{.dtype = "bf16", .m = 512, .n = 512, .k = 512};
  bed.device.failing = "allreduce";
  const SessionReport report =
      bed.run({{first, Cache::cold}, {next, Cache::cold}, {OverlapTask{gemm, next}, Cache::cold}});
  REQUIRE(report.failed.size() == 1);
  CHECK(report.failed[0].why.find("its process has ended") != std::string::npos);
  CHECK(report.measured == 2);
  CHECK(bed.table().collectives.size() == 1);
  CHECK(bed.table().collectives[0].timing == "wall");
  CHECK(bed.table().overlaps.size() == 1);
  CHECK(bed.device.most_alive == 1);  // a team of workers holds one collective at a time
}

TEST_CASE("a task that computes something wrong is not timed, the others are kept") {
  Bed bed;
  bed.device.wrong = "rmsnorm";
  const SessionReport report = bed.run(some_jobs());
  REQUIRE(report.wrong.size() == 1);
  CHECK(report.wrong[0].task.find("rmsnorm") == 0);
  CHECK(report.wrong[0].why.find("0.5") != std::string::npos);
  CHECK(report.measured == 6);
  CHECK(bed.table().elementwise.empty());
  CHECK(to_text(report).find("WRONG") != std::string::npos);
}

TEST_CASE("what a device cannot do, throttles under or fails at is listed, the rest goes on") {
  Bed bed;
  bed.device.throttles = "copy";
  bed.device.before = [](const Task& task) {
    if (std::holds_alternative<AttentionTask>(task)) throw Unsupported("no such kernel");
    if (std::holds_alternative<ElementwiseTask>(task)) throw InputError("gpu", "out of memory");
  };
  const SessionReport report = bed.run(some_jobs());
  CHECK(report.unsupported.size() == 1);
  CHECK(report.throttled.size() == 1);
  CHECK(report.failed.size() == 1);
  CHECK(report.measured == 4);
  CHECK(bed.table().copies.empty());
}

TEST_CASE("a row that no reader would take is not written") {
  Bed bed;
  bed.device.mute = true;
  const SessionReport report = bed.run(some_jobs());
  REQUIRE(report.failed.size() == 1);
  CHECK(report.failed[0].task.find("rmsnorm") == 0);
  CHECK(sim::num_rows(bed.table()) == 6 + 4);  // and four of power
}

TEST_CASE("a device that is gone ends the session after five failures in a row") {
  Bed bed;
  std::vector<Job> jobs;
  for (std::int64_t m = 1; m <= 20; ++m) jobs.push_back({gemm(64 * m)});
  int calls = 0;
  bed.device.before = [&](const Task&) {
    if (++calls > 4) throw InputError("gpu 0", "unspecified launch failure");
  };
  bed.options.warm_up = {};
  const SessionReport report = bed.run(jobs);
  CHECK(report.measured == 4);
  CHECK(report.failed.size() == 5);
  CHECK(bed.table().gemm.size() == 4);
}

TEST_CASE("an interrupt keeps what was measured, and resume goes on where it stopped") {
  Bed bed;
  bed.options.warm_up = {};
  int calls = 0;
  bed.device.before = [&](const Task&) {
    if (++calls == 3) bed.stop = true;  // while the third task is prepared
  };
  const SessionReport first = bed.run(some_jobs());
  CHECK(first.interrupted);
  CHECK(first.measured == 3);
  CHECK(sim::num_rows(bed.table()) == 3);
  bed.stop = false;
  bed.device.before = nullptr;
  bed.options.resume = true;
  bed.options.date = "2026-11-22";
  const SessionReport second = bed.run(some_jobs());
  CHECK(second.known == 3);
  CHECK(second.measured == 4);
  CHECK(bed.table().gemm.size() == 3);
  CHECK(bed.run(some_jobs()).measured == 0);
  CHECK(bed.device.prepared.empty());  // nothing is even prepared, no power either
}

TEST_CASE("without resume a second run measures anew and its rows win") {
  Bed bed;
  bed.run(some_jobs());
  bed.options.date = "2026-11-22";
  CHECK(bed.run({{gemm(512)}}).measured == 1);
  const auto table = bed.table();
  CHECK(table.gemm.size() == 3);
  CHECK(std::count_if(table.gemm.begin(), table.gemm.end(), [](const sim::GemmRow& row) {
          return row.source->on.date == "2026-11-22";
        }) == 1);
}

TEST_CASE("the file grows while the session runs") {
  Bed bed;
  bed.options.save_every = Duration(1);
  std::size_t seen = 0;
  bed.device.before = [&](const Task& task) {
    if (std::holds_alternative<CopyTask>(task) && seen == 0) seen = sim::num_rows(bed.table());
  };
  bed.run(some_jobs());
  CHECK(seen == 6);  // all before the copy
}

TEST_CASE("what cannot be written where it should is written elsewhere, and said") {
  Bed bed;
  bed.options.out = (bed.folder / "gone" / "stepcast_elsewhere_test.h5").string();
  const SessionReport report = bed.run({{gemm(512)}});
  REQUIRE(!report.saved_to.empty());
  CHECK(sim::read_calibration(report.saved_to).gemm.size() == 1);
  CHECK(to_text(report).find(report.saved_to) != std::string::npos);
  std::filesystem::remove(report.saved_to);
}

TEST_CASE("a file that is no table is refused before anything is measured") {
  Bed bed;
  std::ofstream(bed.options.out) << "no table";
  CHECK_THROWS_AS(bed.run(some_jobs()), InputError);
  CHECK(bed.device.prepared.empty());
}

TEST_CASE("remaining time follows the pace so far") {
  Bed bed;
  bed.options.warm_up = {};
  std::vector<Job> jobs;
  for (std::int64_t m = 1; m <= 4; ++m) jobs.push_back({gemm(64 * m)});
  bed.run(jobs);
  REQUIRE(bed.shown.size() == 5);
  CHECK(bed.shown[0].left == Duration(0));
  CHECK(bed.shown[1].done == 1);
  CHECK(seconds(bed.shown[1].left) == Approx(3 * seconds(bed.shown[1].elapsed)));
  CHECK(bed.shown.back().task.empty());
}

TEST_CASE("overlap measures both alone, then together") {
  Bed bed;
  bed.device.ranks = 8;
  bed.run({{OverlapTask{gemm(512), CollectiveTask{"allreduce", 64_MiB, {}, {}}}}});
  const auto table = bed.table();
  REQUIRE(table.overlaps.size() == 1);
  const sim::OverlapRow& row = table.overlaps[0];
  CHECK(row.kernel == "gemm bf16 512x1024x512 NT");
  CHECK(seconds(row.kernel_alone) == Approx(1e-6 + 2.0 * 512 * 1024 * 512 / 1e12).epsilon(1e-3));
  CHECK(seconds(row.collective_alone) == Approx(1e-6 + 67108864.0 / 1e11).epsilon(1e-3));
  CHECK(row.collective_beside == 3 * row.kernel_beside);
}

TEST_CASE("collectives carry ranks, library version and bus bandwidth") {
  Bed bed;
  bed.device.ranks = 8;
  bed.run({{CollectiveTask{"allreduce", 64_MiB, {}, {}}},
           {CollectiveTask{"allreduce", 64_MiB, "ring", "simple"}}});
  const auto rows = bed.table().collectives;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].nccl == "2.28.9");
  CHECK(rows[0].processes == "8 per node");
  CHECK(rows[0].busbw.value ==
        Approx(67108864.0 / seconds(rows[0].duration) * 2 * 7 / 8).epsilon(1e-6));
  CHECK(rows[1].algorithm == "ring");
}

TEST_CASE("the same seed fills the same buffers") {
  Bed bed;
  bed.options.seed = 42;
  bed.run(some_jobs());
  const auto first = bed.device.seeds;
  bed.device.seeds.clear();
  bed.run(some_jobs());
  CHECK(bed.device.seeds == first);
  CHECK(first[0] == 42);
}

TEST_CASE("a device's name is written as published rows write it, or in one word") {
  DeviceFacts facts;
  const auto name = [&](const std::string& given) {
    facts.name = given;
    return gpu_name(facts, gpus_of_the_catalogue());
  };
  CHECK(name("NVIDIA H100 80GB HBM3") == "H100-SXM5-80GB");
  CHECK(name("NVIDIA H100 PCIe") == "H100-PCIE-80GB");
  CHECK(name("NVIDIA H200") == "H200-SXM-141GB");
  CHECK(name("NVIDIA A100-SXM4-40GB") == "A100-SXM4-40GB");
  CHECK(name("Tesla V100-SXM2-32GB") == "V100-SXM2-32GB");
  CHECK(name("NVIDIA L4") == "L4");
  CHECK(name("host-core") == "host-core");
  CHECK(name("host-core Intel(R) Xeon(R) Processor") == "host-core-Intel-R-Xeon-R-Processor");
}

TEST_CASE("two tables that differ in one time differ in one row") {
  Bed bed;
  bed.run(some_jobs());
  const auto first = bed.table();
  auto second = first;
  second.gemm[2].rate = second.gemm[2].rate * 0.5;
  second.copies.clear();
  const auto families = diff(first, second);
  REQUIRE(families[0].family == "gemm");
  CHECK(families[0].both == 3);
  CHECK(families[0].median_ratio == 1.0);
  CHECK(families[0].worst_ratio == Approx(2.0));  // half the rate, twice the time
  CHECK(families[0].worst.find("m=1024 n=1024 k=512") != std::string::npos);
  CHECK(families[4].only_first == 1);
  CHECK(families[4].both == 0);
}
