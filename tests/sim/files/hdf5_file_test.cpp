#include "sim/files/hdf5_file.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "engine/check.hpp"

using stepcast::InputError;
using stepcast::sim::Hdf5Reader;
using stepcast::sim::Hdf5Writer;

namespace {

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("stepcast_hdf5_" + name)).string();
}

}  // namespace

TEST_CASE("columns and attributes come back as written") {
  const std::string path = scratch("round.h5");
  {
    Hdf5Writer file(path);
    file.group("/points");
    file.attribute("/", "title", std::string("a sweep"));
    file.attribute("/", "empty", std::string());
    file.attribute("/points", "version", std::int64_t{3});
    file.column("/points/time", std::vector<double>{1.5, -2.0}, "s");
    file.column("/points/gpus", std::vector<std::int64_t>{8, 1 << 30}, "1");
    file.column("/points/name", std::vector<std::string>{"", "zwölf"});
    file.column("/points/none", std::vector<std::string>{});
    file.finish();
  }
  const Hdf5Reader file(path);
  CHECK(file.text_attribute("/", "title") == "a sweep");
  CHECK(file.text_attribute("/", "empty").empty());
  CHECK(file.integer_attribute("/points", "version") == 3);
  CHECK(file.doubles("/points/time") == std::vector<double>{1.5, -2.0});
  CHECK(file.integers("/points/gpus") == std::vector<std::int64_t>{8, 1 << 30});
  CHECK(file.texts("/points/name") == std::vector<std::string>{"", "zwölf"});
  CHECK(file.texts("/points/none").empty());
  CHECK(file.text_attribute("/points/time", "unit") == "s");
  CHECK(file.has("/points"));
  CHECK_FALSE(file.has("/tables"));
  std::filesystem::remove(path);
}

TEST_CASE("a file that was not finished does not exist") {
  const std::string path = scratch("unfinished.h5");
  { Hdf5Writer file(path); }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST_CASE("a column of another type, or none, is refused by name") {
  const std::string path = scratch("types.h5");
  {
    Hdf5Writer file(path);
    file.column("/rate", std::vector<double>{1.0}, "FLOP/s");
    file.finish();
  }
  const Hdf5Reader file(path);
  CHECK_THROWS_WITH(file.integers("/rate"), Catch::Contains(path) && Catch::Contains("/rate"));
  CHECK_THROWS_WITH(file.doubles("/missing"), Catch::Contains("/missing"));
  CHECK_THROWS_AS(file.integer_attribute("/rate", "unit"), InputError);
  std::filesystem::remove(path);
}

TEST_CASE("what is no HDF5 file, or cannot be written, is told with its name") {
  const std::string path = scratch("text.h5");
  std::ofstream(path) << "gpu,kind\n";
  CHECK_THROWS_WITH(Hdf5Reader(path), Catch::Contains("not an HDF5 file"));
  CHECK_THROWS_WITH(Hdf5Reader(scratch("nowhere.h5")), Catch::Contains("no such file"));
  CHECK_THROWS_WITH(Hdf5Writer("/nowhere/x.h5"), Catch::Contains("cannot be written"));
  std::filesystem::remove(path);
}
