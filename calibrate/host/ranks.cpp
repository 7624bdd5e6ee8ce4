#include "calibrate/host/ranks.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "engine/check.hpp"
#include "sim/program/installation.hpp"

namespace stepcast::calibrate::host {
namespace {

/// Its own process group, so that the end of it is the end of all ranks.
sim::Child started(std::int64_t count, std::string program) {
  if (program.empty()) program = sim::beside_program("stepcast-host-ranks");
  std::error_code error;
  if (!std::filesystem::exists(program, error))
    throw Unsupported("built without MPI: there is no " + program);
  try {
    return sim::Child({.words = sim::under_mpirun(count, {program}),
                       .in = sim::Stream::channel,
                       .out = sim::Stream::channel,
                       .errors = sim::Stream::channel,
                       .apart = true});
  } catch (const InputError& failure) {
    throw Unsupported(failure.what());
  }
}

}  // namespace

std::string ranks_library() { return sim::first_line_of({"mpirun", "--version"}); }

Ranks::Ranks(std::int64_t count, std::string program, Duration limit)
    : count_(count), limit_(limit), mpirun_(started(count, std::move(program))) {
  ask("hello");
}

Ranks::~Ranks() { end(); }

/// Closing their input ends them; who has not gone after two seconds is killed.
void Ranks::end() {
  mpirun_.channel().close();
  for (int i = 0; i < 200 && mpirun_.running(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  mpirun_.kill_now();
}

std::string Ranks::answer() {
  const auto deadline = sim::in_seconds(seconds(limit_));
  std::string said;  // lines that were no answers, for the error
  try {
    while (true) {
      const std::string line = mpirun_.channel().receive(deadline);
      if (line.starts_with("= ")) return line.substr(2);
      said += (said.empty() ? ": " : " | ") + line;
    }
  } catch (const sim::ChannelBroken&) {
    if (mpirun_.channel().gone()) throw Unsupported("the ranks under mpirun ended" + said);
    throw Unsupported(fmt::format("{} ranks under mpirun did not answer in time", count_));
  }
}

double Ranks::ask(const std::string& question) {
  if (mpirun_.channel().gone()) throw Unsupported("the ranks under mpirun ended");
  try {
    mpirun_.channel().send(question);
    const std::string reply = answer();
    std::istringstream in(reply);
    double value = 0;
    if (!(in >> value)) throw Unsupported("the ranks under mpirun: " + reply);
    return value;
  } catch (const sim::ChannelBroken&) {
    end();
    throw Unsupported("the ranks do not listen");
  } catch (...) {
    end();
    throw;
  }
}

double Ranks::check(const CollectiveTask& task, std::uint64_t seed) {
  return ask(fmt::format("check {} {} {}", task.collective, task.bytes.value, seed));
}

Duration Ranks::time(const CollectiveTask& task, std::int64_t repetitions) {
  return to_duration(
      ask(fmt::format("time {} {} {}", task.collective, task.bytes.value, repetitions)));
}

}  // namespace stepcast::calibrate::host
