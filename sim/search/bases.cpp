#include "sim/search/bases.hpp"

#include <cstdint>
#include <cstdio>

#include "sim/launch/launch.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/file.hpp"

namespace stepcast::sim {
namespace {

/// Frameworks that are tried where the user names none: what plans of today run on.
constexpr const char* usual_frameworks[] = {"pytorch-fsdp2", "megatron-core", "torchtitan"};

}  // namespace

std::vector<Scenario> search_bases(TomlValue document, const Catalogue& catalogue) {
  const bool named = document.find("software") != nullptr &&
                     document.find("software")->find("framework") != nullptr;
  set_path(document, "plan.tensor", toml_text("best", "stepcast search"));
  std::vector<Scenario> out;
  const auto add = [&] {
    Scenario s = read_scenario(document, catalogue);
    if (s.collective) throw UsageError("a search is for a training step's plan");
    if (s.noise.on() && out.empty())
      std::fputs("stepcast: [noise] is left out: plans are compared without it\n", stderr);
    s.noise = {};
    out.push_back(std::move(s));
  };
  if (named) {
    add();
    return out;
  }
  for (const char* name : usual_frameworks) {
    set_path(document, "software.framework", toml_text(name, "stepcast search"));
    add();
  }
  return out;
}

namespace {

/// Whether its framework has words for the model and the rest, however data ranks share states.
bool can_be_launched(Scenario s) {
  using enum workloads::DataParallel;
  for (const workloads::DataParallel data : {ddp, zero1, zero2, zero3}) {
    s.plan.data = data;
    if (launch_of(s).why_not.empty()) return true;
  }
  return false;
}

}  // namespace

std::function<std::string(const Scenario&)> refusal_by_launch(const SearchSpace& space) {
  std::vector<bool> has_form;
  for (std::size_t i = 0; i < space.bases().size(); ++i) {
    const auto first = space.first_plan(static_cast<std::uint8_t>(i));
    has_form.push_back(first && can_be_launched(space.scenario_of(*first)));
  }
  return [&space, has_form](const Scenario& s) {
    for (std::size_t i = 0; i < has_form.size(); ++i)
      if (has_form[i] && same_framework(space.bases()[i].software, s.software))
        return launch_of(s).why_not;
    return std::string();
  };
}

}  // namespace stepcast::sim
