#include "engine/fold.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "engine/check.hpp"

namespace stepcast::engine {
namespace {

using Colour = std::uint32_t;
using Colours = std::vector<Colour>;

/// SplitMix64's finalizer (Steele, Lea and Flood 2014): sums of its values must not meet. By one
/// product and shift, colours 3 and 45 added up to what 20 and 20 do.
std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ (v * 0x9e3779b97f4a7c15U)) + 0x9e3779b97f4a7c15U;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

/// Renumbers signatures by first appearance; returns how many differ.
Colour renumber(const std::vector<std::uint64_t>& signatures, Colours& colours) {
  std::unordered_map<std::uint64_t, Colour> numbers;  // looked up only, never walked
  for (std::size_t i = 0; i < signatures.size(); ++i)
    colours[i] =
        numbers.try_emplace(signatures[i], static_cast<Colour>(numbers.size())).first->second;
  return static_cast<Colour>(numbers.size());
}

/// Colour refinement on the graph rank - communicator - link. Signatures are 64-bit hashes: a
/// collision could only merge classes, with a chance below 1e-9 for 2^20 of them.
class Refinement {
 public:
  explicit Refinement(const System& system)
      : system_(system),
        ranks_(system.num_ranks()),
        communicators_(system.communicators.size()),
        links_(system.link_capacity.size()) {
    std::vector<std::uint64_t> signature(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      signature[r] = mix(1, system.role_of_rank[r]);
      if (!system.slowness.empty())
        signature[r] = mix(signature[r], std::bit_cast<std::uint64_t>(system.slowness[r]));
    }
    num_ranks_ = renumber(signature, ranks_);
    signature.assign(links_.size(), 0);
    for (std::size_t l = 0; l < links_.size(); ++l)
      signature[l] = mix(2, std::bit_cast<std::uint64_t>(system.link_capacity[l].value));
    num_links_ = renumber(signature, links_);
    num_communicators_ = renumber(by_slot(), communicators_);
    for (Colour before = 0; before != total(); refine()) before = total();
  }

  Classes take() {
    return {std::move(ranks_), std::move(communicators_), std::move(links_),
            num_ranks_,        num_communicators_,        num_links_};
  }

 private:
  Colour total() const { return num_ranks_ + num_communicators_ + num_links_; }

  /// Of each communicator: its members, each with the slot by which it knows it. Groups that ranks
  /// know by different slots differ, although they may have the same members: of two stages that
  /// send to each other, each is the sender of one pair.
  std::vector<std::uint64_t> by_slot() const {
    std::vector<std::uint64_t> out(communicators_.size(), 0);
    for (std::size_t slot = 0; slot < system_.communicator_of.size(); ++slot)
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (const std::uint32_t c = system_.communicator_of[slot][r]; c != no_communicator)
          out[c] += mix(mix(9, slot), ranks_[r]);
    return out;
  }

  // Sums of mixed values are multiset hashes: the order of members and loads does not matter.
  void refine() {
    std::vector<std::uint64_t> signature = by_slot();
    std::vector<std::uint64_t> on_link(links_.size());
    for (std::size_t c = 0; c < communicators_.size(); ++c) {
      const Communicator& communicator = system_.communicators[c];
      std::uint64_t members = signature[c], loads = 0;
      for (const std::uint32_t r : communicator.members) members += mix(3, ranks_[r]);
      for (const LinkLoad& load : communicator.loads)
        loads += mix(mix(4, links_[load.link]), std::bit_cast<std::uint64_t>(load.weight));
      signature[c] = mix(mix(mix(mix(5, communicators_[c]), communicator.pattern), members), loads);
    }
    num_communicators_ = renumber(signature, communicators_);
    for (std::size_t c = 0; c < communicators_.size(); ++c)
      for (const LinkLoad& load : system_.communicators[c].loads)
        on_link[load.link] +=
            mix(mix(6, communicators_[c]), std::bit_cast<std::uint64_t>(load.weight));
    for (std::size_t l = 0; l < links_.size(); ++l) on_link[l] = mix(mix(7, links_[l]), on_link[l]);
    num_links_ = renumber(on_link, links_);
    signature.assign(ranks_.size(), 0);
    for (std::size_t r = 0; r < ranks_.size(); ++r) signature[r] = mix(8, ranks_[r]);
    for (const auto& slot : system_.communicator_of)
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        signature[r] = mix(signature[r],
                           slot[r] == no_communicator ? no_communicator : communicators_[slot[r]]);
    num_ranks_ = renumber(signature, ranks_);
  }

  const System& system_;
  Colours ranks_, communicators_, links_;
  Colour num_ranks_ = 0, num_communicators_ = 0, num_links_ = 0;
};

/// Hashes a system for likeness_of().
class Digest {
 public:
  explicit Digest(const Likeness& from = {1, 2}) : out_(from) {}
  void add(std::uint64_t value) {
    out_.first = mix(out_.first, value);
    out_.second = (out_.second + value) * 0xd6e8feb86659fd93U;
    out_.second ^= out_.second >> 32;
  }
  template <class T>
  void add_all(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) add(value);
  }
  Likeness take() const { return out_; }

 private:
  Likeness out_;
};

/// Numbers of values, equal ones the same, in the order in which they first come.
class Numbers {
 public:
  Colour of(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    if (last_ == nullptr || last_->first != bits)
      last_ = &*numbers_.try_emplace(bits, static_cast<Colour>(numbers_.size())).first;
    return last_->second;
  }

 private:
  std::unordered_map<std::uint64_t, Colour> numbers_;  // looked up only, never walked
  const std::pair<const std::uint64_t, Colour>* last_ = nullptr;
};

}  // namespace

Classes classes_of(const System& system) {
  expects(!system.jitter.on(), "without jitter: it makes every rank different");
  return Refinement(system).take();
}

Likeness likeness_of_groups(const System& system) {
  Digest digest;
  digest.add_all(system.role_of_rank);
  for (const auto& slot : system.communicator_of) digest.add_all(slot);
  digest.add(system.communicators.size());
  for (const Communicator& c : system.communicators) {
    digest.add(c.pattern);
    digest.add_all(c.members);
  }
  return digest.take();
}

Likeness likeness_of(const System& system, const Likeness& of_groups) {
  Digest digest(of_groups);
  Numbers speeds, capacities, weights;
  for (const double slowness : system.slowness) digest.add(speeds.of(slowness));
  digest.add(system.link_capacity.size());
  for (const BytesPerSecond c : system.link_capacity) digest.add(capacities.of(c.value));
  for (const Communicator& c : system.communicators) {
    digest.add(c.loads.size());
    for (const LinkLoad& load : c.loads)
      digest.add(std::uint64_t{load.link} << 32 | weights.of(load.weight));
  }
  return digest.take();
}

Likeness likeness_of(const System& system) {
  return likeness_of(system, likeness_of_groups(system));
}

std::vector<std::uint32_t> Fold::first() const {
  std::vector<std::uint32_t> out(multiplicity.size());
  for (std::size_t r = representative.size(); r-- > 0;)
    out[representative[r]] = static_cast<std::uint32_t>(r);
  return out;
}

Fold fold(const System& system, const Classes& classes) {
  expects(classes.ranks.size() == system.num_ranks() &&
              classes.communicators.size() == system.communicators.size() &&
              classes.links.size() == system.link_capacity.size(),
          "classes of this system");
  Fold out;
  out.representative.assign(classes.ranks.begin(), classes.ranks.end());
  out.multiplicity.assign(classes.num_ranks, 0);
  for (const Colour c : classes.ranks) ++out.multiplicity[c];

  System& s = out.system;
  s.roles = system.roles;
  s.works = system.works;
  s.stretch = system.stretch;
  s.host_costs = system.host_costs;
  s.num_patterns = system.num_patterns;
  s.transfers = system.transfers;
  s.role_of_rank.resize(classes.num_ranks);
  if (!system.slowness.empty()) s.slowness.resize(classes.num_ranks);
  s.communicator_of.assign(system.communicator_of.size(),
                           std::vector<std::uint32_t>(classes.num_ranks, no_communicator));
  for (Colour next = 0; const std::uint32_t r : out.first()) {  // the others are like it
    const Colour c = next++;
    s.role_of_rank[c] = system.role_of_rank[r];
    if (!system.slowness.empty()) s.slowness[c] = system.slowness[r];
    for (std::size_t slot = 0; slot < system.communicator_of.size(); ++slot)
      if (system.communicator_of[slot][r] != no_communicator)
        s.communicator_of[slot][c] = classes.communicators[system.communicator_of[slot][r]];
  }
  s.link_capacity.resize(classes.num_links);
  s.link_owner.assign(classes.num_links, no_owner);
  std::vector<std::uint32_t> link_of(classes.num_links, ~std::uint32_t{0});
  for (std::size_t l = 0; l < system.link_capacity.size(); ++l) {
    const Colour c = classes.links[l];
    if (link_of[c] != ~std::uint32_t{0}) continue;
    link_of[c] = static_cast<std::uint32_t>(l);
    s.link_capacity[c] = system.link_capacity[l];
    if (system.link_owner[l] != no_owner) s.link_owner[c] = classes.ranks[system.link_owner[l]];
  }
  // A class of communicators joins its members' classes once each, and puts on a class of links
  // what all its communicators put on one link of it.
  s.communicators.resize(classes.num_communicators);
  std::vector<bool> made(classes.num_communicators);
  std::vector<std::map<Colour, double>> on_link(classes.num_communicators);
  for (std::size_t c = 0; c < system.communicators.size(); ++c) {
    const Colour colour = classes.communicators[c];
    for (const LinkLoad& load : system.communicators[c].loads)
      if (link_of[classes.links[load.link]] == load.link)
        on_link[colour][classes.links[load.link]] += load.weight;
    if (made[colour]) continue;
    made[colour] = true;
    Communicator& folded = s.communicators[colour];
    folded.pattern = system.communicators[c].pattern;
    for (const std::uint32_t r : system.communicators[c].members)
      folded.members.push_back(classes.ranks[r]);
    std::ranges::sort(folded.members);
    folded.members.erase(std::ranges::unique(folded.members).begin(), folded.members.end());
  }
  for (std::size_t c = 0; c < on_link.size(); ++c)
    for (const auto& [link, weight] : on_link[c])
      s.communicators[c].loads.push_back({link, weight});
  return out;
}

}  // namespace stepcast::engine
