#include "calibrate/cuda/nccl_worker.hpp"

#include <fmt/format.h>

#include <exception>
#include <sstream>

#include "calibrate/cuda/kernel_task.hpp"
#include "calibrate/kernels/check.hpp"

namespace stepcast::calibrate {
namespace {

/// `stream >> ...` of a leader's line must succeed.
template <class... Values>
void read(const std::string& text, Values&... values) {
  std::istringstream words(text);
  if (!(words >> ... >> values)) throw InputError("worker", "\"" + text + "\" is not understood");
}

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

std::string times(const OverlapTimes& t) {
  return fmt::format("ok {} {}", t.kernel.count(), t.collective.count());
}

}  // namespace

NcclWorker::NcclWorker(int rank, int gpu) : rank_(rank), context_(gpu), stream_(make_stream()) {}

std::string NcclWorker::answer(const std::string& line) {
  const auto space = line.find(' ');
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  try {
    return done(line.substr(0, space), rest);
  } catch (const Unsupported& error) {
    return "no " + one_line(error.what());
  } catch (const std::exception& error) {
    return "fail " + one_line(error.what());
  }
}

std::string NcclWorker::done(const std::string& verb, const std::string& rest) {
  std::int64_t first = 0, second = 0;
  if (verb == "id") return "ok " + make_nccl_id();
  if (verb == "init") return start(rest);
  if (verb == "prepare") return prepare(rest);
  if (verb == "warm") return collective().warm_up(), "ok";
  if (verb == "error") return fmt::format("ok {}", collective().relative_error());
  if (verb == "run") {
    read(rest, first);
    return fmt::format("ok {}", collective().run(first).count());
  }
  if (verb == "beside") return prepare_kernel(rest);
  if (verb == "alone") {
    read(rest, first);
    return times(overlap().alone(first));
  }
  if (verb == "together") {
    read(rest, first, second);
    return times(overlap().together(first, second));
  }
  throw InputError("worker", "\"" + verb + "\" is no order");
}

std::string NcclWorker::start(const std::string& rest) {
  std::string id;
  int num_ranks = 0;
  read(rest, id, num_ranks);
  communicator_ = std::make_unique<NcclRank>(id, rank_, num_ranks, stream_.get());
  return "ok";
}

std::string NcclWorker::prepare(const std::string& rest) {
  if (!communicator_) throw InputError("worker", "a collective before init");
  std::string name;
  std::int64_t size = 0;
  std::uint64_t seed = 0;
  read(rest, name, size, seed);
  overlap_.reset();
  kernel_.reset();
  collective_.reset();  // its memory first
  collective_ = std::make_unique<NcclCollective>(*communicator_, name, Bytes(size), seed);
  return "ok";
}

std::string NcclWorker::prepare_kernel(const std::string& rest) {
  std::uint64_t seed = 0;
  read(rest, seed);
  overlap_.reset();
  kernel_.reset();
  const std::string words = rest.substr(rest.find(' ') + 1);
  const auto kernel = kernel_in(words);
  if (!kernel)
    throw InputError("worker", "\"" + words + "\" is no kernel",
                     "are both programs of the same version?");
  kernel_ = make_cuda_kernel(context_, *kernel, seed);
  overlap_ = std::make_unique<Overlap>(*kernel_, collective(), *communicator_);
  return "ok";
}

NcclCollective& NcclWorker::collective() {
  if (!collective_) throw InputError("worker", "no collective is prepared");
  return *collective_;
}

Overlap& NcclWorker::overlap() {
  if (!overlap_) throw InputError("worker", "no kernel is prepared");
  return *overlap_;
}

}  // namespace stepcast::calibrate
