// stepcast-sweep: a sweep whose points are handed out one after the other to the processes of MPI,
// for points of very unequal cost. Each keeps its own in the folder of --out, as a shard does.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/check.hpp"
#include "sim/command/answer_study.hpp"
#include "sim/command/program.hpp"
#include "sim/command/scenario_options.hpp"
#include "sim/files/printable.hpp"
#include "sim/output/stored_study.hpp"
#include "sim/program/interrupt.hpp"

namespace {

using namespace stepcast::sim;

enum Tag : int { want_tag = 1, points_tag = 2, bye_tag = 3 };

/// Points [begin, end).
using Chunk = std::array<std::int64_t, 2>;

int rank() {
  int out = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &out);
  return out;
}
int num_ranks() {
  int out = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &out);
  return out;
}

/// All points, in ever smaller chunks; nothing once the program is asked to stop.
class Pile {
 public:
  Pile(std::int64_t points, std::int64_t takers) : points_(points), takers_(takers) {}

  Chunk take() {
    const std::lock_guard lock(taking_);
    // An eighth of a fair share: whoever has the costly points does not keep the others waiting.
    const std::int64_t most = std::clamp<std::int64_t>((points_ - begun_) / (8 * takers_), 1, 32);
    const std::int64_t begin = begun_;
    begun_ = stop_requested() ? points_ : std::min(points_, begun_ + most);
    return stop_requested() ? Chunk{points_, points_} : Chunk{begin, begun_};
  }

 private:
  const std::int64_t points_, takers_;
  std::int64_t begun_ = 0;
  std::mutex taking_;
};

/// Waits without load: the cores are the points'.
void pause() { std::this_thread::sleep_for(std::chrono::microseconds(500)); }

/// Rank 0's: gives from the pile to the other ranks until each has said goodbye. The only thread of
/// its process that calls MPI.
void serve(Pile& pile) {
  for (int left = num_ranks() - 1; left > 0;) {
    int waiting = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, &status);
    if (waiting == 0) {
      pause();
      continue;
    }
    MPI_Recv(nullptr, 0, MPI_INT64_T, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (status.MPI_TAG == bye_tag) {
      --left;
      continue;
    }
    const Chunk chunk = pile.take();
    MPI_Send(chunk.data(), 2, MPI_INT64_T, status.MPI_SOURCE, points_tag, MPI_COMM_WORLD);
  }
}

Chunk ask_rank_0() {
  Chunk chunk{};
  MPI_Send(nullptr, 0, MPI_INT64_T, 0, want_tag, MPI_COMM_WORLD);
  MPI_Recv(chunk.data(), 2, MPI_INT64_T, 0, points_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return chunk;
}

/// Where this rank's threads get their points.
class PullQueue {
 public:
  PullQueue(std::int64_t points, std::int64_t threads)
      : first_(rank() == 0), pile_(points, num_ranks() * threads) {
    if (first_) server_ = std::jthread([this] { serve(pile_); });
  }
  /// Whatever became of this rank, rank 0 does not wait for it.
  ~PullQueue() {
    if (!first_) MPI_Send(nullptr, 0, MPI_INT64_T, 0, bye_tag, MPI_COMM_WORLD);
  }
  PullQueue(const PullQueue&) = delete;
  PullQueue& operator=(const PullQueue&) = delete;

  std::optional<std::size_t> next() {
    const std::lock_guard lock(asking_);
    if (chunk_[0] == chunk_[1] && !empty_) {
      chunk_ = first_ ? pile_.take() : ask_rank_0();
      empty_ = chunk_[0] == chunk_[1];
    }
    if (empty_) return std::nullopt;
    return static_cast<std::size_t>(chunk_[0]++);
  }

 private:
  const bool first_;
  Pile pile_;
  Chunk chunk_{};
  bool empty_ = false;
  std::mutex asking_;
  std::jthread server_;
};

/// Options of a sweep that say what to run.
const std::vector<Option>& queue_options() {
  static const std::vector<Option> options = [] {
    std::vector<Option> out;
    constexpr std::string_view shared[] = {"gpu",     "framework",  "nccl-env",     "set",
                                           "no-fold", "check-fold", "ignore-memory"};
    for (const Option& option : run_options())
      if (*option.key != '\0' || std::ranges::count(shared, option.name) > 0) out.push_back(option);
    out.insert(out.end(), {{"out", "DIR", "", "the folder of the sweep, shared by all processes"},
                           {"threads", "N", "", "points at once in each process (default: 1)"},
                           {"quiet", "", "", "no count of what is in DIR at the end"}});
    return out;
  }();
  return options;
}

Verb queue_verb() {
  return {"stepcast-sweep",
          "SCENARIO.toml",
          1,
          "Runs every point of a scenario's [sweep] under mpirun, each process the next point "
          "that is left. What is in --out DIR already is not run again.",
          queue_options(),
          "mpirun -np 4 stepcast-sweep scenarios/weak_scaling.toml --out DIR"};
}

int run_queue(const Arguments& arguments, const Catalogue& catalogue) {
  arguments.first("which scenario?");
  if (!arguments.has("out")) throw UsageError("--out DIR is missing", "where points are kept");
  stop_requested();  // before anything is read
  const Verb verb = queue_verb();
  StudyRequest request = request_of(asked_document(verb, arguments, catalogue), arguments);
  if (request.document.find("sweep") == nullptr)
    throw stepcast::InputError(request.document.where, "has no [sweep]",
                               "stepcast run answers a single scenario");
  const Study study = read_study(request.document);
  const auto points = static_cast<std::int64_t>(study.num_points());
  request.threads = arguments.has("threads") ? arguments.threads() : 1;
  request.quiet = true;
  request.output->resume = true;
  request.output->part = "rank-" + std::to_string(rank());
  const std::string folder = request.output->folder;
  const bool first = rank() == 0;
  int code = exit_ok;
  {
    PullQueue queue(points, request.threads);
    request.next = [&] { return queue.next(); };
    code = answer_study(std::move(request), verb, arguments, catalogue);
  }
  // Rank 0 is here after all others.
  if (first && !arguments.has("quiet")) tell(stdout, status_text(status_of(folder, study)));
  return code;
}

/// Help and mistakes in the command line need no other process.
bool needs_ranks(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words[0] == "completion" || words[0] == "manual") return false;
  try {
    const Verb verb = queue_verb();
    return !parse_arguments(verb, words).has("help");
  } catch (const UsageError&) {
    return false;
  }
}

/// Those that are done wait without load for the others.
void wait_for_all() {
  MPI_Request all{};
  MPI_Ibarrier(MPI_COMM_WORLD, &all);
  for (int done = 0; done == 0; pause()) MPI_Test(&all, &done, MPI_STATUS_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  const Command commands[] = {{queue_verb(), run_queue}};
  const Program program{"stepcast-sweep", "runs a sweep of stepcast over the processes of MPI",
                        commands};
  if (!needs_ranks(argc, argv)) return program_main(program, argc, argv);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fputs("stepcast-sweep: this MPI knows no threads\n", stderr);
    MPI_Finalize();
    return exit_skipped;
  }
  const int code = program_main(program, argc, argv);
  wait_for_all();
  MPI_Finalize();
  return code;
}
