#include "sim/handout/stage_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/files/text_table.hpp"
#include "sim/why/logged_step.hpp"

namespace stepcast::sim {

std::string largest_loss(const StageTimes& t) {
  const std::pair<double, const char*> parts[] = {{t.exposed_s, "exposed communication"},
                                                  {t.bubble_s, "the pipeline's bubble"},
                                                  {t.wait_s, "waiting for the slowest"},
                                                  {t.host_s, "the host's launches"}};
  const double step_s = t.compute_s + t.exposed_s + t.bubble_s + t.wait_s + t.host_s;
  const auto& [lost_s, name] =
      *std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  return fmt::format("{} of the step computes; the largest loss is {}, {}",
                     percent(t.compute_s / step_s), name, percent(lost_s / step_s));
}

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
