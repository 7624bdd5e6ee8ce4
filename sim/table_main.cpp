// stepcast-table: measurements kept as CSV to a calibration table. The build makes the published
// table with it, so that `stepcast` needs no calibrate; users have stepcast-calibrate import.
#include <cstdio>
#include <exception>
#include <string>

#include "engine/check.hpp"
#include "sim/files/printable.hpp"
#include "sim/import/calibration_csv.hpp"
#include "sim/program/today.hpp"

int main(int argc, char** argv) {
  using namespace stepcast;
  if (argc < 4) {
    std::fputs("usage: stepcast-table OUT.h5 TITLE FILE.csv ...\n", stderr);
    return 2;
  }
  try {
    sim::CalibrationTable table;
    for (int i = 3; i < argc; ++i) sim::append(table, sim::import_csv(sim::read_csv(argv[i])));
    table.title = argv[2];
    table.created = sim::today();
    sim::write_calibration(argv[1], table);
    return 0;
  } catch (const InputError& error) {
    sim::tell(stderr, std::string(error.what()) + "\n");
    return 3;
  } catch (const std::exception& error) {
    sim::tell(stderr, std::string("stepcast-table: internal error: ") + error.what() + "\n");
    return 1;
  }
}
