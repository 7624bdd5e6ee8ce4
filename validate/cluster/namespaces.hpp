// Namespaces without names: a program's own user, network, mount and process namespace, and network
// namespaces that descriptors hold. Whatever ends the program, nothing of them is left.
#pragma once

#include <functional>
#include <string>

#include "sim/processes/line_channel.hpp"

namespace stepcast::validate {

/// Runs `body` as the first process of namespaces of its own, in which it may make networks, and
/// returns what it returns. `scratch` of the body: an empty folder in memory, seen by nobody else.
/// The body and all that it starts end with this process. Throws sim::Failure (exit_skipped) with
/// one sentence where the kernel or the machine does not allow it.
int run_apart(const std::function<int(const std::string& scratch)>& body);

/// A new network namespace; the thread stays in its own. Programs that are started inherit it.
class NetworkNamespace {
 public:
  NetworkNamespace();
  int number() const { return held_.number(); }
  /// As `ip` of this process is to name it.
  std::string path() const;

 private:
  sim::Descriptor held_;
};

/// This thread is in another network namespace, and so is what it starts.
class Visit {
 public:
  explicit Visit(const NetworkNamespace& to);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  sim::Descriptor home_;
};

}  // namespace stepcast::validate
