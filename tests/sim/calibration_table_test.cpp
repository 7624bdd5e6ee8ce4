#include "sim/calibration_table.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <type_traits>

#include "engine/check.hpp"
#include "sim/calibration_schema.hpp"
#include "sim/hdf5_file.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::CalibrationTable;
using sim::Hdf5Writer;
using sim::read_calibration;

namespace {

/// A file name that is gone when the test ends.
struct Scratch {
  explicit Scratch(const std::string& name)
      : path((std::filesystem::temp_directory_path() / ("stepcast_table_" + name)).string()) {}
  ~Scratch() { std::filesystem::remove(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string path;
};

sim::GemmRow gemm(std::int64_t m, double tflops) {
  return {.gpu = "H100-SXM5-80GB",
          .dtype = "bf16",
          .m = m,
          .n = 4096,
          .k = 1024,
          .layout = "NT",
          .data = "random",
          .rate = FlopsPerSecond(tflops * 1e12),
          .source = {"who", "where", "high"}};
}

CalibrationTable one_of_each() {
  CalibrationTable table;
  table.title = "one of each";
  table.created = "2026-11-21";
  table.gemm = {gemm(512, 300.25)};
  table.attention = {{.gpu = "A100",
                      .dtype = "fp16",
                      .pass = "forward",
                      .implementation = "flash2",
                      .batch = 4,
                      .heads = 32,
                      .kv_heads = 8,
                      .sequence = 4096,
                      .head_dim = 128,
                      .mask = "causal",
                      .rate = 173_TFLOPps,
                      .source = {"fig", "url", "medium"}}};
  table.elementwise = {{.gpu = "A100",
                        .dtype = "fp16",
                        .kind = "rope",
                        .implementation = "vllm",
                        .tokens = 4096,
                        .shape = "model=Llama-2-7b;tp=1",
                        .bytes = 128_MiB,
                        .duration = 149_us,
                        .source = {"prof", "url", "medium"}}};
  table.collectives = {{.gpu = "H100",
                        .dtype = "fp32",
                        .collective = "allreduce",
                        .ranks = 2048,
                        .nodes = 256,
                        .gpus_per_node = 8,
                        .bytes = 1_GiB,
                        .duration = 7_ms,
                        .fabric = "infiniband",
                        .nccl = "2.20",
                        .timing = "wall",
                        .processes = "8 per node",
                        .node_bandwidth = 400_GBps,
                        .busbw = 303_GBps,
                        .source = {"fig", "url", "medium"}}};
  table.copies = {{.gpu = "H100",
                   .kind = "memory",
                   .what = "hbm",
                   .gpus = 1,
                   .rate = 2900_GBps,
                   .source = {"b", "u", "high"}}};
  table.nccl_tuning = {{.gpu = "H100",
                        .nccl = "2.20.5",
                        .collective = "allreduce",
                        .algorithm = "nvls_tree",
                        .protocol = "simple",
                        .ranks = 16,
                        .nodes = 2,
                        .latency = 67_us,
                        .bandwidth = 384_GBps,
                        .source = {"table", "log", "high"}}};
  table.nccl_choices = {{.gpu = "H100",
                         .nccl = "2.20.5",
                         .collective = "allreduce",
                         .ranks = 16,
                         .nodes = 2,
                         .bytes = 1_MiB,
                         .algorithm = "tree",
                         .protocol = "ll128",
                         .channels = 16,
                         .estimate = 60_us,
                         .source = {"choice", "log", "high"}}};
  return table;
}

/// Writes the columns of a family without rows.
template <class Row>
struct EmptyColumns {
  Hdf5Writer& file;
  std::string group;

  template <class Member>
  void operator()(const char* name, [[maybe_unused]] Member member) {
    using Value = std::decay_t<std::invoke_result_t<Member, const Row&>>;
    const std::string unit = sim::detail::unit_of(Value{}), path = group + "/" + name;
    if (unit == "text")
      file.column(path, std::vector<std::string>{}, unit);
    else if (unit == "1" || unit == "B" || unit == "ps")
      file.column(path, std::vector<std::int64_t>{}, unit);
    else
      file.column(path, std::vector<double>{}, unit);
  }
};

/// Root attributes of a table, as another program would write them.
void write_header(Hdf5Writer& file, std::int64_t version) {
  file.attribute("/", "format", std::string("stepcast calibration"));
  file.attribute("/", "version", version);
  file.attribute("/", "title", std::string("t"));
  file.attribute("/", "created", std::string("2026-11-21"));
}

}  // namespace

TEST_CASE("a table read is the table written") {
  const Scratch file("round.h5");
  sim::write_calibration(file.path, one_of_each());
  CHECK(read_calibration(file.path) == one_of_each());
}

TEST_CASE("an empty table is a table") {
  const Scratch file("empty.h5");
  sim::write_calibration(file.path, {});
  CHECK(read_calibration(file.path) == CalibrationTable{});
}

TEST_CASE("a file cut anywhere is refused, never half read") {
  const Scratch whole("whole.h5"), cut("cut.h5");
  sim::write_calibration(whole.path, one_of_each());
  const auto size = std::filesystem::file_size(whole.path);
  for (std::uintmax_t keep = 0; keep < size; keep += size / 40) {
    std::filesystem::copy_file(whole.path, cut.path,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(cut.path, keep);
    CHECK_THROWS_AS(read_calibration(cut.path), InputError);
  }
}

TEST_CASE("a file of a newer version names both versions") {
  const Scratch file("newer.h5");
  Hdf5Writer writer(file.path);
  write_header(writer, 2);
  writer.finish();
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains(file.path) &&
                                                     Catch::Contains("version 2") &&
                                                     Catch::Contains("version 1"));
}

TEST_CASE("an HDF5 file of another program is no calibration table") {
  const Scratch file("foreign.h5");
  Hdf5Writer writer(file.path);
  writer.column("/events", std::vector<double>{1.0}, "s");
  writer.finish();
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("no calibration table"));
}

TEST_CASE("missing groups and columns, other units and unequal lengths are told by name") {
  const Scratch file("broken.h5");
  {
    Hdf5Writer writer(file.path);
    write_header(writer, 1);
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("group /gemm"));
  {
    Hdf5Writer writer(file.path);
    write_header(writer, 1);
    writer.group("/gemm");
    writer.column("/gemm/gpu", std::vector<std::string>{"H100", "H100"});
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("column /gemm/dtype"));
  {
    Hdf5Writer writer(file.path);
    write_header(writer, 1);
    writer.group("/gemm");
    writer.column("/gemm/gpu", std::vector<std::string>{"H100", "H100"});
    writer.column("/gemm/dtype", std::vector<std::string>{"bf16"});
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path),
                    Catch::Contains("/gemm/dtype") && Catch::Contains("1 rows"));
  {
    Hdf5Writer writer(file.path);
    write_header(writer, 1);
    writer.group("/gemm");
    writer.column("/gemm/gpu", std::vector<std::string>{"H100"}, "TFLOP/s");
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("the unit text"));
}

TEST_CASE("a file from before NCCL's figures had a place has none") {
  const Scratch file("older.h5");
  {
    Hdf5Writer writer(file.path);
    write_header(writer, 1);
    const CalibrationTable empty;
    sim::detail::list_families(empty, [&]<class Row>(const char* group, const std::vector<Row>&) {
      if (sim::detail::may_lack(group)) return;
      writer.group(group);
      EmptyColumns<Row> columns{writer, group};
      sim::detail::list_columns(columns, static_cast<const Row*>(nullptr));
    });
    writer.finish();
  }
  CHECK(read_calibration(file.path).nccl_tuning.empty());
}

TEST_CASE("a curve of one's own replaces all that is published of its shape") {
  const auto at = [](std::int64_t bytes, const char* nccl, std::int64_t nodes) {
    auto row = one_of_each().collectives[0];
    row.bytes = Bytes(bytes);
    row.nccl = nccl;
    row.nodes = nodes;
    return row;
  };
  CalibrationTable published, mine;
  for (const std::int64_t bytes : {8, 16, 32, 64}) {
    published.collectives.push_back(at(bytes, "2.18", 2));
    published.collectives.push_back(at(bytes, "2.18", 4));
  }
  mine.collectives = {at(8, "2.21", 2), at(16, "2.21", 2)};
  CHECK(sim::merge(published, mine).collectives.size() == 10);  // two sizes are no curve
  mine.collectives.push_back(at(128, "2.21", 2));
  const auto both = sim::merge(published, mine).collectives;
  CHECK(both.size() == 7);  // 4 of 4 nodes, and our 3 of 2 nodes
  auto elsewhere = mine;
  for (auto& row : elsewhere.collectives) row.fabric = "roce";
  CHECK(sim::merge(published, elsewhere).collectives.size() == 11);  // another wire
}

TEST_CASE("a rate that is no positive number is refused") {
  const Scratch file("negative.h5");
  CalibrationTable table;
  table.gemm = {gemm(512, -1)};
  sim::write_calibration(file.path, table);
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("row 0 of /gemm"));
}

TEST_CASE("later rows win over rows of the same key, and repeated rows of one table stay") {
  CalibrationTable earlier, later;
  earlier.gemm = {gemm(512, 300), gemm(512, 310), gemm(1024, 400)};
  later.gemm = {gemm(512, 350)};
  earlier.title = "published";
  later.title = "mine";
  const CalibrationTable both = merge(earlier, later);
  REQUIRE(both.gemm.size() == 2);
  CHECK(both.gemm[0] == gemm(1024, 400));
  CHECK(both.gemm[1] == gemm(512, 350));
  CHECK(both.title == "published + mine");
  CHECK(merge({}, earlier).gemm.size() == 3);
}

TEST_CASE("tables are read in order, later files win") {
  const Scratch first("first.h5"), second("second.h5");
  CalibrationTable table;
  table.gemm = {gemm(512, 300)};
  sim::write_calibration(first.path, table);
  table.gemm = {gemm(512, 350)};
  sim::write_calibration(second.path, table);
  const auto both = sim::read_calibrations(std::vector<std::string>{first.path, second.path});
  REQUIRE(both.gemm.size() == 1);
  CHECK(both.gemm[0].rate == 350_TFLOPps);
}
