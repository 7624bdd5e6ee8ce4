#include "sim/output/results_file.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sim/output/folder.hpp"
#include "sim/tables/column_file.hpp"
#include "tests/own_folder.hpp"
#include "tests/sim/made_up_answers.hpp"

using namespace stepcast;
using namespace stepcast::sim;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone when the test ends.
class Folder {
 public:
  Folder() : path_(tests::own_folder() / ("stepcast-test-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path(const std::string& name = {}) const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }

 private:
  fs::path path_;
};

/// Runs the scenario as `stepcast run --out` does.
Results written(const std::string& path, const std::string& text) {
  static const std::atomic<bool> stop = false;
  Study study = read_study(read_toml(text, "a.toml"));
  OutputFolder folder({path}, study, shipped_catalogue().directory());
  const auto step = [](const Scenario& s) {
    if (s.nodes == 2) throw NoFeasiblePlan("does not fit");
    return made_up_report(s);
  };
  Results results = run_study(std::move(study), {.read = read_shipped,
                                                 .simulator = {step, made_up_collective},
                                                 .stop = stop,
                                                 .folder = &folder});
  folder.finish(results);
  return results;
}

const std::string base =
    "title = \"t\"\n[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = "
    "\"dgx-h100\"\n";

}  // namespace

TEST_CASE("--out writes columns with units, and NaN for refused points") {
  const Folder folder;
  written(folder.path(), base + "[sweep]\n\"cluster.nodes\" = [1, 2, 4]\n");

  const auto opened = read_columns(folder.path("results.h5"));
  const ColumnReader& file = *opened;
  CHECK(file.integers("/points/sweep.cluster.nodes") == std::vector<std::int64_t>{1, 2, 4});
  CHECK(file.integers("/points/gpus") == std::vector<std::int64_t>{8, 16, 32});
  CHECK(file.text_attribute("/points/step_time_s", "unit") == "s");
  CHECK(file.text_attribute("/points/memory_gib_per_gpu", "unit") == "GiB");
  const std::vector<double> steps = file.doubles("/points/step_time_s");
  CHECK(steps[0] == 1.0);
  CHECK(std::isnan(steps[1]));
  CHECK(file.doubles("/points/exposed_communication_s.total")[2] == Approx(0.1));
  CHECK(file.texts("/points/refused") == std::vector<std::string>{"", "does not fit", ""});

  CHECK(nlohmann::json::parse(std::ifstream(folder.path("results.json")))["points"].size() == 3);
}

TEST_CASE("the written scenario reads back to the same study and the same points") {
  const Folder folder;
  written(folder.path(), base + "[sweep]\n\"cluster.nodes\" = [1, 4]\n");
  const Study again = read_study(read_toml_file(folder.path("scenario.toml")));
  REQUIRE(again.num_points() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Scenario first = read_shipped(again.document_of(again.point(i)));
    const Scenario resolved =
        read_shipped(read_toml_file(folder.path("points/000" + std::to_string(i + 1) + ".toml")));
    CHECK(write_toml(resolved_document(first)) == write_toml(resolved_document(resolved)));
    CHECK(first.nodes == (i == 0 ? 1 : 4));
  }
}

TEST_CASE("a single run writes its resolved scenario") {
  const Folder folder;
  const Results one = written(folder.path(), base);
  const Scenario read = read_shipped(read_toml_file(folder.path("scenario.toml")));
  CHECK(write_toml(resolved_document(read)) ==
        write_toml(resolved_document(scenario_of(*one.single))));
}

TEST_CASE("an output folder that cannot be made is an input error") {
  const Study study = read_study(read_toml(base, "a.toml"));
  for (const char* path : {"/proc/stepcast", "/dev/null/x"})
    CHECK_THROWS_AS(OutputFolder({path}, study, shipped_catalogue().directory()), InputError);
}
