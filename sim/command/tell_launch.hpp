// What stepcast launch and stepcast convert share.
#pragma once

#include "sim/files/toml_value.hpp"
#include "sim/launch/job.hpp"
#include "sim/launch/launch.hpp"
#include "sim/program/command_line.hpp"
#include "sim/scenario/catalogue.hpp"
#include "sim/scenario/scenario.hpp"

namespace stepcast::sim {

/// --job, and what Slurm asks for beside it.
inline constexpr Option job_option{
    "job", job_kinds, "", "also a whole script around it: meeting place, environment, command"};
inline constexpr Option job_time_option{
    "job-time", "TIME", "",
    "of --job slurm: 4:00:00; else what run_goal.tokens are forecast to take"};
inline constexpr Option job_partition_option{"job-partition", "NAME", "",
                                             "of --job slurm: the partition that it runs in"};
inline constexpr Option job_account_option{"job-account", "NAME", "",
                                           "of --job slurm: the account that pays for it"};

/// What --job asks for, looked at before anything is computed; no kind: nothing. Throws UsageError
/// for words of Slurm without it, or that are none.
JobRequest asked_job(const Arguments& arguments);

/// Adds the script that --job asks for. Throws as asked_job, and InputError where the launch has no
/// command. A time that cannot be forecast is a note.
void add_job(Launch& launch, const Scenario& scenario, const Arguments& arguments,
             const Catalogue& catalogue);

/// The one plan of a document. Throws InputError where it has several, or open degrees.
Scenario launched(TomlValue document, const Catalogue& catalogue);

/// Prints its files, or writes them to --out; what they do not say goes to standard error. Throws
/// InputError where the framework cannot be told the plan.
int tell_launch(Launch launch, const Scenario& scenario, const Arguments& arguments,
                const Catalogue& catalogue);

}  // namespace stepcast::sim
