// Rows of a comparison: what the other simulator says, what we say, how far apart they may be.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stepcast::peers {

class PeerTable {
 public:
  explicit PeerTable(std::string peer);  // "SimGrid 3.32"

  /// Seconds of simulated time; `tolerance` as a share of the peer's.
  void add(const std::string& what, double peer, double ours, double tolerance);
  void print() const;
  bool all_agree() const { return all_agree_; }

 private:
  struct Row {
    std::string what;
    double peer, ours, tolerance;
    bool agrees;
  };
  std::string peer_;
  std::vector<Row> rows_;
  bool all_agree_ = true;
};

/// What `simulate` returns, in a process of its own: these simulators run once per process. Throws
/// when that process fails.
double in_own_process(const std::function<double()>& simulate);

}  // namespace stepcast::peers
