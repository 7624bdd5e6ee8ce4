#include "sim/run/column_fold.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "topology/wires.hpp"

namespace stepcast::sim {
namespace {

using Colour = std::uint32_t;
using topology::LinkId;

/// SplitMix64's finalizer, as of engine/fold.cpp.
std::uint64_t mixed(std::uint64_t h, std::uint64_t v) {
  h = (h ^ (v * 0x9e3779b97f4a7c15U)) + 0x9e3779b97f4a7c15U;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}
std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

Colour renumber(const std::vector<std::uint64_t>& signatures, std::vector<Colour>& colours) {
  std::unordered_map<std::uint64_t, Colour> numbers;  // looked up only, never walked
  colours.resize(signatures.size());
  for (std::size_t i = 0; i < signatures.size(); ++i)
    colours[i] =
        numbers.try_emplace(signatures[i], static_cast<Colour>(numbers.size())).first->second;
  return static_cast<Colour>(numbers.size());
}

/// Columns that have alike links, joined by alike links of several columns: some equitable
/// partition, though not the coarsest.
struct KindsOfColumns {
  std::vector<Colour> of_column, of_several;
  Colour columns = 1, several = 0;
};

/// `of_column`: of each sample.
KindsOfColumns kinds_of(const Columns& columns, const ColumnLinks& links) {
  KindsOfColumns out;
  const auto within = columns.within.size();
  std::vector<std::uint64_t> signature(static_cast<std::size_t>(links.columns.size()));
  for (const ColumnLinks::Own& own : links.own) {
    if (own.link < links.of_each.size() && own.capacity >= links.of_each[own.link].capacity)
      continue;
    signature[own.column] = mixed(mixed(signature[own.column], own.link), bits(own.capacity.value));
  }
  out.columns = renumber(signature, out.of_column);
  std::vector<std::uint64_t> on_link(links.of_several.size());
  for (Colour before = 0; before != out.columns + out.several;) {
    before = out.columns + out.several;
    for (std::size_t l = 0; l < on_link.size(); ++l) {
      const ColumnLink& link = links.of_several[l];
      on_link[l] = mixed(1, bits(link.capacity.value));
      for (const GroupUse& use : link.uses)
        on_link[l] += mixed(mixed(mixed(2, use.group), bits(use.weight)),
                            use.group < within ? out.of_column[use.column] : 0U);
    }
    out.several = renumber(on_link, out.of_several);
    for (std::size_t k = 0; k < signature.size(); ++k) signature[k] = mixed(3, out.of_column[k]);
    for (std::size_t l = 0; l < on_link.size(); ++l)
      for (const GroupUse& use : links.of_several[l].uses)
        if (use.group < within)
          signature[use.column] +=
              mixed(mixed(mixed(4, use.group), bits(use.weight)), out.of_several[l]);
    out.columns = renumber(signature, out.of_column);
  }
  return out;
}

/// What stands for the same part of all columns of a kind, or for one part of the whole.
struct Item {
  std::uint64_t first = 0;  // rank, communicator or link of the whole
  std::int64_t count = 1;   // that it stands for
};
struct RankItem : Item {
  std::uint32_t role = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> meets;  // slot, communicator item
};
struct CommunicatorItem : Item {
  std::uint32_t pattern = 0;
  std::vector<std::uint32_t> members;  // rank items
  /// Links of one item that one communicator loads with one weight.
  std::map<std::pair<std::uint32_t, double>, std::int64_t> loads;
};
struct LinkItem : Item {
  BytesPerSecond capacity{};
  std::optional<std::uint32_t> owner;  // of its first link: a rank item
  struct Use {
    std::uint32_t communicator = 0;
    double weight = 0.0;
  };
  std::vector<Use> uses;  // of its first link, by communicator
};

struct Quotient {
  std::vector<RankItem> ranks;
  std::vector<CommunicatorItem> communicators;
  std::vector<LinkItem> links;
};

class QuotientOfColumns {
 public:
  QuotientOfColumns(const Columns& columns, const ColumnLinks& links,
                    const topology::Cluster& cluster)
      : columns_(columns), links_(links), cluster_(cluster), kinds_(kinds_of(columns, links)) {
    first_.assign(kinds_.columns, std::numeric_limits<std::uint32_t>::max());
    count_.resize(kinds_.columns);
    for (std::size_t i = 0; i < kinds_.of_column.size(); ++i) {
      const Colour kind = kinds_.of_column[i];
      const auto sample = static_cast<std::int64_t>(i);
      first_[kind] =
          std::min(first_[kind], static_cast<std::uint32_t>(links.columns.column(sample)));
      count_[kind] += links.columns.count(sample);
    }
    add_ranks();
    add_communicators();
    add_links();
    for (std::uint32_t l = 0; l < out_.links.size(); ++l) finish(l);
  }
  Quotient take() { return std::move(out_); }

 private:
  std::uint32_t rank_item(Colour kind, std::uint32_t member) const {
    return kind * static_cast<std::uint32_t>(columns_.ranks()) + member;
  }
  std::uint32_t communicator_item(std::uint32_t group, Colour kind) const {
    const auto within = static_cast<std::uint32_t>(columns_.within.size());
    return group < within ? kind * within + group : kinds_.columns * within + group - within;
  }

  void add_ranks() {
    for (Colour kind = 0; kind < kinds_.columns; ++kind)
      for (std::uint32_t member = 0; member < columns_.ranks(); ++member) {
        RankItem item;
        item.first = static_cast<std::uint64_t>(columns_.rank(member, first_[kind]));
        item.count = count_[kind];
        item.role = member / static_cast<std::uint32_t>(columns_.gpus);
        out_.ranks.push_back(std::move(item));
      }
  }

  void add_communicators() {
    for (Colour kind = 0; kind < kinds_.columns; ++kind)
      for (const ColumnGroup& group : columns_.within) {
        CommunicatorItem item;
        item.first = group.first + std::uint64_t{first_[kind]} * group.step;
        item.count = count_[kind];
        item.pattern = group.pattern;
        const bool pair = axis_of(group.kind).meeting == workloads::Meeting::pair;
        for (std::size_t m = 0; m < group.members.size(); ++m)
          join(item, rank_item(kind, group.members[m]), slot_of(group.kind, pair && m > 0));
        out_.communicators.push_back(std::move(item));
      }
    for (const SpanningGroup& group : columns_.spanning) {
      CommunicatorItem item;
      item.first = group.communicator;
      item.pattern = group.pattern;
      for (Colour kind = 0; kind < kinds_.columns; ++kind)
        for (const std::uint32_t member : group.members)
          join(item, rank_item(kind, member), workloads::slot_of(group.kind));
      out_.communicators.push_back(std::move(item));
    }
  }
  void join(CommunicatorItem& item, std::uint32_t rank, std::uint32_t slot) {
    item.members.push_back(rank);
    out_.ranks[rank].meets.emplace_back(slot,
                                        static_cast<std::uint32_t>(out_.communicators.size()));
  }

  /// A link of column 0, or of its NICs' cables, in another column.
  LinkId in_column(LinkId link, std::uint32_t column) const {
    const LinkId per_node = topology::links_of_a_node(cluster_);
    const auto nodes = static_cast<LinkId>(cluster_.num_nodes());
    return link +
           column *
               (link < nodes * per_node ? per_node : 2 * static_cast<LinkId>(cluster_.node().nics));
  }

  LinkItem& add_link(const ColumnLink& link, Colour kind, std::int64_t count) {
    LinkItem item;
    item.first = link.first;
    item.count = count;
    item.capacity = link.capacity;
    for (const GroupUse& use : link.uses)
      item.uses.push_back({communicator_item(use.group, kind), use.weight});
    out_.links.push_back(std::move(item));
    return out_.links.back();
  }

  void add_links() {
    for (Colour kind = 0; kind < kinds_.columns; ++kind)
      for (const ColumnLink& link : links_.of_each)
        add_link(link, kind, count_[kind]).first = in_column(link.first, first_[kind]);
    const auto of_each = static_cast<std::uint32_t>(links_.of_each.size());
    std::map<std::pair<Colour, std::uint32_t>, std::uint32_t> some;  // item by kind and link
    for (const ColumnLinks::Own& own : links_.own) {
      const Colour kind = kinds_.of_column[own.column];
      if (own.link < of_each) {
        BytesPerSecond& capacity = out_.links[kind * of_each + own.link].capacity;
        capacity = std::min(capacity, own.capacity);
        continue;
      }
      const auto [at, added] =
          some.try_emplace({kind, own.link}, static_cast<std::uint32_t>(out_.links.size()));
      if (added) {
        LinkItem& item = add_link(links_.of_some[own.link - of_each], kind, count_[kind]);
        item.first = own.first;
        item.capacity = own.capacity;
      }
      std::uint64_t& first = out_.links[at->second].first;
      first = std::min<std::uint64_t>(first, own.first);
    }
    const std::size_t several = out_.links.size();
    out_.links.resize(several + kinds_.several);
    for (std::size_t l = 0; l < links_.of_several.size(); ++l) {
      const ColumnLink& link = links_.of_several[l];
      LinkItem& item = out_.links[several + kinds_.of_several[l]];
      const auto within = std::ranges::find_if(
          link.uses, [&](const GroupUse& use) { return use.group < columns_.within.size(); });
      const std::int64_t count = links_.columns.count(within->column);
      if (!item.uses.empty()) {  // in ascending order: the first one stands for all
        item.count += count;
        continue;
      }
      item.count = count;
      item.first = link.first;
      item.capacity = link.capacity;
      for (const GroupUse& use : link.uses)
        item.uses.push_back(
            {communicator_item(use.group, kinds_.of_column[use.column]), use.weight});
    }
    for (const ColumnLink& link : links_.of_all) add_link(link, 0, 1);
  }

  /// Each use of a link item is as many loads as the item has links, shared by its communicators.
  void finish(std::uint32_t l) {
    LinkItem& link = out_.links[l];
    for (const LinkItem::Use& use : link.uses)
      out_.communicators[use.communicator].loads[{l, use.weight}] += link.count;
    if (const auto gpu = cluster_.private_gpu(static_cast<LinkId>(link.first))) {
      const std::int64_t node = *gpu / columns_.gpus;
      const auto sample = static_cast<std::size_t>(links_.columns.sample(node % columns_.count));
      link.owner = rank_item(
          kinds_.of_column[sample],
          static_cast<std::uint32_t>(node / columns_.count * columns_.gpus + *gpu % columns_.gpus));
    }
  }

  const Columns& columns_;
  const ColumnLinks& links_;
  const topology::Cluster& cluster_;
  KindsOfColumns kinds_;
  std::vector<std::uint32_t> first_;  // column of each kind
  std::vector<std::int64_t> count_;
  Quotient out_;
};

/// Colour refinement, as of engine/fold.cpp, on items: each counts as often as it is met.
class Refinement {
 public:
  explicit Refinement(const Quotient& q) : q_(q) {
    std::vector<std::uint64_t> signature;
    for (const RankItem& rank : q.ranks) signature.push_back(mixed(1, rank.role));
    num_ranks = renumber(signature, ranks);
    signature.clear();
    for (const LinkItem& link : q.links) signature.push_back(mixed(2, bits(link.capacity.value)));
    num_links = renumber(signature, links);
    communicators.assign(q.communicators.size(), 0);
    num_communicators = communicators.empty() ? 0 : 1;
    for (Colour before = 0; before != num_ranks + num_communicators + num_links; refine())
      before = num_ranks + num_communicators + num_links;
  }

  std::vector<Colour> ranks, communicators, links;
  Colour num_ranks = 0, num_communicators = 0, num_links = 0;

 private:
  void refine() {
    std::vector<std::uint64_t> met(q_.communicators.size()), on_link(links.size());
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const auto& [slot, c] : q_.ranks[r].meets)
        met[c] += times(q_.ranks[r].count, q_.communicators[c]) * mixed(mixed(4, slot), ranks[r]);
    for (std::size_t c = 0; c < met.size(); ++c) {
      const CommunicatorItem& communicator = q_.communicators[c];
      std::uint64_t loads = 0;
      for (const auto& [load, count] : communicator.loads)
        loads += times(count, communicator) * mixed(mixed(5, bits(load.second)), links[load.first]);
      met[c] = mixed(mixed(mixed(mixed(7, communicators[c]), communicator.pattern), met[c]), loads);
    }
    for (std::size_t l = 0; l < links.size(); ++l) {
      for (const LinkItem::Use& use : q_.links[l].uses)
        on_link[l] += mixed(mixed(6, bits(use.weight)), communicators[use.communicator]);
      on_link[l] = mixed(mixed(8, links[l]), on_link[l]);
    }
    num_communicators = renumber(met, communicators);
    num_links = renumber(on_link, links);
    std::vector<std::uint64_t> of_rank(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::uint64_t all = 0;
      for (const auto& [slot, c] : q_.ranks[r].meets)
        all += mixed(mixed(9, slot), communicators[c]);
      of_rank[r] = mixed(mixed(10, ranks[r]), all);
    }
    num_ranks = renumber(of_rank, ranks);
  }

  /// Of so many meetings with all communicators of the item, those of one.
  static std::uint64_t times(std::int64_t meetings, const CommunicatorItem& of) {
    return static_cast<std::uint64_t>(meetings / of.count);
  }

  const Quotient& q_;
};

/// The items of a class that comes first, by class; classes by it.
template <class Items>
std::vector<std::uint32_t> firsts(const Items& items, std::vector<Colour>& classes, Colour count) {
  std::vector<std::uint32_t> first(count, ~std::uint32_t{0});
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    std::uint32_t& known = first[classes[i]];
    if (known == ~std::uint32_t{0} || items[i].first < items[known].first) known = i;
  }
  std::ranges::sort(first, {}, [&](std::uint32_t i) { return items[i].first; });
  std::vector<Colour> number(count);
  for (Colour c = 0; c < count; ++c) number[classes[first[c]]] = c;
  for (Colour& c : classes) c = number[c];
  return first;
}

}  // namespace

ColumnFold fold_columns(const Columns& columns, const ColumnLinks& links,
                        const topology::Cluster& cluster) {
  const Quotient q = QuotientOfColumns(columns, links, cluster).take();
  Refinement classes(q);
  const auto rank = firsts(q.ranks, classes.ranks, classes.num_ranks);
  const auto communicator =
      firsts(q.communicators, classes.communicators, classes.num_communicators);
  const auto link = firsts(q.links, classes.links, classes.num_links);

  ColumnFold out;
  engine::System& s = out.system;
  out.multiplicity.assign(rank.size(), 0);
  for (std::size_t r = 0; r < q.ranks.size(); ++r)
    out.multiplicity[classes.ranks[r]] += q.ranks[r].count;
  s.communicator_of.assign(workloads::num_slots(),
                           std::vector<std::uint32_t>(rank.size(), engine::no_communicator));
  for (std::size_t r = 0; r < rank.size(); ++r) {
    s.role_of_rank.push_back(q.ranks[rank[r]].role);
    for (const auto& [slot, c] : q.ranks[rank[r]].meets)
      s.communicator_of[slot][r] = classes.communicators[c];
  }
  for (const std::uint32_t c : communicator) {
    engine::Communicator& folded = s.communicators.emplace_back();
    folded.pattern = q.communicators[c].pattern;
    for (const std::uint32_t r : q.communicators[c].members)
      folded.members.push_back(classes.ranks[r]);
    std::ranges::sort(folded.members);
    folded.members.erase(std::ranges::unique(folded.members).begin(), folded.members.end());
  }
  for (std::uint32_t l = 0; l < link.size(); ++l) {
    const LinkItem& item = q.links[link[l]];
    s.link_capacity.push_back(item.capacity);
    s.link_owner.push_back(item.owner ? classes.ranks[*item.owner] : engine::no_owner);
    // All that communicators of a class put on the link that stands for its class.
    std::map<std::uint32_t, double> weights;
    for (const LinkItem::Use& use : item.uses)
      weights[classes.communicators[use.communicator]] += use.weight;
    for (const auto& [c, weight] : weights) s.communicators[c].loads.push_back({l, weight});
  }
  return out;
}

}  // namespace stepcast::sim
