#!/bin/sh
# Every function that opens or parses what a user hands in is fed by a reader of fuzz/readers.cpp,
# or stands below with the reason why not; every reader has inputs to begin with.
#   sh fuzz/list.sh BUILD/stepcast_replay SOURCE
set -eu
replay=$1
cd "$2"

not_fuzzed="
read_file read_input read_run_file read_diagnose_files read_toml_file read_csv read_toml_text read_bytes  files of those that take their text
read_identity read_members read_run_goal read_cost read_site read_power read_failures  by scenario
read_stragglers read_without read_setting  by scenario
read_exchange_kernels read_network_constants read_nccl_tuning  catalogue files: by scenario's reader
read_cluster_file read_framework_file read_published read_named read_family  ours, beside the published rows
read_plain_toml read_any_toml  the halves of read_toml
read_evidence read_outline read_table read_own_runs read_pairs  lists of files of which residuals is one
read_orders read_topology read_calibrations read_columns read_timeline  files of those that are here
read_results read_shard read_mark read_lines read_step_row  written and read by us alone
read_side read_around read_events read_layers  parts of those that are here
read_crossovers read_study_sets  tables of csv and toml, cell by cell
read_scenario_input  by the readers of scenarios and launch files
read_element read_times parse_arguments parse_cell  no file
"
failed=0
functions=$(grep -rhoE '\b(read|parse|import)_[a-z0-9_]+\(' --include='*.hpp' sim calibrate validate \
  | tr -d '(' | sort -u)
for function in $functions; do
  case $function in
    *_command | parse_arguments) continue ;;
  esac
  grep -q "\b$function(" fuzz/readers.cpp && continue
  echo "$not_fuzzed" | grep -qw "$function" && continue
  # Declared, not only called in a header?
  grep -rqE "^[A-Za-z0-9:<>_ ]+ $function\(" --include='*.hpp' sim calibrate validate || continue
  echo "$function has no reader in fuzz/readers.cpp, and no reason in fuzz/list.sh"
  failed=1
done
for reader in $("$replay" --list); do
  [ -d "fuzz/corpus/$reader" ] && continue
  grep -q "^$reader " fuzz/seeds.txt && continue
  echo "$reader has neither fuzz/corpus/$reader nor a line in fuzz/seeds.txt"
  failed=1
done
exit $failed
