#include "sim/processes/child.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "engine/check.hpp"

namespace stepcast::calibrate {
namespace {

/// This process's environment with `more` on top, as "NAME=value".
std::vector<std::string> environment_with(const ChildProcess::Environment& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!more.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : more) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
                           const Environment& more) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto environment = environment_with(more);
  const auto argument_pointers = pointers_to(words);
  const auto environment_pointers = pointers_to(environment);
  const int result = posix_spawn(&process_, program.c_str(), nullptr, nullptr,
                                 argument_pointers.data(), environment_pointers.data());
  if (result != 0) {
    process_ = 0;
    throw InputError(program, std::string("cannot be started: ") + std::strerror(result));
  }
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(process_, other.process_);
  return *this;
}

bool ChildProcess::running() {
  if (process_ == 0) return false;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) == 0) return true;
  process_ = 0;
  return false;
}

ChildProcess::~ChildProcess() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  int status = 0;
  waitpid(process_, &status, 0);
}

}  // namespace stepcast::calibrate
