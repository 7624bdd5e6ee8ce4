// stepcast: forecasts one step of distributed LLM training on a GPU cluster.
// The way through the program: main -> sim/command/run.cpp -> sim/scenario/file.cpp (read) ->
// answer.cpp -> simulate.cpp -> engine/run.cpp (the event loop), and back through
// sim/told/text.cpp.
#include "sim/command/commands.hpp"
#include "sim/page/page_verb.hpp"

namespace {

using namespace stepcast::sim;

constexpr Verb calibrate_verb{"stepcast calibrate",
                              "VERB [arguments]",
                              0,
                              "Measures this machine, imports measurements (stepcast-calibrate).",
                              {},
                              "stepcast calibrate --help"};
constexpr Verb validate_verb{"stepcast validate",
                             "VERB [arguments]",
                             0,
                             "Measured beside simulated (stepcast-validate).",
                             {},
                             "stepcast validate --help"};
constexpr Verb diagnose_verb{"stepcast diagnose",
                             "FILE...",
                             1 << 20,
                             "Why a run of your own is slower than expected (stepcast-validate).",
                             {},
                             "stepcast diagnose train.log"};

constexpr const char* first_steps =
    "  stepcast run --model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1\n"
    "  stepcast collective all_reduce --gpu h100 --nodes 4 --bytes 1GiB --explain\n"
    "  stepcast show gpus --sort -memory --top 5\n";

}  // namespace

int main(int argc, char** argv) {
  const Command commands[] = {run_command(),
                              sweep_command(),
                              collective_command(),
                              search_command(),
                              design_command(),
                              compare_command(),
                              why_command(),
                              export_command(),
                              replay_command(),
                              goodput_command(),
                              report_command(),
                              page_command(),
                              launch_command(),
                              convert_command(),
                              show_command(),
                              explain_command(),
                              import_model_command(),
                              {diagnose_verb, nullptr, "stepcast-validate", "diagnose"},
                              new_command(),
                              {calibrate_verb, nullptr, "stepcast-calibrate"},
                              {validate_verb, nullptr, "stepcast-validate"}};
  return program_main(
      {"stepcast", "forecasts one step of distributed LLM training on a GPU cluster", commands,
       false, first_steps},
      argc, argv);
}
