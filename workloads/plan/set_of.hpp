// A set of values of an enum.
#pragma once

#include <initializer_list>

namespace stepcast::workloads {

template <class E>
class SetOf {
 public:
  constexpr SetOf() = default;
  constexpr SetOf(std::initializer_list<E> items) {
    for (const E item : items) add(item);
  }
  constexpr void add(E item) { bits_ |= bit(item); }
  constexpr bool has(E item) const { return (bits_ & bit(item)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  friend bool operator==(const SetOf&, const SetOf&) = default;

 private:
  static constexpr unsigned bit(E item) { return 1U << static_cast<unsigned>(item); }
  unsigned bits_ = 0;
};

}  // namespace stepcast::workloads
