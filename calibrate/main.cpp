// stepcast-calibrate: measures a device; makes, shows, compares, exports and merges tables.
#include <cstdio>
#include <exception>

#include "calibrate/command/arguments.hpp"
#include "calibrate/command/commands.hpp"
#include "engine/check.hpp"
#include "sim/files/whole_file.hpp"
#include "sim/program/exit_codes.hpp"

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
    const int code = calibrate::run_command(arguments, sim::Catalogue::standard());
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fputs("stepcast-calibrate: standard output cannot be written\n", stderr);
    return sim::exit_unwritten;
  } catch (const calibrate::UsageError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n\n%s", error.what(), calibrate::usage());
    return sim::exit_usage;
  } catch (const sim::OutputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return sim::exit_unwritten;
  } catch (const stepcast::InputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return sim::exit_bad_input;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast-calibrate: internal error: %s\n", error.what());
    return sim::exit_internal;
  }
}
