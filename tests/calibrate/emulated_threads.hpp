// The threads of one block of a kernel as fibers of one thread of the host: see emulated_cuda.hpp,
// which alone includes this.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "tests/sanitizer.hpp"

namespace emulated {

constexpr int kWarp = 32;
constexpr std::size_t kStackBytes = 256 * 1024, kSlotBytes = 64, kJoinedBytes = 512;

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

/// Where a fiber or the host's thread goes on. ucontext starts a fiber; jumps, which leave the
/// signal mask alone, change between them later, but AddressSanitizer follows ucontext alone.
struct Context {
  ucontext_t start;
  jmp_buf here;
  bool has_run = false;
};

/// _longjmp; hardened programs have another for it, which refuses to go to other stacks.
extern "C" [[noreturn]] void to_other_stack(jmp_buf there, int value) __asm__("_longjmp");

[[gnu::noinline]] inline void go(Context& from, Context& to) {
#ifdef STEPCAST_ASAN
  swapcontext(&from.start, &to.start);
#else
  if (_setjmp(from.here) != 0) return;
  from.has_run = true;
  if (to.has_run) to_other_stack(to.here, 1);
  setcontext(&to.start);
#endif
}

enum class State : unsigned char { ready, at_warp, at_block, left };

struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack;
  std::vector<Copy> copies;
  int exchanges, votes;
};

/// Of two exchanges in turn, what each lane gave: a lane is at most one exchange ahead.
struct alignas(16) Slots {
  unsigned char value[2][kWarp][kSlotBytes];
  unsigned char joined[2][kJoinedBytes];  // what one lane worked out for all
  bool is_joined[2];
  int waiting;  // lanes of the warp
};

struct Block {
  Context scheduler;
  std::deque<Fiber> fibers;   // kept from block to block
  std::vector<State> states;  // of them
  std::vector<dim3> indices;
  std::vector<Slots> slots;  // of each warp
  std::vector<unsigned char> shared;
  bool voted[3];  // of three votes in turn: being cast, being counted, cleared
  std::size_t num_threads = 0, current = 0;
  std::size_t waiting = 0, num_left = 0;  // at the block's barrier
  std::size_t first_ready = 0;            // none before it is, in the order in which they run
  const std::function<void()>* kernel = nullptr;
};
inline Block block;

inline Fiber& self() { return block.fibers[block.current]; }
inline int lane() { return static_cast<int>(block.current % kWarp); }
/// The nth to be looked at; its own inverse.
inline std::size_t in_order(std::size_t n) {
  return device.last_warp_first ? block.num_threads - 1 - n : n;
}

/// All of [first, last) that wait there go on.
inline void release(State there, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i)
    if (block.states[i] == there) block.states[i] = State::ready;
  block.first_ready = std::min({block.first_ready, in_order(first), in_order(last - 1)});
}

inline void wait_unless_ready() {
  if (block.states[block.current] != State::ready) go(self().context, block.scheduler);
}

inline void meet_warp() {
  const std::size_t warp = block.current / kWarp;
  block.states[block.current] = State::at_warp;
  if (++block.slots[warp].waiting == kWarp) {
    block.slots[warp].waiting = 0;
    release(State::at_warp, warp * kWarp, (warp + 1) * kWarp);
  }
  wait_unless_ready();
}

/// Those that have left count as there.
inline void release_block_if_complete() {
  if (block.waiting == 0 || block.waiting + block.num_left < block.num_threads) return;
  block.waiting = 0;
  release(State::at_block, 0, block.num_threads);
}

inline void meet_block() {
  block.states[block.current] = State::at_block;
  ++block.waiting;
  release_block_if_complete();
  wait_unless_ready();
}

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

/// Every lane gives a value; returns the turn that the warp has it in once all have.
template <class T>
int give(const T& mine) {
  static_assert(sizeof(T) <= kSlotBytes && std::is_trivially_copyable_v<T>);
  const int turn = self().exchanges++ % 2;
  Slots& slots = block.slots[block.current / kWarp];
  std::memcpy(slots.value[turn][lane()], &mine, sizeof(T));
  slots.is_joined[turn] = false;
  meet_warp();
  return turn;
}

/// Reads what the lanes of this warp gave.
template <class T>
auto values_of(int turn) {
  return [turn, &slots = block.slots[block.current / kWarp]](int other) {
    T value;
    std::memcpy(&value, slots.value[turn][other], sizeof(T));
    return value;
  };
}

/// Every lane gives a value, then f gets what reads those of its warp by lane.
template <class T, class F>
void exchange(const T& mine, F f) {
  f(values_of<T>(give(mine)));
}

/// Every lane gives a value; join makes one of all, which every lane gets.
template <class Joined, class T, class Join>
const Joined& joined(const T& mine, Join join) {
  static_assert(sizeof(Joined) <= kJoinedBytes && std::is_trivially_copyable_v<Joined>);
  const int turn = give(mine);
  Slots& slots = block.slots[block.current / kWarp];
  if (!slots.is_joined[turn]) {
    const Joined result = join(values_of<T>(turn));
    std::memcpy(slots.joined[turn], &result, sizeof(result));
    slots.is_joined[turn] = true;
  }
  return *reinterpret_cast<const Joined*>(slots.joined[turn]);
}

inline void fiber_main() {
  while (true) {
    (*block.kernel)();
    block.states[block.current] = State::left;
    ++block.num_left;
    release_block_if_complete();
    go(self().context, block.scheduler);
  }
}

inline void prepare_fiber(Fiber& fiber) {
  fiber.copies.clear();
  fiber.exchanges = fiber.votes = 0;
  if (fiber.stack) return;  // it waits at the end of the last block
  fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  getcontext(&fiber.context.start);
  fiber.context.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.start.uc_stack.ss_size = kStackBytes;
  fiber.context.start.uc_link = nullptr;
  makecontext(&fiber.context.start, fiber_main, 0);
}

inline dim3 index_of(std::size_t thread) {
  const auto x = static_cast<unsigned>(thread);
  return {x % blockDim.x, x / blockDim.x % blockDim.y, x / blockDim.x / blockDim.y};
}

/// Always the first ready fiber in the order of warps: one warp gets as far ahead as it can.
inline bool run_one_fiber() {
  for (; block.first_ready < block.num_threads; ++block.first_ready) {
    const std::size_t i = in_order(block.first_ready);
    if (block.states[i] != State::ready) continue;
    block.current = i;
    threadIdx = block.indices[i];
    go(block.scheduler, block.fibers[i].context);
    return true;
  }
  return false;
}

inline void run_block(std::size_t shared_bytes) {
  block.shared.assign(shared_bytes + 256, 0xff);
  std::fill(std::begin(block.voted), std::end(block.voted), false);
  block.states.assign(block.num_threads, State::ready);
  block.waiting = block.num_left = block.first_ready = 0;
  for (Slots& of_warp : block.slots) of_warp.waiting = 0;
  for (std::size_t i = 0; i < block.num_threads; ++i) prepare_fiber(block.fibers[i]);
  while (run_one_fiber()) {
  }
  if (block.num_left == block.num_threads) return;
  block.fibers.clear();  // those that wait never go on
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
  while (block.fibers.size() < block.num_threads) block.fibers.emplace_back();
  block.slots.resize((block.num_threads + kWarp - 1) / kWarp);
  block.indices.clear();
  for (std::size_t i = 0; i < block.num_threads; ++i) block.indices.push_back(index_of(i));
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = {x, y, z};
        run_block(shared_bytes);
      }
}

}  // namespace emulated
