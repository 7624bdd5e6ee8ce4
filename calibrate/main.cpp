// stepcast-calibrate: makes, shows, exports and merges calibration tables.
// Exit codes: 0 ok, 1 internal, 2 usage, 3 bad input.
#include <boost/program_options.hpp>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "calibrate/export.hpp"
#include "calibrate/import.hpp"
#include "calibrate/show.hpp"
#include "engine/check.hpp"
#include "sim/calibration_table.hpp"
#include "sim/suggest.hpp"

namespace {

namespace po = boost::program_options;
namespace calibrate = stepcast::calibrate;
namespace sim = stepcast::sim;

constexpr const char* usage =
    "stepcast-calibrate: calibration tables (HDF5) from measurements\n\n"
    "  stepcast-calibrate import FILE.csv ... --out FILE.h5 [--title TITLE]\n"
    "  stepcast-calibrate show FILE.h5\n"
    "  stepcast-calibrate export --csv FILE.h5        writes CSV to standard output\n"
    "  stepcast-calibrate merge A.h5 B.h5 ... --out C.h5 [--title TITLE]\n"
    "                                                 later files win over equal keys\n";

/// The command line itself is wrong: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::string command;
  std::vector<std::string> files;
  std::string out, title, csv;
  bool help = false;
};

const std::vector<std::string> commands = {"import", "show", "export", "merge"};
const std::vector<std::string> options = {"--out", "--title", "--csv", "--help"};

std::string did_you_mean(const std::string& word, const std::vector<std::string>& words) {
  const auto near = sim::closest(word, words);
  return near ? ", did you mean " + *near + "?" : "";
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  po::options_description named;
  named.add_options()("out", po::value(&arguments.out))("title", po::value(&arguments.title))(
      "csv", po::value(&arguments.csv))("help,h", po::bool_switch(&arguments.help))(
      "command", po::value(&arguments.command))("file", po::value(&arguments.files));
  po::positional_options_description positional;
  positional.add("command", 1).add("file", -1);
  try {
    po::variables_map values;
    po::store(
        po::command_line_parser(argc, argv)
            .options(named)
            .positional(positional)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run(),
        values);
    po::notify(values);
  } catch (const po::unknown_option& error) {
    const std::string option = error.get_option_name();
    throw UsageError("unknown option " + option + did_you_mean(option, options));
  } catch (const po::error& error) {
    throw UsageError(error.what());
  }
  return arguments;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[sizeof "2026-11-21"];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

void need(bool condition, const char* what) {
  if (!condition) throw UsageError(what);
}

void run(const Arguments& arguments) {
  const std::string& command = arguments.command;
  const auto& files = arguments.files;
  if (command == "import") {
    need(!files.empty() && !arguments.out.empty(), "import needs FILE.csv ... --out FILE.h5");
    sim::CalibrationTable table = calibrate::import_files(files);
    table.title = arguments.title.empty() ? arguments.out : arguments.title;
    table.created = today();
    sim::write_calibration(arguments.out, table);
  } else if (command == "show") {
    need(files.size() == 1, "show needs one FILE.h5");
    std::fputs(calibrate::describe(sim::read_calibration(files[0])).c_str(), stdout);
  } else if (command == "export") {
    need(files.empty() && !arguments.csv.empty(), "export needs --csv FILE.h5");
    std::fputs(calibrate::export_csv(sim::read_calibration(arguments.csv)).c_str(), stdout);
  } else if (command == "merge") {
    need(files.size() >= 2 && !arguments.out.empty(), "merge needs A.h5 B.h5 ... --out C.h5");
    sim::CalibrationTable table = sim::read_calibrations(files);
    if (!arguments.title.empty()) table.title = arguments.title;
    sim::write_calibration(arguments.out, table);
  } else {
    throw UsageError("unknown command " + command + did_you_mean(command, commands));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments = parse(argc, argv);
    if (arguments.help) return std::fputs(usage, stdout) < 0 ? 1 : 0;
    if (arguments.command.empty()) throw UsageError("which command?");
    run(arguments);
    return 0;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n\n%s", error.what(), usage);
    return 2;
  } catch (const stepcast::InputError& error) {
    std::fprintf(stderr, "stepcast-calibrate: %s\n", error.what());
    return 3;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepcast-calibrate: internal error: %s\n", error.what());
    return 1;
  }
}
