// The threads of one block of a kernel as fibers of one thread of the host: see emulated_cuda.hpp,
// which alone includes this.
#pragma once

#include <ucontext.h>

#include <memory>
#include <mutex>

namespace emulated {

constexpr int kWarp = 32;
constexpr std::size_t kStackBytes = 256 * 1024, kSlotBytes = 64;

/// What the kernels ask about the GPU, and how it runs.
struct Device {
  int capability_major = 9;
  int shared_bytes_of_block = 227 * 1024;
  int multiprocessors = 3;
  bool last_warp_first = false;
};
inline Device device;

struct Copy {
  void* to;
  const void* from;
  bool valid;
};

enum class State { ready, at_warp, at_block, left };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  dim3 index;
  State state;
  std::vector<Copy> copies;
  int exchanges, votes;
};

/// Of two exchanges in turn, what each lane gave: a lane is at most one exchange ahead.
struct alignas(16) Slots {
  unsigned char value[2][kWarp][kSlotBytes];
};

struct Block {
  ucontext_t scheduler;
  std::vector<Fiber> fibers;  // kept from block to block
  std::vector<Slots> slots;   // of each warp
  std::vector<unsigned char> shared;
  bool voted[3];  // of three votes in turn: being cast, being counted, cleared
  std::size_t num_threads = 0, current = 0;
  const std::function<void()>* kernel = nullptr;
};
inline Block block;

inline Fiber& self() { return block.fibers[block.current]; }
inline int lane() { return static_cast<int>(block.current % kWarp); }

/// All of [first, last) stand there, or have left (a block's barrier counts who is there): go on.
inline void release_if_complete(State there, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    const State state = block.fibers[i].state;
    if (state != there && !(there == State::at_block && state == State::left)) return;
  }
  for (std::size_t i = first; i < last; ++i)
    if (block.fibers[i].state == there) block.fibers[i].state = State::ready;
}

inline void meet(State there, std::size_t first, std::size_t last) {
  Fiber& fiber = self();
  fiber.state = there;
  release_if_complete(there, first, last);
  if (fiber.state != State::ready) swapcontext(&fiber.context, &block.scheduler);
}

inline void meet_warp() {
  const std::size_t first = block.current / kWarp * kWarp;
  meet(State::at_warp, first, first + kWarp);
}

inline void meet_block() { meet(State::at_block, 0, block.num_threads); }

/// Whether any thread of the block says so.
inline bool vote(bool yes) {
  const int turn = self().votes++ % 3;
  if (yes) block.voted[turn] = true;
  meet_block();
  block.voted[(turn + 2) % 3] = false;  // all have read the last one
  return block.voted[turn];
}

inline void* shared_memory() {
  void* begin = block.shared.data();
  std::size_t space = block.shared.size();
  return std::align(128, 1, begin, space);
}

inline void start_copy(void* to, const void* from, bool valid) {
  self().copies.push_back({to, from, valid});
}

inline void finish_copies() {
  for (const Copy& copy : self().copies) {
    if (copy.valid)
      std::memcpy(copy.to, copy.from, 16);
    else
      std::memset(copy.to, 0, 16);
  }
  self().copies.clear();
}

/// Every lane gives a value, then f gets what reads those of its warp by lane.
template <class T, class F>
void exchange(const T& mine, F f) {
  static_assert(sizeof(T) <= kSlotBytes && std::is_trivially_copyable_v<T>);
  auto& values = block.slots[block.current / kWarp].value[self().exchanges++ % 2];
  std::memcpy(values[lane()], &mine, sizeof(T));
  meet_warp();
  f([&values](int other) {
    T value;
    std::memcpy(&value, values[other], sizeof(T));
    return value;
  });
}

inline void fiber_main() {
  (*block.kernel)();
  self().state = State::left;
  release_if_complete(State::at_block, 0, block.num_threads);
}

inline void start_fiber(std::size_t i) {
  Fiber& fiber = block.fibers[i];
  if (!fiber.stack) fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &block.scheduler;
  makecontext(&fiber.context, fiber_main, 0);
  const auto x = static_cast<unsigned>(i);
  fiber.index = {x % blockDim.x, x / blockDim.x % blockDim.y, x / blockDim.x / blockDim.y};
  fiber.state = State::ready;
  fiber.copies.clear();
  fiber.exchanges = fiber.votes = 0;
}

/// Always the first ready fiber in the order of warps: one warp gets as far ahead as it can.
inline bool run_one_fiber() {
  for (std::size_t n = 0; n < block.num_threads; ++n) {
    const std::size_t i = device.last_warp_first ? block.num_threads - 1 - n : n;
    if (block.fibers[i].state != State::ready) continue;
    block.current = i;
    threadIdx = block.fibers[i].index;
    swapcontext(&block.scheduler, &block.fibers[i].context);
    return true;
  }
  return false;
}

inline void run_block(std::size_t shared_bytes) {
  block.shared.assign(shared_bytes + 256, 0xff);
  std::fill(std::begin(block.voted), std::end(block.voted), false);
  for (std::size_t i = 0; i < block.num_threads; ++i) start_fiber(i);
  while (run_one_fiber()) {
  }
  for (std::size_t i = 0; i < block.num_threads; ++i)
    if (block.fibers[i].state != State::left)
      throw std::logic_error("threads wait for others that left or wait elsewhere");
}

inline std::mutex mutex;  // of `block` and of the indices of threads

inline void run(dim3 grid, dim3 threads, std::size_t shared_bytes,
                const std::function<void()>& kernel) {
  const std::lock_guard lock(mutex);
  gridDim = grid;
  blockDim = threads;
  block.kernel = &kernel;
  block.num_threads = std::size_t{threads.x} * threads.y * threads.z;
  if (block.fibers.size() < block.num_threads) block.fibers.resize(block.num_threads);
  block.slots.resize((block.num_threads + kWarp - 1) / kWarp);
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        run_block(shared_bytes);
      }
}

}  // namespace emulated
