// A program started beside this one, with more environment; it is killed when its owner is done.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace stepcast::calibrate {

class ChildProcess {
 public:
  using Environment = std::map<std::string, std::string>;

  /// Throws InputError where the program cannot be started.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
               const Environment& more);
  ChildProcess(ChildProcess&& other) noexcept : process_(other.process_) { other.process_ = 0; }
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();
  bool running();

 private:
  pid_t process_ = 0;
};

}  // namespace stepcast::calibrate
