#include "sim/output/study_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>

#include "engine/check.hpp"
#include "sim/output/crash_note.hpp"
#include "sim/output/folder.hpp"
#include "sim/program/parallel.hpp"
#include "sim/told/json.hpp"

namespace stepcast::sim {
namespace {

/// Whether every point so far was refused for the same mistake: then it is the document's.
class SharedMistake {
 public:
  void refused(const InputError& error) {
    if (!first_) first_ = error;
    shared_ = shared_ && first_->problem() == error.problem();
  }
  void answered() { shared_ = false; }
  bool shared() const { return shared_; }
  void throw_if_shared() const {
    if (shared_ && first_) throw InputError(*first_);
  }

 private:
  std::optional<InputError> first_;
  bool shared_ = true;
};

/// Reads points until one differs: usually the first. At most this many, spread over the sweep.
constexpr std::size_t most_tried = 1000;

void refuse_shared_mistake(const Study& study, const StudyRun& run) {
  SharedMistake mistake;
  const std::size_t last = study.num_points() - 1, tried = std::min(last, most_tried - 1);
  for (std::size_t i = 0; i <= tried && mistake.shared() && !run.stop; ++i) {
    const std::size_t at = tried == 0 ? 0 : last * i / tried;
    try {
      run.read(study.document_of(study.point(at)));
      mistake.answered();
    } catch (const InputError& error) {
      mistake.refused(error);
    }
  }
  if (!run.stop) mistake.throw_if_shared();
}

/// What points would have run with, one for each software and NCCL, as far as they can be read:
/// with open degrees nothing has to divide.
std::vector<Scenario> asked_software(const Study& study, const StudyRun& run) {
  std::vector<Scenario> out;
  for (std::size_t i = 0; i < std::min(study.num_points(), most_tried) && !run.stop; ++i) {
    TomlValue document = study.document_of(study.point(i));
    if (document.find("collective") == nullptr)
      for (const char* degree : {"plan.tensor", "plan.pipeline"})
        set_path(document, degree, toml_text("best", document.where));
    try {
      Scenario asked = run.read(document);
      if (std::ranges::none_of(out, [&](const Scenario& known) {
            return known.software == asked.software && known.nccl == asked.nccl;
          }))
        out.push_back(std::move(asked));
    } catch (const InputError&) {
      continue;
    }
  }
  return out;
}

/// The rows of one run, as its threads finish them.
class Sweep {
 public:
  Sweep(Results& results, const StudyRun& run) : results_(results), run_(run) {}

  void work(std::size_t at) {
    const SweepPoint point = results_.study.point(at);
    const TomlValue document = results_.study.document_of(point);
    PointId id;
    std::string row;
    std::optional<InputError> mistake;
    try {
      const Scenario scenario = run_.read(document);
      if (run_.folder != nullptr) id = run_.folder->id_of(scenario, point);
      if (knows(id, at) || run_.only_known) return;
      refuse_crashing(id);
      std::optional<CrashNote> note;
      if (run_.folder != nullptr && run_.folder->own_file() != nullptr)
        note.emplace(*run_.folder->own_file(), id);
      const Answer done = answer(scenario, run_.simulator);
      if (run_.folder != nullptr && results_.rows.size() <= most_to_read)
        run_.folder->write_point(at, scenario_of(done));
      row = point_json(done, point);
    } catch (const InputError& error) {
      if (run_.folder != nullptr && id.empty()) {
        id = run_.folder->id_of(document);
        if (knows(id, at) || run_.only_known) return;
      }
      row = unanswered_json("refused", error.what(), point);
      mistake = error;
    } catch (const std::bad_alloc&) {
      row = unanswered_json("failed", "out of memory", point);
    } catch (const std::exception& error) {
      row = unanswered_json("failed", error.what(), point);
    }
    const std::lock_guard lock(finishing_);
    keep(at, id, std::move(row));
    mistake ? mistake_.refused(*mistake) : mistake_.answered();
  }

  const SharedMistake& mistake() const { return mistake_; }

 private:
  static constexpr std::size_t most_crashes = 2;  // chance may be one, not both

  std::size_t crashes(const PointId& id) const {
    return run_.folder == nullptr ? 0 : run_.folder->crashes(id);
  }
  /// Then the point is `failed` for good.
  void refuse_crashing(const PointId& id) const {
    if (crashes(id) >= most_crashes)
      throw std::runtime_error(fmt::format("ended the program {} times", crashes(id)));
  }

  /// Takes the row from an earlier run; one that failed may come out otherwise now.
  bool knows(const PointId& id, std::size_t at) {
    const KnownRow* known = run_.folder != nullptr ? run_.folder->find(id) : nullptr;
    if (known == nullptr) return false;
    const bool again = !run_.only_known && crashes(id) < most_crashes;
    if (known->state == PointRows::State::failed && again) return false;
    const std::lock_guard lock(finishing_);
    results_.rows.set(at, known->place, known->state);
    mistake_.answered();
    run_.finished(++done_);
    return true;
  }

  void keep(std::size_t at, const PointId& id, std::string row) {
    const PointRows::State state = PointRows::state_of(row);
    const auto place = run_.folder != nullptr ? run_.folder->append(id, row) : std::nullopt;
    if (place)
      results_.rows.set(at, *place, state);
    else
      results_.rows.set(at, std::move(row));
    run_.finished(++done_);
  }

  Results& results_;
  const StudyRun& run_;
  std::mutex finishing_;
  SharedMistake mistake_;
  std::size_t done_ = 0;
};

/// Whether all points were done.
bool work_through(Sweep& sweep, std::size_t in_shard, const StudyRun& run) {
  if (!run.next)
    return for_each_index(in_shard, run.threads, run.stop, [&](std::size_t index) {
      sweep.work(run.shard.index - 1 + index * run.shard.of);
    });
  return for_each_index(run.threads, run.threads, run.stop,
                        [&](std::size_t) {
                          while (!run.stop) {
                            const std::optional<std::size_t> at = run.next();
                            if (!at) return;
                            sweep.work(*at);
                          }
                        }) &&
         !run.stop;
}

void run_single(Results& results, const StudyRun& run) {
  results.interrupted = run.stop;
  if (results.interrupted) return;
  results.single = answer(run.read(results.study.base), run.simulator);
  results.rows.set(0, point_json(*results.single, {}));
  run.finished(1);
}

}  // namespace

std::size_t num_points(const Study& study, const Shard& shard) {
  const std::size_t all = study.num_points();
  return all < shard.index ? 0 : (all - shard.index) / shard.of + 1;
}

Results run_study(Study study, const StudyRun& run) {
  Results results(std::move(study));
  if (!results.study.is_sweep) {
    run_single(results, run);
    return results;
  }
  if (!run.only_known) refuse_shared_mistake(results.study, run);
  Sweep sweep(results, run);
  results.interrupted = !work_through(sweep, num_points(results.study, run.shard), run);
  const bool whole = !run.shard.is_part() && !run.next;
  if (whole && results.rows.count(PointRows::State::answered) == 0)
    results.unanswered = asked_software(results.study, run);
  if (whole && !results.interrupted) sweep.mistake().throw_if_shared();
  return results;
}

}  // namespace stepcast::sim
