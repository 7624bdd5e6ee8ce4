#include "workloads/pieces/kernel_table.hpp"

#include <utility>

namespace stepcast::workloads {
namespace {

template <class Item, class Indexes>
std::uint32_t intern(std::vector<Item>& items, Indexes& by_name, Item item) {
  std::vector<std::uint32_t>& same_name = by_name[item.name];
  for (const std::uint32_t index : same_name)
    if (items[index] == item) return index;
  const auto index = static_cast<std::uint32_t>(items.size());
  same_name.push_back(index);
  items.push_back(std::move(item));
  return index;
}

}  // namespace

std::uint32_t KernelTable::index_of(Kernel kernel) {
  return intern(kernels_, kernels_by_name_, std::move(kernel));
}

std::uint32_t KernelTable::index_of(Collective collective) {
  return intern(collectives_, collectives_by_name_, std::move(collective));
}

std::uint32_t KernelTable::pass(std::string name, KernelFamily family, Dtype dtype,
                                std::int64_t bytes) {
  Kernel kernel;
  kernel.name = std::move(name);
  kernel.family = family;
  kernel.dtype = dtype;
  kernel.bytes = Bytes(bytes);
  return index_of(std::move(kernel));
}

}  // namespace stepcast::workloads
