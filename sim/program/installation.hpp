// Where the running program finds what belongs to it: its sister programs beside it, and the
// shipped data beside it in a build folder, in share/stepcast of the prefix once installed. Reads
// nothing.
#pragma once

#include <string>

namespace stepcast::sim {

/// The file of that name in the folder of the running program, there or not; the bare name where
/// the system does not tell which program runs.
std::string beside_program(const std::string& name);

/// From here on this process, another program, has what belongs to the stepcast of that path: who
/// loads stepcast as a library says so before it asks for anything.
void stand_for(const std::string& program);

/// A file that the build made or that was installed, "published.h5": beside the program if it is
/// there, else in PREFIX/share/stepcast of a program in PREFIX/bin.
std::string shipped_file(const std::string& name);

/// A library that a program loads when it needs it, "stepcast_hdf5.so": beside the program if it is
/// there, else in PREFIX/lib/stepcast, with the system's own word for lib.
std::string shipped_library(const std::string& name);

/// The catalogue: where STEPCAST_DATA points, else PREFIX/share/stepcast/scenarios of an installed
/// program, else the folder that this was built from.
std::string catalogue_directory();

}  // namespace stepcast::sim
