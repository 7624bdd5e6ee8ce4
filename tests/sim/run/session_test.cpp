// A session: each file read once, answers that depend neither on what was asked before nor on the
// threads that ask.
#include "sim/run/session.hpp"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/check.hpp"
#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "sim/study/answer.hpp"
#include "tests/own_folder.hpp"
#include "tests/session.hpp"

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

Scenario step_of(const Catalogue& catalogue, int nodes, const std::string& more = "") {
  return read_scenario(
      read_toml("[model]\nname = \"llama2-1b\"\n[cluster]\nnode = \"dgx-h100\"\nnodes = " +
                    std::to_string(nodes) + "\n[batch]\nlocal = 2\n" + more,
                "a.toml"),
      catalogue);
}

Scenario collective_of(const Catalogue& catalogue, int nodes, const std::string& bytes) {
  return read_scenario(
      read_toml("[cluster]\nnode = \"dgx-h100\"\nnodes = " + std::to_string(nodes) +
                    "\n[collective]\nkind = \"all_gather\"\nbytes = \"" + bytes + "\"\n",
                "a.toml"),
      catalogue);
}

std::vector<Scenario> many(const Catalogue& catalogue) {
  std::vector<Scenario> out;
  for (const int nodes : {1, 2, 4, 8})
    for (const char* more : {"", "[plan]\ntensor = 2\n", "[plan]\ndata = \"zero3\"\n"})
      out.push_back(step_of(catalogue, nodes, more));
  for (const int nodes : {1, 2, 3, 4})
    for (const char* bytes : {"1 KiB", "1 MiB", "1 GiB"})
      out.push_back(collective_of(catalogue, nodes, bytes));
  return out;
}

Duration time_of(const Answer& answer) {
  if (const auto* report = std::get_if<StepReport>(&answer)) return report->step_time;
  return std::get<CollectiveReport>(answer).time.duration;
}

/// A copy of the shipped catalogue that goes with it.
struct CopiedCatalogue {
  fs::path folder = tests::own_folder() / ("stepcast_catalogue_" + std::to_string(getpid()));
  CopiedCatalogue() {
    fs::remove_all(folder);
    fs::copy(STEPCAST_SOURCE_DIR "/scenarios", folder, fs::copy_options::recursive);
  }
  ~CopiedCatalogue() { fs::remove_all(folder); }
};

}  // namespace

TEST_CASE("a further point of a session reads no file") {
  const CopiedCatalogue copy;
  const Catalogue catalogue(copy.folder.string());
  Session session(catalogue);
  const auto both = [&] {
    return std::pair(session.step(step_of(catalogue, 2)).step_time,
                     session.collective(collective_of(catalogue, 2, "1 MiB")).time.duration);
  };
  const auto first = both();
  fs::remove_all(copy.folder);
  CHECK(both() == first);
  CHECK(session.step(step_of(catalogue, 4)).step_time > Duration(0));
}

TEST_CASE("threads that share a session get what one alone gets, each time") {
  const std::vector<Scenario> scenarios = many(catalogue());
  std::vector<Duration> alone;
  for (const Scenario& scenario : scenarios) {
    Session own(catalogue());  // knows nothing of the others
    alone.push_back(time_of(answer(scenario, simulator_of(own))));
  }
  Session shared(catalogue());
  const std::atomic<bool> stop = false;
  for (const unsigned threads : {1U, 4U, 8U}) {
    std::vector<Duration> times(scenarios.size());
    for_each_index(times.size(), threads, stop, [&](std::size_t i) {
      times[i] = time_of(answer(scenarios[i], simulator_of(shared)));
    });
    for (std::size_t i = 0; i < scenarios.size(); ++i) {
      CAPTURE(threads, i);
      CHECK(times[i] == alone[i]);
    }
  }
}

TEST_CASE("rows of a GPU's kin answer as all rows do, whichever GPU was asked for first") {
  // The same table by another name is read whole.
  const std::string whole = STEPCAST_BINARY_DIR "/published.h5";
  const auto of_gpu = [](const std::string& gpu, const std::string& table) {
    TomlValue document = read_toml(
        "[model]\nname = \"llama2-1b\"\n[cluster]\nnodes = 2\n[batch]\nlocal = 2\n"
        "[calibration]\ntables = [\"" +
            table + "\"]\n",
        "a.toml");
    set_path(document, "cluster.node", catalogue().node_of_gpu(gpu, "a.toml").value("a.toml"));
    Scenario out = read_scenario(document, catalogue());
    out.run.ignore_memory = true;
    return out;
  };
  std::vector<std::string> gpus;
  for (const GpuIdentity& one : catalogue().gpus().all())
    if (!one.gpu.architecture.host) gpus.push_back(one.gpu.name);
  REQUIRE(gpus.size() > 10);
  Session forward(catalogue()), backward(catalogue()), all(catalogue());
  std::vector<StepReport> first, second(gpus.size());
  for (const std::string& gpu : gpus) first.push_back(forward.step(of_gpu(gpu, "published")));
  for (std::size_t i = gpus.size(); i-- > 0;) {
    Session alone(catalogue());
    second[i] = backward.step(of_gpu(gpus[i], "published"));
    const StepReport by_itself = alone.step(of_gpu(gpus[i], "published")),
                     by_all = all.step(of_gpu(gpus[i], whole));
    INFO(gpus[i]);
    for (const StepReport& other : {second[i], by_itself, by_all}) {
      CHECK(other.step_time == first[i].step_time);
      CHECK(other.kernel_provenance == first[i].kernel_provenance);
      CHECK(other.network_provenance == first[i].network_provenance);
      CHECK(other.power_per_gpu == first[i].power_per_gpu);
    }
  }
}

TEST_CASE("threads that start at once read scenarios from one catalogue") {
  const Catalogue fresh(STEPCAST_SOURCE_DIR "/scenarios");
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] { right += step_of(fresh, 2).node.gpus == 8 ? 1 : 0; });
  }
  CHECK(right == 8);
}

TEST_CASE("a step that cannot be simulated leaves the session as it was") {
  Session session(catalogue());
  const Duration before = session.step(step_of(catalogue(), 1)).step_time;
  Scenario lacking = step_of(catalogue(), 1);
  lacking.tables = {"/nowhere.h5"};
  CHECK_THROWS_AS(session.step(lacking), InputError);
  CHECK_THROWS_AS(session.step(lacking), InputError);
  CHECK(session.step(step_of(catalogue(), 1)).step_time == before);
}

TEST_CASE("a cache makes a value once, holds as many as it may, and forgets the oldest") {
  Cache<int, int> cache(3);
  int made = 0;
  const auto twice = [&](int key) { return *cache.get(key, [&] { return ++made, 2 * key; }); };
  for (const int key : {1, 2, 3, 1, 2, 3}) CHECK(twice(key) == 2 * key);
  CHECK(made == 3);
  twice(4);  // in 1's place
  CHECK(cache.size() == 3);
  twice(2);
  CHECK(made == 4);
  twice(1);
  CHECK(made == 5);
  const auto held = cache.get(7, [] { return 7; });
  for (int key = 10; key < 20; ++key) twice(key);
  CHECK(*held == 7);  // dropped, and still good
  CHECK(cache.size() == 3);
}

TEST_CASE("of a value that threads want at once, one makes it") {
  Cache<int, int> cache(2);
  std::atomic<int> made = 0, sum = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (int round = 0; round < 100; ++round) sum += *cache.get(1, [&] { return ++made; });
      });
  }
  CHECK(made == 1);
  CHECK(sum == 800);
}

TEST_CASE("what could not be made is tried again") {
  Cache<int, int> cache(2);
  CHECK_THROWS_AS(cache.get(1, []() -> int { throw InputError("here", "no"); }), InputError);
  CHECK(*cache.get(1, [] { return 5; }) == 5);
}

}  // namespace stepcast::sim
