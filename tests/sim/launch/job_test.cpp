#include "sim/launch/job.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/launch/launch_plans.hpp"

using namespace stepcast;
using namespace stepcast::sim;
using Catch::Matchers::Contains;

TEST_CASE("a job is the whole script around a launch") {
  const Scenario s = large("megatron-core", "data = \"zero1\"\ntensor = 8\npipeline = 4\n");
  const Launch launch = launch_of(s);
  const LaunchFile slurm = job_script(launch, s, {"slurm"});
  CHECK(slurm.name == "job.sbatch");
  for (const char* line : {"#SBATCH --nodes=64\n", "#SBATCH --gpus-per-node=8\n",
                           "export CUDA_DEVICE_MAX_CONNECTIONS=1\n", "--node-rank $SLURM_NODEID ",
                           "pretrain_gpt.py $(cat megatron.args) \"$@\"' job \"$@\"\n"})
    CHECK_THAT(slurm.text, Contains(line));
  // What nobody says is left open by its name, so that Slurm takes the cluster's own.
  for (const char* line : {"\n##SBATCH --time=\n", "\n##SBATCH --partition=\n"})
    CHECK_THAT(slurm.text, Contains(line));
  CHECK_THAT(slurm.text, !Contains("account"));
  const std::string said =
      job_script(launch, s, {"slurm", "1-04:00:00", "forecast", "h100", "mine"}).text;
  for (const char* line : {"\n# forecast\n#SBATCH --time=1-04:00:00\n",
                           "\n#SBATCH --partition=h100\n", "\n#SBATCH --account=mine\n"})
    CHECK_THAT(said, Contains(line));
  CHECK(slurm_time(59) == "00:01:00");
  CHECK(slurm_time(3 * 3600 + 1) == "03:01:00");
  CHECK(slurm_time(86400 * 2 + 90 * 60) == "2-01:30:00");
  const LaunchFile run = job_script(launch, s, {"torchrun"});
  CHECK(run.name == "run.sh");
  CHECK_THAT(run.text, Contains("torchrun --nnodes 64 --nproc-per-node 8 --node-rank $NODE_RANK"));
  const Scenario small = large("trl", "data = \"zero3\"\n");
  CHECK_THAT(job_script(launch_of(small), small, {"slurm"}).text,
             Contains("accelerate launch --num_machines 64 --machine_rank $SLURM_NODEID"));
}

TEST_CASE("a time is one of Slurm's forms") {
  for (const char* time : {"90", "90:00", "4:00:00", "1-4", "1-4:30", "1-04:30:00"})
    CHECK(is_slurm_time(time));
  for (const char* time : {"", "banana", "4h", "-4", "1-", "1:2:3:4", "4:", ":4", "1-2-3", "1.5"})
    CHECK_FALSE(is_slurm_time(time));
}
