// stepcast-trainer: a genuine distributed trainer on this machine's cores or on GPUs, to be
// measured beside what stepcast forecasts. Starts its ranks itself, and is each of them. The way
// through the program: main -> validate/trainer/run/command.cpp ->
// validate/trainer/ranks/process.cpp (the ranks) -> validate/trainer/run/run.cpp ->
// validate/trainer/model/step.cpp (one step).
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "sim/command/program.hpp"
#include "sim/program/installation.hpp"
#include "validate/trainer/ranks/place.hpp"
#include "validate/trainer/ranks/process.hpp"
#include "validate/trainer/run/command.hpp"
#ifdef STEPCAST_HAS_NCCL
#include "validate/trainer/device/gpu.hpp"
#endif
#ifdef STEPCAST_HAS_MPI
#include "validate/trainer/ranks/mpi.hpp"
#endif

namespace {

using namespace stepcast;

validate::Machinery machinery() {
  validate::Machinery machinery;
#ifdef STEPCAST_HAS_MPI
  machinery.mpi_rank = [](Duration patience, const auto& body) {
    validate::MpiSession session(patience, sim::exit_rank_lost);
    body(session.world());
  };
#endif
#ifdef STEPCAST_HAS_NCCL
  machinery.num_gpus = validate::num_gpus;
  machinery.gpu_makers = validate::gpu_makers;
#else
  const std::string other = sim::beside_program("stepcast-trainer-cuda");
  if (access(other.c_str(), X_OK) == 0) machinery.gpu_program = other;
#endif
  return machinery;
}

int train(const sim::Arguments& arguments, const sim::Catalogue& catalogue) {
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  return validate::command_trainer(arguments, self, machinery(), catalogue);
}

}  // namespace

int main(int argc, char** argv) {
  const sim::Command commands[] = {{validate::trainer_verb, train}};
  // All messages begin with the name: of a rank, the launcher passes them on by it.
  const int code =
      sim::program_main({"stepcast-trainer",
                         "trains a scenario's model on this machine and times it", commands, true},
                        argc, argv);
  // A rank that fails leaves MPI without its farewell, for which the others would be waited for.
  if (code != 0 && validate::started_by_mpirun()) {
    std::fflush(nullptr);
    _exit(code);
  }
  return code;
}
