// A loop on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace stepcast::sim {

/// Calls work(0) ... work(count - 1) on `threads` threads, begun in this order. `stop` is looked at
/// between; returns whether all were done. An exception ends the whole and is thrown here.
bool for_each_index(std::size_t count, unsigned threads, const std::atomic<bool>& stop,
                    const std::function<void(std::size_t)>& work);

}  // namespace stepcast::sim
