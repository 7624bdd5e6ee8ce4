// stepcast-calibrate: measures a device; makes, shows, compares, exports and merges tables.
#include "calibrate/command/commands.hpp"

int main(int argc, char** argv) {
  using namespace stepcast::calibrate;
  const stepcast::sim::Command commands[] = {
      run_command(),    import_command(), import_node_command(), tuning_command(),
      show_command(),   report_command(), card_command(),        diff_command(),
      export_command(), merge_command(),  fit_network_command()};
  return stepcast::sim::program_main(
      {"stepcast-calibrate", "makes calibration tables (HDF5) from measurements", commands}, argc,
      argv);
}
