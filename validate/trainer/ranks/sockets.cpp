#include "validate/trainer/ranks/sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "engine/check.hpp"
#include "validate/trainer/ranks/peer_mesh.hpp"
#include "validate/trainer/ranks/reduction.hpp"

namespace stepcast::validate {
namespace {

using Channel = PeerMesh::Channel;
using Message = PeerMesh::Message;

/// A group: `members` are its ranks in the run.
class SocketCommunicator final : public Communicator {
 public:
  SocketCommunicator(PeerMesh& mesh, Channel group, std::vector<std::size_t> members)
      : mesh_(mesh),
        collectives_(2 * group),
        messages_(2 * group + 1),
        members_(std::move(members)),
        rank_(static_cast<std::size_t>(std::ranges::find(members_, mesh.rank()) -
                                       members_.begin())) {}

  std::int64_t rank() const override { return static_cast<std::int64_t>(rank_); }
  std::int64_t size() const override { return static_cast<std::int64_t>(members_.size()); }

  /// Everybody tells the first, and the first tells everybody.
  void barrier() override {
    if (rank_ == 0) {
      for (std::size_t r = 1; r < members_.size(); ++r) get(r, "barrier", 0);
      for (std::size_t r = 1; r < members_.size(); ++r) put(r, {}, "barrier");
    } else {
      put(0, {}, "barrier");
      get(0, "barrier", 0);
    }
  }

  std::unique_ptr<Communicator> split(std::optional<std::int64_t> color) override {
    struct Wish {
      std::int64_t color, has_color, next_group;
    };
    const Wish mine{color.value_or(0), color ? 1 : 0, mesh_.next_group};
    std::vector<Wish> wishes(members_.size());
    all_of(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(wishes)), "split");
    std::vector<std::size_t> members;
    std::int64_t group = 0;  // that none of these ranks has used: two ranks meet in it at most once
    for (std::size_t r = 0; r < wishes.size(); ++r) {
      group = std::max(group, wishes[r].next_group);
      if (wishes[r].has_color == 1 && wishes[r].color == mine.color) members.push_back(members_[r]);
    }
    mesh_.next_group = static_cast<Channel>(group) + 1;
    if (!color) return nullptr;
    return std::make_unique<SocketCommunicator>(mesh_, static_cast<Channel>(group),
                                                std::move(members));
  }

  void check_peers() override { mesh_.look(); }
  void allow_threads() override { mesh_.allow_threads(); }
  void give_up(const std::exception_ptr& /*cause*/) override { mesh_.give_up(); }

 private:
  void put(std::size_t to, std::span<const std::byte> values, const char* what) {
    mesh_.send(members_[to], collectives_, values, what);
  }
  /// Of `size` bytes: what a peer sends is no promise of this program's.
  Message get(std::size_t from, const char* what, std::size_t size) {
    return received(members_[from], collectives_, what, size);
  }
  Message received(std::size_t rank, Channel channel, const char* what, std::size_t size) {
    Message message = mesh_.receive(rank, channel, what);
    if (message.size() != size)
      throw PeerLost(fmt::format("rank {} sent {} bytes to rank {} in {} instead of {}", rank,
                                 message.size(), mesh_.rank(), what, size));
    return message;
  }
  void get_into(std::size_t from, const char* what, std::span<std::byte> values) {
    std::ranges::copy(get(from, what, values.size()), values.begin());
  }

  template <class Work>
  void for_others(Work work) {
    for (std::size_t i = 1; i < members_.size(); ++i) work((rank_ + i) % members_.size());
  }

  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    expects(from.size() == to.size(), "ranks call a collective with equal lengths");
    std::ranges::copy(from, to.begin());
  }

  /// Rank r's share of a reduction, in bytes.
  std::span<std::byte> part(std::span<std::byte> values, std::size_t r, Scalar scalar) const {
    const std::size_t count = values.size() / size_of(scalar), n = members_.size();
    const std::size_t from = count * r / n, to = count * (r + 1) / n;
    return values.subspan(from * size_of(scalar), (to - from) * size_of(scalar));
  }

  /// `own` beside what the others have sent of it, combined in the order of ranks into `into`.
  void combine_all(std::span<const std::byte> own, std::span<std::byte> into, Scalar scalar,
                   Reduction how, const char* what) {
    std::vector<Message> messages(members_.size());
    for_others([&](std::size_t r) { messages[r] = get(r, what, own.size()); });
    std::vector<std::span<const std::byte>> parts;
    for (std::size_t r = 0; r < messages.size(); ++r)
      parts.push_back(r == rank_ ? own : std::span<const std::byte>(messages[r]));
    reduce(parts, into, scalar, how);
  }

  /// Everybody sums up one part and tells it to the others; a short one everybody sums up whole.
  void reduce_bytes(std::span<std::byte> values, Scalar scalar, Reduction how) override {
    constexpr std::size_t is_short = 8192;
    const char* const what = "all-reduce";
    if (values.size() <= is_short) {
      for_others([&](std::size_t r) { put(r, values, what); });
      combine_all(values, values, scalar, how, what);
      return;
    }
    for_others([&](std::size_t r) { put(r, part(values, r, scalar), what); });
    const auto mine = part(values, rank_, scalar);
    combine_all(mine, mine, scalar, how, what);
    for_others([&](std::size_t r) { put(r, mine, what); });
    for_others([&](std::size_t r) { get_into(r, what, part(values, r, scalar)); });
  }

  void all_of(std::span<const std::byte> mine, std::span<std::byte> all, const char* what) {
    expects(all.size() == mine.size() * members_.size(), "room for all ranks' parts");
    for_others([&](std::size_t r) { put(r, mine, what); });
    copy(mine, all.subspan(rank_ * mine.size(), mine.size()));
    for_others(
        [&](std::size_t r) { get_into(r, what, all.subspan(r * mine.size(), mine.size())); });
  }

  void gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Scalar) override {
    all_of(mine, all, "all-gather");
  }

  void scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                     Scalar scalar) override {
    const std::size_t size = mine.size();
    expects(all.size() == size * members_.size(), "one part for each rank");
    for_others([&](std::size_t r) { put(r, all.subspan(r * size, size), "reduce-scatter"); });
    combine_all(all.subspan(rank_ * size, size), mine, scalar, Reduction::sum, "reduce-scatter");
  }

  void exchange_bytes(std::span<const std::byte> mine, Counts to, std::span<std::byte> theirs,
                      Counts from) override {
    const auto part_of = [](auto all, Counts sizes, std::size_t r) {
      std::size_t before = 0;
      for (std::size_t i = 0; i < r; ++i) before += sizes[i];
      return all.subspan(before, sizes[r]);
    };
    for_others([&](std::size_t r) { put(r, part_of(mine, to, r), "all-to-all"); });
    copy(part_of(mine, to, rank_), part_of(theirs, from, rank_));
    for_others([&](std::size_t r) { get_into(r, "all-to-all", part_of(theirs, from, r)); });
  }

  void broadcast_bytes(std::span<std::byte> values, std::int64_t root) override {
    if (root == rank())
      for_others([&](std::size_t r) { put(r, values, "broadcast"); });
    else
      get_into(static_cast<std::size_t>(root), "broadcast", values);
  }

  void send_bytes(std::span<const std::byte> values, std::int64_t peer) override {
    mesh_.send(members_.at(static_cast<std::size_t>(peer)), messages_, values, "send");
  }

  void receive_bytes(std::span<std::byte> values, std::int64_t peer) override {
    const std::size_t from = members_.at(static_cast<std::size_t>(peer));
    std::ranges::copy(received(from, messages_, "receive", values.size()), values.begin());
  }

  PeerMesh& mesh_;
  const Channel collectives_, messages_;
  const std::vector<std::size_t> members_;
  const std::size_t rank_;
};

}  // namespace

SocketRanks::SocketRanks(std::int64_t rank, std::vector<sim::Descriptor> connections,
                         Duration patience)
    : mesh_(std::make_unique<PeerMesh>(rank, std::move(connections), patience)) {}

SocketRanks::~SocketRanks() {
  if (std::uncaught_exceptions() > 0) return;  // closed without a goodbye: the peers are to end
  try {
    mesh_->say_goodbye();
  } catch (const PeerLost&) {
    // This rank has done its work; who started the ranks hears of the other from its exit code.
  }
}

std::unique_ptr<Communicator> SocketRanks::world() {
  std::vector<std::size_t> members(mesh_->size());
  for (std::size_t r = 0; r < members.size(); ++r) members[r] = r;
  return std::make_unique<SocketCommunicator>(*mesh_, 0, std::move(members));
}

}  // namespace stepcast::validate
