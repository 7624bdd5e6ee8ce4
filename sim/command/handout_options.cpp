#include "sim/command/handout_options.hpp"

#include <cstdio>

#include "sim/command/next_question.hpp"
#include "sim/files/printable.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/interrupt.hpp"

namespace stepcast::sim {

HandoutFiles handout_files(const Arguments& arguments) {
  return {arguments.get("report"), arguments.get("svg")};
}

Origin origin_of(const Verb& verb, const Arguments& arguments) {
  return {command_words(verb, arguments)};
}

bool handed_out(const HandoutFiles& files, const std::function<Told()>& page) {
  try {
    write_handout(files, page());
    return true;
  } catch (const OutputError& error) {
    tell(stderr, std::string(error.what()) + "\n");
    return false;
  }
}

void check_handout(const Arguments& arguments, bool one_step) {
  if (arguments.has("no-alternatives") && !(one_step && handout_files(arguments).any()))
    throw UsageError("--no-alternatives is for the --report or --svg of one step");
}

Told answer_page(const Answer& answer, const Verb& verb, const Arguments& arguments,
                 Session& session) {
  const Origin origin = origin_of(verb, arguments);
  if (const auto* refused = std::get_if<Refused>(&answer))
    return refused_page(refused->scenario, refused->reason, session.catalogue(), origin);
  if (std::holds_alternative<CollectiveReport>(answer))
    throw UsageError("a report is of training steps", "stepcast collective --explain says more");
  const auto& report = std::get<StepReport>(answer);
  const StepHandoutOptions options{.alternatives = !arguments.has("no-alternatives"),
                                   .threads = arguments.threads()};
  return step_page(step_handout(report, session, options, stop_requested()), session.catalogue(),
                   origin);
}

}  // namespace stepcast::sim
