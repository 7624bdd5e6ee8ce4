#include "validate/trainer/ranks/overdue.hpp"

#include <unistd.h>

#include <cstdio>

namespace stepcast::validate {

Overdue::Overdue(Duration limit, int exit_code)
    : limit_(std::chrono::duration_cast<Clock::duration>(limit)),
      exit_code_(exit_code),
      thread_([this] { look(); }) {}

Overdue::~Overdue() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Overdue::begin(const char* what, Duration allowance) {
  what_ = what;
  since_ = (Clock::now() + std::chrono::duration_cast<Clock::duration>(allowance))
               .time_since_epoch()
               .count();
}

void Overdue::touch() {
  if (since_ != 0) since_ = Clock::now().time_since_epoch().count();
}

void Overdue::look() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; })) {
    const Clock::rep since = since_;
    const Clock::duration waited = Clock::now().time_since_epoch() - Clock::duration(since);
    if (since == 0 || waited < limit_) continue;
    std::fprintf(stderr, "stepcast-trainer: rank %d waited %.0f s for its peers in %s\n",
                 rank.load(), std::chrono::duration<double>(waited).count(), what_.load());
    _exit(exit_code_);  // no cleaning up: the call never returns
  }
}

}  // namespace stepcast::validate
