// What must not change a step by a bit.
#include <rapidcheck.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <locale>
#include <utility>
#include <vector>

#include "sim/program/parallel.hpp"
#include "sim/scenario/file.hpp"
#include "tests/laws/law.hpp"
#include "tests/session.hpp"

namespace stepcast::sim::laws {
namespace {

/// 1.234,5
struct CommaDecimals : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class WithCommaDecimals {
 public:
  WithCommaDecimals()
      : before_(std::locale::global(std::locale(std::locale(), new CommaDecimals))) {}
  ~WithCommaDecimals() { std::locale::global(before_); }
  WithCommaDecimals(const WithCommaDecimals&) = delete;
  WithCommaDecimals& operator=(const WithCommaDecimals&) = delete;

 private:
  std::locale before_;
};

/// The points of a sweep over the batch.
std::vector<Scenario> points_of(const TomlValue& document) {
  const auto batch = std::get<std::int64_t>(find_path(document, "batch.global")->data);
  std::vector<Scenario> out;
  for (const std::int64_t times : {1, 2, 3, 4})
    out.push_back(
        read_scenario(with(document, "batch.global", {times * batch, "changed"}), catalogue()));
  return out;
}

std::vector<std::string> answers(const std::vector<Scenario>& points, unsigned threads,
                                 bool backwards) {
  Session fresh(catalogue());
  const std::atomic<bool> stop = false;
  std::vector<std::string> out(points.size());
  for_each_index(out.size(), threads, stop, [&](std::size_t i) {
    const std::size_t at = backwards ? points.size() - 1 - i : i;
    out[at] = bits_of(fresh.step(points[at]));
  });
  return out;
}

}  // namespace

TEST_CASE("law: a resolved scenario reruns to the same picosecond, and resolves to itself") {
  CHECK(holds({"resolved", 200}, [](const TomlValue& document) {
    const StepReport first = step_of(document);
    const std::string resolved = write_toml(resolved_document(first.scenario));
    const StepReport again = step_of(read_toml(resolved, "resolved.toml"));
    RC_ASSERT(again.step_time.count() == first.step_time.count());
    RC_ASSERT(again.energy.value == first.energy.value);
    RC_ASSERT(write_toml(resolved_document(again.scenario)) == resolved);
  }));
}

TEST_CASE("law: ranks that stand for others take what every rank simulated takes") {
  CHECK(holds({"fold", 120}, [](const TomlValue& drawn) {
    TomlValue document = drawn;
    if (find_path(document, "noise.kernel_sigma") != nullptr) erase_path(document, "noise");
    Scenario s = read_scenario(document, catalogue());
    const Duration folded = session().step(s).step_time;
    s.run.check_fold = true;  // a broken promise where a rank differs
    RC_ASSERT(session().step(s).step_time.count() == folded.count());
    s.run.fold = s.run.check_fold = false;
    RC_ASSERT(session().step(s).step_time.count() == folded.count());
  }));
}

// Found by these laws: sums of weakly mixed colours met, so that groups that differ were one class.
TEST_CASE("pairs of shards beside four stages fold to the same picosecond") {
  Scenario s = read_scenario(
      read_toml("[cluster]\nnode = \"dgx-1v\"\nnodes = 8\n[software]\nframework = \"jax-xla\"\n"
                "[plan]\npipeline = 4\ndata = \"zero1\"\nshard_degree = 2\n[model]\n"
                "name = \"llama2-1b\"\nlayers = 4\nsequence = 1024\n"
                "[batch]\nmicro_batch = 1\nglobal = 16\n",
                "shards.toml"),
      catalogue());
  s.run.check_fold = true;
  CHECK_NOTHROW(session().step(s));
}

TEST_CASE("law: neither threads nor the order of points change a bit") {
  CHECK(holds({"threads", 40}, [](const TomlValue& document) {
    const std::vector<Scenario> points = points_of(document);
    const std::vector<std::string> alone = answers(points, 1, false);
    RC_ASSERT(answers(points, 1, true) == alone);
    RC_ASSERT(answers(points, 4, false) == alone);
  }));
}

TEST_CASE("law: a locale with decimal commas changes nothing") {
  CHECK(holds({"locale", 80}, [](const TomlValue& document) {
    const std::string text = write_toml(document);
    const auto run = [&] {
      const StepReport r = step_of(read_toml(text, "drawn.toml"));
      return std::pair(bits_of(r), write_toml(resolved_document(r.scenario)));
    };
    const auto usual = run();
    const WithCommaDecimals locale;
    RC_ASSERT(run() == usual);
  }));
}

}  // namespace stepcast::sim::laws
