#include "calibrate/host/worker.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/check.hpp"

namespace stepcast::calibrate::host {
namespace {

constexpr std::size_t line = 16;  // floats: 64 bytes, so that no two pieces share a cache line
/// Random floats are drawn once and repeated: a prime count, so that no two rows are alike.
constexpr std::size_t pattern = 65537;

constexpr std::size_t usual_capacity = (std::size_t{1} << 30U) / sizeof(float);

std::size_t whole_lines(std::size_t floats) { return (floats + line - 1) / line * line; }

}  // namespace

std::span<float> Arena::first(std::size_t count) {
  if (count > capacity_) {
    // Not value-initialised: untouched pages stay unmapped, so room to grow is free, and growing
    // later would fill all anew.
    capacity_ = std::max({count, 2 * capacity_, usual_capacity});
    floats_.reset(new float[capacity_]);
    filled_ = 0;
  }
  if (count > filled_) {
    static const std::vector<float> values = random_floats(pattern, 20261121);
    for (std::size_t at = filled_; at < count;) {
      const std::size_t from = at % pattern, length = std::min(pattern - from, count - at);
      std::copy_n(&values[from], length, &floats_[at]);
      at += length;
    }
    filled_ = count;
  }
  return {floats_.get(), count};
}

Worker::Worker(const HostTask& task, Arena& inputs, Arena& outputs, Bytes cold_span)
    : task_(task), in_stride_(whole_lines(task.inputs)), out_stride_(whole_lines(task.outputs)) {
  const std::size_t set = 4 * (in_stride_ + out_stride_);
  const auto span = static_cast<std::size_t>(std::max<std::int64_t>(cold_span.value, 0));
  sets_ = set >= span ? 1 : std::max<std::size_t>(2, (span + set - 1) / set);
  in_ = inputs.first(std::max<std::size_t>(sets_ * in_stride_, 1));
  out_ = outputs.first(std::max<std::size_t>(sets_ * out_stride_, 1));
  if (task_.start)
    for (std::size_t s = 0; s < sets_; ++s)
      task_.start(out_.subspan(s * out_stride_, task_.outputs));
}

void Worker::run_once(Cache cache) {
  const std::size_t set = cache == Cache::cold ? next_++ % sets_ : 0;
  task_.run(in_.subspan(set * in_stride_, task_.inputs),
            out_.subspan(set * out_stride_, task_.outputs));
}

struct Companions::Shared {
  std::vector<std::unique_ptr<Worker>> workers;
  std::atomic<bool> running{false}, quit{false};
  std::atomic<Cache> cache{Cache::cold};
  std::atomic<std::size_t> busy{0};
  std::vector<std::jthread> threads;  // last: they use the others

  ~Shared() {
    quit = true;
    running = true;
    running.notify_all();
  }
  void work(Worker& worker) {
    for (;;) {
      running.wait(false);
      if (quit) return;
      ++busy;
      while (running && !quit) worker.run_once(cache);
      --busy;
      busy.notify_all();
    }
  }
};

Companions::Companions(const HostTask& task, std::span<std::unique_ptr<Arena>> arenas,
                       Bytes cold_span)
    : shared_(std::make_unique<Shared>()) {
  expects(arenas.size() % 2 == 0, "two arenas for each companion");
  for (std::size_t i = 0; i < arenas.size(); i += 2)
    shared_->workers.push_back(
        std::make_unique<Worker>(task, *arenas[i], *arenas[i + 1], cold_span));
  for (const auto& worker : shared_->workers)
    shared_->threads.emplace_back([this, w = worker.get()] { shared_->work(*w); });
}

Companions::~Companions() = default;

void Companions::start(Cache cache) {
  shared_->cache = cache;
  shared_->running = true;
  shared_->running.notify_all();
  while (shared_->busy < shared_->threads.size()) std::this_thread::yield();
}

void Companions::stop() {
  shared_->running = false;
  for (std::size_t n = shared_->busy; n > 0; n = shared_->busy) shared_->busy.wait(n);
}

}  // namespace stepcast::calibrate::host
