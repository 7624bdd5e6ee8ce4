// A session that answers one command line after another within this process: what a Python program
// or a page holds. It knows run, sweep, collective, compare and search with --json. All else,
// mistakes among it, it leaves to the program, so that both say the same.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/confidence/confidence.hpp"
#include "sim/program/command_line.hpp"
#include "sim/run/session.hpp"
#include "sim/scenario/catalogue.hpp"

namespace stepcast::sim {

/// The verbs that a Keeper answers: "run".
std::vector<std::string> resident_verbs();

/// Keeps what the program would read once, at its start.
class Keeper {
 public:
  using Words = std::vector<std::string>;

  /// `program`: the path of the stepcast whose files these are. Throws InputError where the
  /// catalogue cannot be read.
  explicit Keeper(const std::string& program);

  /// What `stepcast WORDS` prints, --json among the words; none where the program is to be asked,
  /// and where `stop` became true meanwhile.
  std::optional<std::string> answer(const Words& words, const std::atomic<bool>& stop);

  /// Why the scenario that the words ask for is refused when it is read, as the program's --json
  /// says it; none where it is not. Nothing is simulated.
  std::optional<std::string> refusal(const Words& words) const;

 private:
  std::optional<std::string> answer_to(const Verb& verb, const Words& words,
                                       const std::atomic<bool>& stop);
  std::optional<std::string> compare(const Arguments& arguments, const std::atomic<bool>& stop);
  std::optional<std::string> search(const Verb& verb, const Arguments& arguments,
                                    const std::atomic<bool>& stop);
  std::optional<std::string> answer_study(const Verb& verb, const Arguments& arguments,
                                          const std::atomic<bool>& stop);

  Catalogue catalogue_;
  Session session_;
  std::shared_ptr<Confidence> confidence_;
};

}  // namespace stepcast::sim
