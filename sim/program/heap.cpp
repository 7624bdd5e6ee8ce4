#include "sim/program/heap.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace stepcast::sim {

void use_large_pages() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t page = std::size_t{2} << 20, grown = 2 * page, head = 4096;
  const auto end_of_heap = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const std::uintptr_t begin = (end_of_heap + head + page - 1) / page * page;
  // The heap goes on shortly before a large page begins, so that nothing of that is touched yet;
  // what lies between is never touched.
  const auto unused = static_cast<std::intptr_t>(begin - head - end_of_heap);
  if (sbrk(unused) == reinterpret_cast<void*>(-1)) return;
  mallopt(M_MMAP_THRESHOLD, 2 * grown);  // else the block below lies outside of the heap
  mallopt(M_TRIM_THRESHOLD, 4 * grown);  // else the heap shrinks again when it is freed
  void* const block = std::malloc(head + grown);
  if (block == nullptr) return;
  madvise(reinterpret_cast<void*>(begin), grown, MADV_HUGEPAGE);
  std::free(block);
#endif
}

}  // namespace stepcast::sim
