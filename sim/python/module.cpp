// The compiled half of the Python package: a session that lives as long as the caller wants
// (sim/resident), beside the other threads of Python and its interrupts.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "sim/resident/keeper.hpp"

namespace stepcast::sim {
namespace {

/// Lets other threads of Python run while the session answers, and hears of their interrupts.
std::optional<std::string> answer(Keeper& keeper, const Keeper::Words& words) {
  std::atomic<bool> stop = false;
  std::future<std::optional<std::string>> answered =
      std::async(std::launch::async, [&] { return keeper.answer(words, stop); });
  bool interrupted = false;
  while (true) {
    {
      const pybind11::gil_scoped_release released;
      if (answered.wait_for(std::chrono::milliseconds(interrupted ? 1000 : 20)) ==
          std::future_status::ready)
        break;
    }
    if (!interrupted && PyErr_CheckSignals() != 0) interrupted = stop = true;
  }
  if (interrupted) throw pybind11::error_already_set();
  return answered.get();
}

}  // namespace
}  // namespace stepcast::sim

PYBIND11_MODULE(_session, module) {
  using stepcast::sim::Keeper;
  module.doc() = "Answers stepcast's studies within this process.";
  module.def("verbs", &stepcast::sim::resident_verbs, "The verbs that a Session answers.");
  pybind11::class_<Keeper>(module, "Session", "Tables and models that many calls share.")
      .def(pybind11::init<const std::string&>(), pybind11::arg("program"))
      .def("answer", &stepcast::sim::answer, pybind11::arg("words"),
           "What the program prints for these words, --json among them; None: ask the program.");
}
