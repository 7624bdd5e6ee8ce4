#include "validate/trainer/ranks/place.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>

#include "sim/processes/meeting.hpp"

namespace stepcast::validate {
namespace {

constexpr const char* rank_variable = "STEPCAST_TRAINER_RANK";
constexpr const char* ranks_variable = "STEPCAST_TRAINER_RANKS";
constexpr const char* rendezvous_variable = "STEPCAST_TRAINER_RENDEZVOUS";
constexpr const char* socket_variable = "STEPCAST_TRAINER_SOCKET";

std::optional<std::string> text_in(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::int64_t> number_in(const char* name) {
  const auto text = text_in(name);
  if (!text || text->empty() || text->size() > 9 ||
      text->find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stol(*text);
}

/// A word without spaces.
std::string token_of(std::initializer_list<const char*> names) {
  std::string token;
  for (const char* name : names) {
    const auto text = text_in(name);
    if (!text || text->empty()) return {};
    token += (token.empty() ? "" : "-") + *text;
  }
  std::ranges::replace(token, ' ', '_');
  return token;
}

}  // namespace

std::optional<RankPlace> own_place() {
  const auto rank = number_in(rank_variable), ranks = number_in(ranks_variable);
  const auto rendezvous = text_in(rendezvous_variable);
  if (!rank || !ranks || !rendezvous) return std::nullopt;
  return RankPlace{.rank = *rank,
                   .ranks = *ranks,
                   .rendezvous = *rendezvous,
                   .token = sim::token_in_environment(),
                   .listening = static_cast<int>(number_in(socket_variable).value_or(-1))};
}

std::map<std::string, std::string> environment_of(const RankPlace& place) {
  std::map<std::string, std::string> environment{{rank_variable, std::to_string(place.rank)},
                                                 {ranks_variable, std::to_string(place.ranks)},
                                                 {rendezvous_variable, place.rendezvous}};
  if (!place.token.empty()) environment[sim::token_variable] = place.token;
  if (place.listening >= 0) environment[socket_variable] = std::to_string(place.listening);
  return environment;
}

/// Open MPI, then what speaks PMI (MPICH, Intel MPI), then srun, whose variables a batch script has
/// as well, but not those of a step.
std::optional<RankPlace> launchers_place() {
  struct Launcher {
    const char *rank, *ranks;
    std::string token;
  };
  std::array<Launcher, 3> launchers{{
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", token_of({"PMIX_NAMESPACE"})},
      {"PMI_RANK", "PMI_SIZE", token_of({"PMI_KVS"})},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", token_of({"SLURM_JOB_ID", "SLURM_STEP_ID"})},
  }};
  if (!text_in("SLURM_STEP_ID")) launchers[2].rank = "";
  for (const Launcher& launcher : launchers) {
    const auto rank = number_in(launcher.rank), ranks = number_in(launcher.ranks);
    if (!rank || !ranks) continue;
    const std::string given = sim::token_in_environment();
    return RankPlace{
        .rank = *rank, .ranks = *ranks, .token = given.empty() ? launcher.token : given};
  }
  return std::nullopt;
}

bool started_by_mpirun() { return text_in("OMPI_COMM_WORLD_SIZE").has_value(); }

}  // namespace stepcast::validate
