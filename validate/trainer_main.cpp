// stepcast-trainer: a genuine distributed trainer on this machine's cores or on GPUs, to be
// measured beside what stepcast forecasts. Starts its ranks itself, and is each of them. The way
// through the program: main -> validate/trainer/run/command.cpp ->
// validate/trainer/ranks/process.cpp (the ranks) -> validate/trainer/run/run.cpp ->
// validate/trainer/model/step.cpp (one step).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/command_line.hpp"
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

/// One line, "stepcast-trainer: where: what, hint": of a rank, the launcher passes it on.
int report_error(int code, const std::string& where, const std::string& what,
                 const std::string& hint) {
  std::fprintf(stderr, "stepcast-trainer: %s%s%s%s\n", (where.empty() ? "" : where + ": ").c_str(),
               what.c_str(), hint.empty() ? "" : ", ", hint.c_str());
  return code;
}

int run(const std::vector<std::string>& words) {
  try {
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    return validate::command_trainer(words, self, machinery(), sim::Catalogue::standard());
  } catch (const sim::UsageError& error) {
    return report_error(sim::exit_usage, "", error.problem(), error.hint());
  } catch (const sim::OutputError& error) {
    return report_error(sim::exit_unwritten, error.where(), error.problem(), error.hint());
  } catch (const InputError& error) {
    return report_error(sim::exit_bad_input, error.where(), error.problem(), error.hint());
  } catch (const validate::PeerLost& error) {
    return report_error(sim::exit_rank_lost, "", error.what(), "");
  } catch (const std::exception& error) {
    return report_error(sim::exit_internal, "", std::string("internal error: ") + error.what(),
                        "please report it");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run({argv + 1, argv + argc});
  // A rank that fails leaves MPI without its farewell, for which the others would be waited for.
  if (code != 0 && validate::started_by_mpirun()) {
    std::fflush(nullptr);
    _exit(code);
  }
  return code;
}
