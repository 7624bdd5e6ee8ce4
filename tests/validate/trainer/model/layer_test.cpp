#include "validate/trainer/model/layer.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/validate/trainer_fixtures.hpp"

namespace stepcast::validate {
namespace {

/// The central difference of the loss by one weight, in float64: error of order h^2.
double slope(Trainer<double>& trainer, const Trainer<double>::Data& data, double& weight) {
  constexpr double h = 1e-5;
  const double before = weight;
  weight = before + h;
  const double above = *trainer.forward_and_backward(data).loss;
  weight = before - h;
  const double below = *trainer.forward_and_backward(data).loss;
  weight = before;
  return (above - below) / (2 * h);
}

void check_gradients(const TrainerJob& job) {
  std::set<std::string> kinds;
  on_ranks<double>(job, [&](Trainer<double>& trainer, const auto& data) {
    Parameters<double>& parameters = trainer.parameters();
    trainer.forward_and_backward(data(0));
    const std::vector<double> gradients(parameters.own_gradients().begin(),
                                        parameters.own_gradients().end());
    double* const first = parameters.own_gradients().data();
    for (std::size_t unit = 0; unit < trainer.share().units(); ++unit) {
      const auto tensors = tensors_of_unit(job, trainer.share(), unit);
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto part = parameters.own_gradient(unit, i);
        const auto from = static_cast<std::size_t>(part.data() - first);
        for (const std::size_t at : {std::size_t{0}, part.size() / 3, part.size() - 1}) {
          const double known = gradients[from + at];
          const double measured = slope(trainer, data(0), parameters.own_weights()[from + at]);
          INFO(tensors[i].name << " element " << at);
          CHECK(known == Approx(measured).epsilon(1e-6).margin(1e-9));
        }
        kinds.insert(tensors[i].name.substr(tensors[i].name.rfind('.') + 1));
      }
    }
  });
  std::set<std::string> all{"embedding", "final_norm", "norm1", "q",  "k",   "v",
                            "o",         "norm2",      "gate",  "up", "down"};
  if (!job.model.tied_embeddings) all.insert("head");
  CHECK(kinds == all);
}

TEST_CASE("gradients of every kind of parameter are the slopes of the loss in float64") {
  TrainerJob job = small_job();
  job.model.layers = 2;
  job.batch.micro_batches = 1;
  job.batch.micro_batch = 2;
  SECTION("untied head") { check_gradients(job); }
  SECTION("tied head") {
    job.model.tied_embeddings = true;
    check_gradients(job);
  }
  SECTION("tied head, two micro-batches") {
    job.model.tied_embeddings = true;
    job.batch.micro_batches = 2;
    check_gradients(job);
  }
  SECTION("full recompute, three micro-batches") {
    job.plan.recompute = workloads::Recompute::full;
    job.batch.micro_batches = 3;
    check_gradients(job);
  }
}

}  // namespace
}  // namespace stepcast::validate
