#include "sim/program/installation.hpp"

#include <cstdlib>
#include <filesystem>

namespace stepcast::sim {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Of stand_for(); empty: the running program. /proc says nothing of whom a library belongs to.
fs::path& other_program() {
  static fs::path program;
  return program;
}

/// What an installed program ships, as the install rules of the top CMakeLists.txt lay it out.
fs::path installed(const std::string& name, const char* folder = "share") {
  return fs::path(beside_program("..")).lexically_normal() / folder / "stepcast" / name;
}

}  // namespace

void stand_for(const std::string& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  other_program() = error ? fs::path(program) : real;
}

std::string beside_program(const std::string& name) {
  if (!other_program().empty()) return (other_program().parent_path() / name).string();
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? name : (program.parent_path() / name).string();
}

std::string shipped_file(const std::string& name) {
  const std::string beside = beside_program(name);
  if (is_there(beside)) return beside;
  const fs::path shared = installed(name);
  return is_there(shared) ? shared.string() : beside;
}

std::string shipped_library(const std::string& name) {
  const std::string beside = beside_program(name);
  if (is_there(beside)) return beside;
  const fs::path library = installed(name, STEPCAST_LIBRARY_DIRECTORY);
  return is_there(library) ? library.string() : beside;
}

std::string catalogue_directory() {
  const char* chosen = std::getenv("STEPCAST_DATA");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const fs::path shared = installed("scenarios");
  return is_there(shared) ? shared.string() : STEPCAST_DATA_DIRECTORY;
}

}  // namespace stepcast::sim
