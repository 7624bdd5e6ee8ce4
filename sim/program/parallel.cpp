#include "sim/program/parallel.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace stepcast::sim {

bool for_each_index(std::size_t count, unsigned threads, const std::atomic<bool>& stop,
                    const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0, done = 0;
  std::atomic<bool> failed = false;
  std::mutex failing;
  std::exception_ptr failure;

  const auto loop = [&] {
    while (!stop && !failed) {
      const std::size_t i = next++;
      if (i >= count) return;
      try {
        work(i);
        ++done;
      } catch (...) {
        const std::lock_guard lock(failing);
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto wanted = std::min<std::size_t>(std::max(1U, threads), count);
    try {
      for (std::size_t i = 1; i < wanted; ++i) helpers.emplace_back(loop);
    } catch (const std::system_error&) {  // a limit on threads or memory: fewer do as well
    }
    loop();
  }
  if (failure) std::rethrow_exception(failure);
  return done == count;
}

}  // namespace stepcast::sim
