// stepcast: forecasts one step of distributed LLM training on a GPU cluster.
// The way through the program: main -> sim/command/run.cpp -> sim/scenario/file.cpp (read) ->
// answer.cpp -> simulate.cpp -> engine/run.cpp (the event loop), and back through
// sim/told/text.cpp.
#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/command/commands.hpp"
#include "sim/page/page_verb.hpp"

namespace {

using namespace stepcast::sim;

constexpr const char* first_steps =
    "  stepcast run --model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1\n"
    "  stepcast collective all_reduce --gpu h100 --nodes 4 --bytes 1GiB --explain\n"
    "  stepcast show gpus --sort -memory --top 5\n";

}  // namespace

int main(int argc, char** argv) {
  std::vector<Command> commands = all_commands();
  const auto at = [&](std::string_view verb) {
    return std::ranges::find_if(
        commands, [&](const Command& command) { return command.verb.word() == verb; });
  };
  // Their room knows the commands.
  *at("report") = live_report_command();
  commands.insert(at("launch"), page_command());
  return program_main(
      {"stepcast", "forecasts one step of distributed LLM training on a GPU cluster", commands,
       false, first_steps},
      argc, argv);
}
