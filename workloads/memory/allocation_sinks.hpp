// What is done with the tensors of a step as they are made and freed: written down one by one, or
// counted while they are alive.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/memory/layer_tensors.hpp"
#include "workloads/memory/step_allocations.hpp"

namespace stepcast::workloads {

/// Writes down each.
class AllocationRecord {
 public:
  using Tensors = std::vector<std::uint32_t>;
  static constexpr bool counts = false;
  struct Effect {};

  void add(Tensors& tensors, TensorKind kind, std::int64_t bytes, Stream stream = {}) {
    const std::uint32_t id = out_.tensors++;
    out_.order.push_back({id, kind, stream, bytes});
    bytes_.push_back(bytes);
    tensors.push_back(id);
  }
  void add_all(Tensors& tensors, TensorKind kind, const TensorSizes& sizes) {
    for (const std::int64_t bytes : sizes.each)
      if (bytes > 0) add(tensors, kind, bytes);
  }
  void free(Tensors& tensors) {
    for (const std::uint32_t id : tensors) out_.order.push_back({.tensor = id});
    tensors.clear();
  }
  std::int64_t bytes(const Tensors& tensors) const {
    std::int64_t sum = 0;
    for (const std::uint32_t id : tensors) sum += bytes_[id];
    return sum;
  }
  void turn(std::int64_t step, std::optional<Turn> turn) {
    out_.turns.push_back({out_.order.size(), step, turn});
  }

  StepAllocations take() { return std::move(out_); }

 private:
  StepAllocations out_;
  std::vector<std::int64_t> bytes_;  // by tensor
};

/// Keeps what was alive when it came to most.
class AllocationTally {
 public:
  using Tensors = KindBytes;
  static constexpr bool counts = true;

  /// What a stretch leaves alive, and has alive at its fullest moment, beyond what it found.
  struct Effect {
    KindBytes left{}, most{};
  };

  void add(Tensors& tensors, TensorKind kind, std::int64_t bytes, Stream = {}) {
    tensors[static_cast<std::size_t>(kind)] += bytes;
    alive_[static_cast<std::size_t>(kind)] += bytes;
    sum_ += bytes;
  }
  void add_all(Tensors& tensors, TensorKind kind, const TensorSizes& sizes) {
    add(tensors, kind, sizes.sum);
  }
  void free(Tensors& tensors) {
    look();
    for (std::size_t kind = 0; kind < tensors.size(); ++kind) {
      alive_[kind] -= tensors[kind];
      sum_ -= tensors[kind];
    }
    tensors = {};
  }
  std::int64_t bytes(const Tensors& tensors) const {
    return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
  }
  void turn(std::int64_t, const std::optional<Turn>&) {}

  void begin_effect() {
    look();
    found_ = alive_;
    before_ = std::exchange(fullest_, alive_);
    most_ = sum_;
  }
  Effect end_effect() {
    look();
    const Effect effect{difference(alive_, found_), difference(fullest_, found_)};
    if (bytes(before_) > most_) fullest_ = before_, most_ = bytes(before_);
    return effect;
  }
  void repeat(const Effect& effect) {
    const std::int64_t most = sum_ + bytes(effect.most);
    for (std::size_t kind = 0; most > most_ && kind < alive_.size(); ++kind)
      fullest_[kind] = alive_[kind] + effect.most[kind];
    most_ = std::max(most_, most);
    for (std::size_t kind = 0; kind < alive_.size(); ++kind) alive_[kind] += effect.left[kind];
    sum_ += bytes(effect.left);
  }

  KindBytes fullest() {
    look();
    return fullest_;
  }

 private:
  /// What is alive comes to most just before something is freed, or at the end.
  void look() {
    if (sum_ > most_) most_ = sum_, fullest_ = alive_;
  }

  static KindBytes difference(const KindBytes& a, const KindBytes& b) {
    KindBytes out{};
    for (std::size_t kind = 0; kind < out.size(); ++kind) out[kind] = a[kind] - b[kind];
    return out;
  }

  KindBytes alive_{}, fullest_{}, found_{}, before_{};
  std::int64_t sum_ = 0, most_ = 0;
};

}  // namespace stepcast::workloads
