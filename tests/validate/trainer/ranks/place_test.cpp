#include "validate/trainer/ranks/place.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

namespace stepcast::validate {
namespace {

using Variables = std::map<std::string, std::string>;

/// The environment of a process while it lives; what launchers set is taken away first.
class Environment {
 public:
  explicit Environment(const Variables& variables) : variables_(variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE",
          "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "SLURM_JOB_ID"})
      unsetenv(name);
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }

 private:
  Variables variables_;
};

}  // namespace

TEST_CASE("what the launcher writes into a rank's environment, the rank reads") {
  {
    const Environment environment({});
    CHECK_FALSE(own_place());
    CHECK_FALSE(launchers_place());
  }
  const Environment environment(
      environment_of({.rank = 3, .ranks = 8, .rendezvous = "/shared/run", .token = "abc"}));
  const auto place = own_place();
  REQUIRE(place);
  CHECK(place->rank == 3);
  CHECK(place->ranks == 8);
  CHECK(place->rendezvous == "/shared/run");
  CHECK(place->token == "abc");
  CHECK(place->listening == -1);
}

TEST_CASE("a rank of mpirun's, of PMI's and of srun's finds its place") {
  for (const Variables& variables :
       {Variables{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}},
        Variables{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
        Variables{{"SLURM_PROCID", "1"},
                  {"SLURM_STEP_NUM_TASKS", "4"},
                  {"SLURM_JOB_ID", "77"},
                  {"SLURM_STEP_ID", "0"}}}) {
    const Environment environment(variables);
    const auto place = launchers_place();
    REQUIRE(place);
    CHECK(place->rank == 1);
    CHECK(place->ranks == 4);
    CHECK(place->token == (variables.contains("SLURM_JOB_ID") ? "77-0" : ""));
  }
}

TEST_CASE("a batch script under Slurm is no rank, whatever its environment says") {
  const Environment environment(
      {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_JOB_ID", "77"}});
  CHECK_FALSE(launchers_place());
}

TEST_CASE("variables that are no numbers name no rank") {
  const Environment environment({{"OMPI_COMM_WORLD_RANK", "first"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  CHECK_FALSE(launchers_place());
}

}  // namespace stepcast::validate
