#include "sim/handout/stage_times.hpp"

#include <algorithm>
#include <numeric>

#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

std::vector<StageTimes> stage_times(const Scenario& scenario, Session& session) {
  Scenario quiet = scenario;
  quiet.noise = {};
  const LoggedStep step(quiet, session);
  const auto& roles = step.system().role_of_rank;
  std::vector<StageTimes> out(step.system().roles.size());
  std::vector<double> many(out.size());
  for (std::size_t r = 0; r < roles.size(); ++r) {
    StageTimes& stage = out[roles[r]];
    const engine::RankAccount& a = step.result().ranks[r];
    const auto n = static_cast<double>(step.fold().multiplicity[r]);
    const std::int64_t rank = step.rank(static_cast<std::uint32_t>(r));
    stage.rank = many[roles[r]] == 0 ? rank : std::min(stage.rank, rank);
    many[roles[r]] += n;
    stage.compute_s += n * seconds(a.compute);
    stage.exposed_s += n * seconds(std::accumulate(a.exposed.begin(), a.exposed.end(), Duration{}));
    stage.bubble_s += n * seconds(a.bubble);
    stage.wait_s += n * seconds(a.wait);
    stage.host_s += n * seconds(a.host);
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    for (double* part :
         {&out[i].compute_s, &out[i].exposed_s, &out[i].bubble_s, &out[i].wait_s, &out[i].host_s})
      *part /= std::max(many[i], 1.0);
  return out;
}

}  // namespace stepcast::sim
