#include "tests/laws/law.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iostream>

#include "engine/check.hpp"
#include "sim/scenario/file.hpp"
#include "sim/told/json.hpp"
#include "tests/draws.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

/// The same scenarios in every run, others for each law, unless RC_PARAMS says otherwise.
rc::detail::Configuration configuration_of(const Law& law) {
  rc::detail::Configuration usual;
  usual.testParams.seed = 20261123;
  for (const char* c = law.name; *c != '\0'; ++c)
    usual.testParams.seed = 31 * usual.testParams.seed + static_cast<unsigned char>(*c);
  usual.testParams.maxSuccess =
      static_cast<int>(tests::draws(2 * static_cast<unsigned>(law.scenarios)));
  usual.testParams.maxDiscardRatio = 50;
  const char* asked = std::getenv("RC_PARAMS");
  return rc::detail::configFromString(asked != nullptr ? asked : "", usual);
}

/// RapidCheck's own would tell of a seed that no law takes.
struct Silent : rc::detail::TestListener {
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};

}  // namespace

bool holds(const Law& law, const std::function<void(const TomlValue&)>& claim) {
  std::int64_t drawn = 0, accepted = 0;
  const auto once = [&] {
    ++drawn;
    const TomlValue document = drawn_scenario(law.depth);
    RC_LOG() << write_toml(document);
    try {
      claim(document);
      ++accepted;
      return;
    } catch (const InputError&) {
    } catch (const NoFeasiblePlan&) {
    } catch (const BeyondClock&) {
    }
    RC_DISCARD();
  };
  const rc::detail::Configuration asked = configuration_of(law);
  Silent silent;
  const rc::detail::TestResult result =
      rc::detail::checkTestable(once, rc::detail::TestMetadata{law.name, law.name},
                                asked.testParams, silent, asked.reproduce);
  std::cout << fmt::format("{}: {} scenarios accepted of {} drawn, seed {}\n", law.name, accepted,
                           drawn, asked.testParams.seed);
  const bool held = result.is<rc::detail::SuccessResult>();
  if (!held) rc::detail::printResultMessage(result, std::cout);
  return held;
}

StepReport step_of(const TomlValue& document) {
  return session().step(read_scenario(document, catalogue()));
}

TomlValue with(TomlValue document, const char* path, const TomlValue& value) {
  set_path(document, path, value);
  return document;
}

TomlValue without_noise(TomlValue document) {
  erase_path(document, "noise");
  return document;
}

TomlValue pinned(TomlValue document) {
  set_path(document, "nccl.NCCL_ALGO", toml_text("Ring", "pinned"));
  set_path(document, "nccl.NCCL_PROTO", toml_text("Simple", "pinned"));
  return document;
}

std::string bits_of(const StepReport& report) { return to_json(Answer(report)); }

}  // namespace stepcast::sim::laws
