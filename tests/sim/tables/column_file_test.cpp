#include "sim/tables/column_file.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/check.hpp"
#include "sim/tables/calibration_table.hpp"
#include "sim/tables/flat_file.hpp"
#include "tests/own_folder.hpp"

using stepcast::InputError;
using stepcast::sim::ColumnReader;
using stepcast::sim::ColumnWriter;
using stepcast::sim::flat_magic;
using stepcast::sim::read_columns;
using stepcast::sim::write_columns;

namespace {

std::string scratch(const std::string& name) {
  return (tests::own_folder() / ("stepcast_hdf5_" + name)).string();
}

}  // namespace

TEST_CASE("columns and attributes come back as written") {
  const std::string path = scratch(GENERATE(as<std::string>{}, "round.h5", "round.columns"));
  {
    const auto made = write_columns(path);
    ColumnWriter& file = *made;
    file.group("/points");
    file.attribute("/", "title", std::string("a sweep"));
    file.attribute("/", "empty", std::string());
    file.attribute("/points", "version", std::int64_t{3});
    file.column("/points/time", std::vector<double>{1.5, -2.0}, "s");
    file.column("/points/gpus", std::vector<std::int64_t>{8, 1 << 30}, "1");
    file.column("/points/name", std::vector<std::string>{"", "zwölf", "zwölf", ""});
    file.column("/points/none", std::vector<std::string>{});
    file.finish();
  }
  const auto opened = read_columns(path);
  const ColumnReader& file = *opened;
  CHECK(file.text_attribute("/", "title") == "a sweep");
  CHECK(file.text_attribute("/", "empty").empty());
  CHECK(file.integer_attribute("/points", "version") == 3);
  CHECK(file.doubles("/points/time") == std::vector<double>{1.5, -2.0});
  CHECK(file.integers("/points/gpus") == std::vector<std::int64_t>{8, 1 << 30});
  CHECK(file.texts("/points/name") == std::vector<std::string>{"", "zwölf", "zwölf", ""});
  CHECK(file.texts("/points/none").empty());
  CHECK(file.text_attribute("/points/time", "unit") == "s");
  CHECK(file.has("/points"));
  CHECK_FALSE(file.has("/tables"));
  std::filesystem::remove(path);
}

TEST_CASE("a file that was not finished does not exist") {
  const std::string path = scratch(GENERATE(as<std::string>{}, "open.h5", "open.columns"));
  write_columns(path);
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_CASE("a column of another type, or none, is refused by name") {
  const std::string path = scratch(GENERATE(as<std::string>{}, "types.h5", "types.columns"));
  {
    const auto made = write_columns(path);
    ColumnWriter& file = *made;
    file.column("/rate", std::vector<double>{1.0}, "FLOP/s");
    file.finish();
  }
  const auto opened = read_columns(path);
  const ColumnReader& file = *opened;
  CHECK_THROWS_WITH(file.integers("/rate"), Catch::Contains(path) && Catch::Contains("/rate"));
  CHECK_THROWS_WITH(file.doubles("/missing"), Catch::Contains("/missing"));
  CHECK_THROWS_AS(file.integer_attribute("/rate", "unit"), InputError);
  std::filesystem::remove(path);
}

TEST_CASE("what is no HDF5 file, or cannot be written, is told with its name") {
  const std::string path = scratch("text.h5");
  std::ofstream(path) << "gpu,kind\n";
  CHECK_THROWS_WITH(read_columns(path), Catch::Contains("not an HDF5 file"));
  CHECK_THROWS_WITH(read_columns(scratch("nowhere.h5")), Catch::Contains("no such file"));
  CHECK_THROWS_WITH(write_columns("/nowhere/x.h5"), Catch::Contains("cannot be written"));
  std::filesystem::remove(path);
}

TEST_CASE("a flat file of another version is told apart from what is no file of columns") {
  const std::string path = scratch("old.columns");
  std::ofstream(path) << "stepcast columns 1\n";
  CHECK_THROWS_WITH(read_columns(path), Catch::Contains("of another version"));
  std::filesystem::remove(path);
}

TEST_CASE("a flat file cut short anywhere, or with another byte, is refused or read, no more") {
  const std::string path = scratch("whole.columns");
  {
    const auto made = write_columns(path);
    made->attribute("/", "title", std::string("a table"));
    made->column("/rate", std::vector<double>{1.0, 2.0}, "FLOP/s");
    made->column("/gpu", std::vector<std::string>{"h100", "h100", "", "a100"});
    made->finish();
  }
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const std::size_t head = flat_magic.size();
  const std::string broken = scratch("broken.columns");
  int refused = 0;
  const auto try_it = [&](const std::string& content) {
    std::ofstream(broken, std::ios::binary) << content;
    try {
      const auto file = read_columns(broken);
      if (file->has("/rate")) file->doubles("/rate");
      if (file->has("/gpu")) file->texts("/gpu");
    } catch (const InputError&) {
      ++refused;
    }
  };
  for (std::size_t size = head + 1; size < bytes.size(); ++size) {
    try_it(bytes.substr(0, size));
    std::string other = bytes;
    other[size] = static_cast<char>(~other[size]);
    try_it(other);
  }
  CHECK(refused > static_cast<int>(bytes.size() - head));
  std::filesystem::remove(path);
  std::filesystem::remove(broken);
}

TEST_CASE("the shipped table is the same in the form that is read without HDF5") {
  const std::string table = STEPCAST_BINARY_DIR "/published";
  CHECK(stepcast::sim::read_calibration(table + ".columns") ==
        stepcast::sim::read_calibration(table + ".h5"));
}
