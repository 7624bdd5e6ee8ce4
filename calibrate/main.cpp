// stepcast-calibrate: measures a device; makes, shows, compares, exports and merges tables.
// Exit codes: 0 ok, 1 internal, 2 usage, 3 bad input, 5 a kernel computed something wrong (all
// others are in the table), 130 interrupted.
#include <cstdio>
#include <exception>

#include "calibrate/arguments.hpp"
#include "calibrate/commands.hpp"
#include "engine/check.hpp"

namespace calibrate = stepcast::calibrate;

int main(int argc, char** argv) {
  try {
    const calibrate::Arguments arguments = calibrate::parse(argc, argv);
    if (arguments.help) return std::fputs(calibrate::usage(), stdout) < 0 ? 1 : 0;
    if (arguments.command.empty()) throw calibrate::UsageError("which command?");
    return calibrate::run_command(arguments);
  } catch (const calibrate::UsageError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n\n%s", error.what(), calibrate::usage());
    return 2;
  } catch (const stepcast::InputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast-calibrate: internal error: %s\n", error.what());
    return 1;
  }
}
