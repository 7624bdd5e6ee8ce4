// stepcast-calibrate: measures a device; makes, shows, compares, exports and merges tables.
#include <cstdio>
#include <exception>

#include "calibrate/arguments.hpp"
#include "calibrate/commands.hpp"
#include "engine/check.hpp"
#include "sim/exit_codes.hpp"

namespace calibrate = stepcast::calibrate;
namespace sim = stepcast::sim;

int main(int argc, char** argv) {
  try {
    const calibrate::Arguments arguments = calibrate::parse(argc, argv);
    if (arguments.help) {
      std::printf("%s\n%s", calibrate::usage(), sim::exit_codes_text().c_str());
      return sim::exit_ok;
    }
    if (arguments.command.empty()) throw calibrate::UsageError("which command?");
    return calibrate::run_command(arguments);
  } catch (const calibrate::UsageError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n\n%s", error.what(), calibrate::usage());
    return sim::exit_usage;
  } catch (const stepcast::InputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return sim::exit_bad_input;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast-calibrate: internal error: %s\n", error.what());
    return sim::exit_internal;
  }
}
