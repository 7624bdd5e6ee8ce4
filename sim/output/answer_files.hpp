// The files of an answer in a folder of --out that is gone on with: those of an earlier, unfinished
// answer give way, anything else stays as it is. Knows no answer.
#pragma once

#include <string>

#include "sim/files/whole_file.hpp"

namespace stepcast::sim {

/// Writes over what the folder's mark says that stepcast wrote, as long as nobody changed it since;
/// of that goes what is not among `files`. Throws InputError (where: --out) where another file is
/// in the way, OutputError.
void write_answer_files(const std::string& folder, const NamedTexts& files);

}  // namespace stepcast::sim
