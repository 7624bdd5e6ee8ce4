#include "sim/results_file.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "made_up_answers.hpp"
#include "sim/hdf5_file.hpp"

using namespace stepcast;
using namespace stepcast::sim;
namespace fs = std::filesystem;

namespace {

/// A folder that is gone when the test ends.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("stepcast-test-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path(const std::string& name = {}) const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }

 private:
  fs::path path_;
};

const Catalogue& catalogue() {
  static const Catalogue shipped(STEPCAST_SOURCE_DIR "/scenarios");
  return shipped;
}

Results results_of(const std::string& text) {
  const auto step = [](const Scenario& s) {
    if (s.nodes == 2) throw NoFeasiblePlan("does not fit");
    return made_up_report(s);
  };
  Results results{read_study(read_toml(text, "a.toml")), {}, false};
  for (const SweepPoint& point : results.study.points)
    results.answers.push_back(answer(read_scenario(results.study.document_of(point), catalogue()),
                                     {step, made_up_collective}));
  return results;
}

const std::string base =
    "title = \"t\"\n[model]\nname = \"llama2-7b\"\n[batch]\nlocal = 2\n[cluster]\nnode = "
    "\"dgx-h100\"\n";

}  // namespace

TEST_CASE("--out writes columns with units, and NaN for refused points") {
  const Folder folder;
  prepare_output(folder.path());
  write_output(folder.path(), results_of(base + "[sweep]\n\"cluster.nodes\" = [1, 2, 4]\n"));

  const Hdf5Reader file(folder.path("results.h5"));
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
  prepare_output(folder.path());
  const Results sweep = results_of(base + "[sweep]\n\"cluster.nodes\" = [1, 4]\n");
  write_output(folder.path(), sweep);
  const Study again = read_study(read_toml_file(folder.path("scenario.toml")));
  REQUIRE(again.points.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const Scenario first = read_scenario(again.document_of(again.points[i]), catalogue());
    const Scenario resolved = read_scenario(
        read_toml_file(folder.path("points/000" + std::to_string(i + 1) + ".toml")), catalogue());
    CHECK(write_toml(resolved_document(first)) == write_toml(resolved_document(resolved)));
    CHECK(first.nodes == scenario_of(*sweep.answers[i]).nodes);
  }
}

TEST_CASE("a single run writes its resolved scenario") {
  const Folder folder;
  prepare_output(folder.path());
  const Results one = results_of(base);
  write_output(folder.path(), one);
  const Scenario read = read_scenario(read_toml_file(folder.path("scenario.toml")), catalogue());
  CHECK(write_toml(resolved_document(read)) ==
        write_toml(resolved_document(scenario_of(*one.answers[0]))));
}

TEST_CASE("an output folder that cannot be made is an input error") {
  CHECK_THROWS_AS(prepare_output("/proc/stepcast"), InputError);
  CHECK_THROWS_AS(prepare_output("/dev/null/x"), InputError);
}
