#include "sim/tables/calibration_table.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "engine/check.hpp"
#include "sim/tables/calibration_columns.hpp"
#include "sim/tables/column_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/sim/whole_table.hpp"

using namespace stepcast;
using namespace stepcast::literals;
using sim::CalibrationTable;
using sim::ColumnWriter;
using sim::read_calibration;

namespace {

/// A file name that is gone when the test ends.
struct Scratch {
  explicit Scratch(const std::string& name)
      : path((tests::own_folder() / ("stepcast_table_" + name)).string()) {}
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
  const sim::Quality quality{.spread = 0.003, .samples = 250, .throttled = 2, .error = 4e-3};
  const sim::RowSource measured{"run",
                                "machine",
                                "high",
                                {"H100", "550.1", "CUDA 13.0", "cuBLAS 13.1", "NCCL 2.28.9",
                                 "SM 1980 MHz", "2026-11-21", "stepcast-calibrate run"}};
  table.launches = {
      {.gpu = "H100", .what = "kernel", .duration = 2_us, .source = measured, .quality = quality}};
  table.overlaps = {{.gpu = "H100",
                     .kernel = "gemm bf16 4096x4096x4096 NT",
                     .collective = "allreduce",
                     .ranks = 8,
                     .nodes = 1,
                     .bytes = 64_MiB,
                     .kernel_alone = 200_us,
                     .kernel_beside = 260_us,
                     .collective_alone = 400_us,
                     .collective_beside = 450_us,
                     .source = measured,
                     .quality = quality}};
  table.powers = {{.gpu = "H100", .load = "idle", .power = Watts(72.5), .source = measured}};
  table.gemm.push_back(gemm(1024, 500));
  table.gemm[1].accumulate = true;
  table.gemm[1].choice = "heuristic";
  table.gemm[1].cache = "cold";
  table.gemm[1].quality = quality;
  table.gemm[1].source = measured;
  table.attention[0].cache = "hot";
  table.elementwise[0].width = 4096;
  table.elementwise[0].pass = "backward";
  table.collectives[0].algorithm = "ring";
  table.collectives[0].protocol = "ll128";
  table.copies[0].bytes = 1_GiB;
  return table;
}

/// Writes the columns of a family without rows, as files of `version` have them.
void write_empty(ColumnWriter& file, const sim::Family& family, std::int64_t version) {
  const std::string group = std::string("/") + family.name;
  file.group(group);
  for (const sim::Column& column : family.columns) {
    if (column.since > version) continue;
    const std::string path = group + "/" + column.name;
    if (column.stored == sim::Stored::text)
      file.column(path, std::vector<std::string>{}, column.unit);
    else if (column.stored == sim::Stored::real)
      file.column(path, std::vector<double>{}, column.unit);
    else
      file.column(path, std::vector<std::int64_t>{}, column.unit);
  }
  if (version > 1) return file.column(group + "/source", std::vector<std::int64_t>{}, "1");
  for (const char* words : {"source", "reference", "confidence"})
    file.column(group + "/" + words, std::vector<std::string>{});
}

/// Root attributes of a table, as another program would write them.
void write_header(ColumnWriter& file, std::int64_t version) {
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

TEST_CASE("every column of every family comes back from a file as it was") {
  const Scratch file("whole.h5");
  sim::write_calibration(file.path, sim::whole_table());
  CHECK(read_calibration(file.path) == sim::whole_table());
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
  const auto made = sim::write_columns(file.path);
  ColumnWriter& writer = *made;
  write_header(writer, 4);
  writer.finish();
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains(file.path) &&
                                                     Catch::Contains("version 4") &&
                                                     Catch::Contains("versions 1 to 3"));
}

TEST_CASE("an HDF5 file of another program is no calibration table") {
  const Scratch file("foreign.h5");
  const auto made = sim::write_columns(file.path);
  ColumnWriter& writer = *made;
  writer.column("/events", std::vector<double>{1.0}, "s");
  writer.finish();
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("no calibration table"));
}

TEST_CASE("missing groups and columns, other units and unequal lengths are told by name") {
  const Scratch file("broken.h5");
  {
    const auto made = sim::write_columns(file.path);
    ColumnWriter& writer = *made;
    write_header(writer, 1);
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("group /gemm"));
  {
    const auto made = sim::write_columns(file.path);
    ColumnWriter& writer = *made;
    write_header(writer, 1);
    writer.group("/gemm");
    writer.column("/gemm/gpu", std::vector<std::string>{"H100", "H100"});
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("column /gemm/dtype"));
  {
    const auto made = sim::write_columns(file.path);
    ColumnWriter& writer = *made;
    write_header(writer, 1);
    writer.group("/gemm");
    writer.column("/gemm/gpu", std::vector<std::string>{"H100", "H100"});
    writer.column("/gemm/dtype", std::vector<std::string>{"bf16"});
    writer.finish();
  }
  CHECK_THROWS_WITH(read_calibration(file.path),
                    Catch::Contains("/gemm/dtype") && Catch::Contains("1 rows"));
  {
    const auto made = sim::write_columns(file.path);
    ColumnWriter& writer = *made;
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
    const auto made = sim::write_columns(file.path);
    ColumnWriter& writer = *made;
    write_header(writer, 1);
    for (const sim::Family& family : sim::families())
      if (family.since == 1) write_empty(writer, family, 1);
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

TEST_CASE("regression: four bytes that the system let wait are slow, and no mistake of units") {
  CalibrationTable table = one_of_each();
  table.collectives.front().busbw = BytesPerSecond(333.54);  // measured on two busy cores
  CHECK_NOTHROW(sim::check_rows(table, "here"));
  table.collectives.front().busbw = BytesPerSecond(1);  // of 1e-9 GB/s
  CHECK_THROWS_WITH(sim::check_rows(table, "here"), Catch::Contains("is beyond any machine"));
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

TEST_CASE("a file of version 1 is read, what it lacks is empty") {
  const CalibrationTable table =
      read_calibration(std::string(STEPCAST_SOURCE_DIR) + "/tests/sim/fixtures/calibration_v1.h5");
  REQUIRE(table.gemm.size() == 2);
  CHECK(table.gemm[0].m == 4096);
  CHECK(table.gemm[0].data == "small");
  CHECK(table.gemm[0].rate.value == Approx(217.2e12));
  CHECK(table.gemm[0].cache.empty());
  CHECK(table.gemm[0].quality == sim::Quality{});
  CHECK(table.gemm[0].source->reference ==
        "github:microsoft/vidur data/profiling/compute/a100/meta-llama/Llama-2-7b-hf/mlp.csv");
  CHECK(table.gemm[0].source->on == sim::MeasuredOn{});
  CHECK(table.attention.size() == 6);
  CHECK(table.nccl_tuning.size() + table.nccl_choices.size() == 24);
  CHECK(table.launches.empty());
  CHECK(sim::num_rows(table) == 38);
}

TEST_CASE("a file of version 1 written again is one of version 3 with the same rows") {
  const Scratch file("again.h5");
  const CalibrationTable table =
      read_calibration(std::string(STEPCAST_SOURCE_DIR) + "/tests/sim/fixtures/calibration_v1.h5");
  sim::write_calibration(file.path, table);
  CHECK(sim::read_columns(file.path)->integer_attribute("/", "version") == 3);
  CHECK(read_calibration(file.path) == table);
}

TEST_CASE("rows of one source share one row of /sources") {
  const Scratch file("sources.h5");
  CalibrationTable table;
  table.gemm = {gemm(512, 300), gemm(1024, 400), gemm(2048, 500)};
  table.gemm[1].source = {"another", "where", "high"};
  sim::write_calibration(file.path, table);
  const auto opened = sim::read_columns(file.path);
  const sim::ColumnReader& reader = *opened;
  CHECK(reader.texts("/sources/source") == std::vector<std::string>{"who", "another"});
  CHECK(reader.integers("/gemm/source") == std::vector<std::int64_t>{0, 1, 0});
}

namespace {

/// A table of version 2 with one product whose source and layout are as told.
void write_with(const std::string& path, std::int64_t source, const std::string& layout) {
  const auto made = sim::write_columns(path);
  ColumnWriter& file = *made;
  write_header(file, 2);
  for (const sim::Family& family : sim::families())
    if (family.name == std::string("gemm"))
      file.group("/gemm");
    else
      write_empty(file, family, 2);
  file.column("/gemm/gpu", std::vector<std::string>{"H100"});
  file.column("/gemm/dtype", std::vector<std::string>{"bf16"});
  for (const char* size : {"m", "n", "k"})
    file.column(std::string("/gemm/") + size, std::vector<std::int64_t>{512}, "1");
  file.column("/gemm/layout", std::vector<std::string>{layout});
  file.column("/gemm/data", std::vector<std::string>{"random"});
  file.column("/gemm/rate", std::vector<double>{3e14}, "FLOP/s");
  file.column("/gemm/accumulate", std::vector<std::int64_t>{0}, "1");
  for (const char* word : {"choice", "cache"})
    file.column(std::string("/gemm/") + word, std::vector<std::string>{""});
  for (const char* number : {"spread", "error"})
    file.column(std::string("/gemm/") + number, std::vector<double>{0.0}, "1");
  for (const char* count : {"samples", "throttled"})
    file.column(std::string("/gemm/") + count, std::vector<std::int64_t>{0}, "1");
  file.column("/gemm/source", std::vector<std::int64_t>{source}, "1");
  file.group("/sources");
  for (const char* word : {"source", "reference", "confidence", "device", "driver", "runtime",
                           "gemm_library", "collective_library", "clocks", "date", "command"})
    file.column(std::string("/sources/") + word, std::vector<std::string>{"x"});
  file.finish();
}

}  // namespace

TEST_CASE("a row that names a source that is not there is refused") {
  const Scratch file("dangling.h5");
  write_with(file.path, 0, "NT");
  CHECK(read_calibration(file.path).gemm.size() == 1);
  write_with(file.path, 1, "NT");
  CHECK_THROWS_WITH(read_calibration(file.path), Catch::Contains("source 1 of 1"));
  write_with(file.path, -1, "NT");
  CHECK_THROWS_AS(read_calibration(file.path), InputError);
  write_with(file.path, 0, "N");
  CHECK_THROWS_WITH(read_calibration(file.path),
                    Catch::Contains("row 0 of /gemm: layout \"N\" is none of NN, NT, TN, TT"));
}

TEST_CASE("rows of every family are replaced by later ones of their key, and by no others") {
  const CalibrationTable whole = sim::whole_table();
  for (const sim::Family& family : sim::families())
    for (const sim::Column& column : family.columns) {
      CalibrationTable changed;
      family.append(changed, whole);
      if (column.stored == sim::Stored::text && column.words.empty())
        column.set(changed, 0, std::string_view("another"));
      else if (column.stored == sim::Stored::whole)
        column.set(changed, 0, std::int64_t{77});
      else if (column.stored == sim::Stored::real)
        column.set(changed, 0, 77.0);
      else
        continue;
      INFO(family.name << " " << column.name);
      const bool key = column.role == sim::Role::key;
      CHECK(family.size(sim::update(whole, changed)) == (key ? 3 : 2));
      CHECK(sim::covers(whole, changed) == !key);
    }
}

TEST_CASE("update replaces row by row where merge takes a curve as a whole") {
  CalibrationTable earlier, later;
  auto row = one_of_each().collectives[0];
  for (const std::int64_t bytes : {8, 16, 32, 64}) {
    row.bytes = Bytes(bytes);
    earlier.collectives.push_back(row);
  }
  for (const std::int64_t bytes : {64, 128, 256}) {
    row.bytes = Bytes(bytes);
    row.duration = 9_ms;
    later.collectives.push_back(row);
  }
  CHECK(sim::merge(earlier, later).collectives.size() == 3);
  CHECK(sim::update(earlier, later).collectives.size() == 6);
  CHECK(sim::covers(sim::update(earlier, later), earlier));
  CHECK_FALSE(sim::covers(earlier, later));
}
