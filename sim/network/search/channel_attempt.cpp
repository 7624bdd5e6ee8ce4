#include "sim/network/search/channel_attempt.hpp"

#include <algorithm>
#include <limits>

namespace stepcast::sim {

bool takes_both_ends(const NodeWires& wires, const std::vector<std::int64_t>& members,
                     std::int64_t nic, bool far_nics) {
  const auto num = std::count_if(members.begin(), members.end(),
                                 [&](std::int64_t gpu) { return near(wires, gpu, nic, far_nics); });
  return num > 1 || members.size() == 1;
}

ChannelAttempt::ChannelAttempt(const NodeWires& wires, const std::vector<std::int64_t>& members,
                               const std::vector<std::int64_t>& nics, const Terms& terms)
    : wires_(wires), members_(members), nics_(nics), terms_(terms), left_(wires.planned()) {
  visited_.assign(static_cast<std::size_t>(members.back()) + 1, 0);
}

std::vector<NodeChannel> ChannelAttempt::run() {
  if (terms_.want > 0) next_channel();
  return best_;
}

bool ChannelAttempt::take(const WireRoute& way, double speed) {
  for (std::size_t i = 0; i < way.count; ++i) {
    left_[way.wires[i]] -= speed;
    if (left_[way.wires[i]] >= -1e-3 * speed) continue;
    for (std::size_t j = 0; j <= i; ++j) left_[way.wires[j]] += speed;
    return false;
  }
  return true;
}

void ChannelAttempt::give(const WireRoute& way, double speed) {
  for (std::size_t i = 0; i < way.count; ++i) left_[way.wires[i]] += speed;
}

void ChannelAttempt::next_channel() {
  if (channels_.size() > best_.size()) best_ = channels_;
  if (finished()) return;
  nics_.empty() ? close_in_node() : enter_from_network();
}

/// The last ring again, and the other way round, before anything new.
void ChannelAttempt::close_in_node() {
  if (!channels_.empty()) {
    const std::vector<std::int64_t> last = channels_.back().gpus;
    replay(last);
    if (finished()) return;
    std::vector<std::int64_t> back = last;
    std::reverse(back.begin() + 1, back.end());
    replay(back);
    if (finished()) return;
  }
  NodeChannel channel;
  channel.gpus.push_back(members_.front());
  visited_[static_cast<std::size_t>(members_.front())] = 1;
  visit(channel);
  visited_[static_cast<std::size_t>(members_.front())] = 0;
}

void ChannelAttempt::replay(std::vector<std::int64_t> order) {
  std::vector<WireRoute> taken;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t next = (i + 1) % order.size();
    if (next == 0 && terms_.exit != ChannelExit::closes) break;
    const auto way = wires_.between_gpus(order[i], order[next], terms_.reach);
    if (!way || !take(*way, terms_.speed)) {
      order.clear();
      break;
    }
    taken.push_back(*way);
  }
  NodeChannel channel;
  channel.gpus = std::move(order);
  if (!channel.gpus.empty()) complete(channel);
  for (const WireRoute& way : taken) give(way, terms_.speed);
}

/// NICs in turn, from the one after the last channel's; the second of a crossing pair comes in
/// where the first went out.
void ChannelAttempt::enter_from_network() {
  const bool crossing = terms_.exit == ChannelExit::cross_nic;
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    const std::int64_t nic = nics_[(channels_.size() + i) % nics_.size()];
    if (crossing && channels_.size() % 2 == 1 && nic != channels_.back().nic_out) continue;
    if (terms_.exit == ChannelExit::same_nic &&
        !takes_both_ends(wires_, members_, nic, terms_.far_nics))
      continue;
    for (const bool own : {true, false}) {  // the GPUs that this NIC is closest to come first
      for (const std::int64_t gpu : members_) {
        if ((wires_.nic_of(gpu) == nic) != own) continue;
        if (!own && !near(wires_, gpu, nic, terms_.far_nics)) continue;
        const WireRoute in = wires_.from_nic(nic, gpu);
        if (!take(in, terms_.nic_speed)) continue;
        NodeChannel channel;
        channel.nic_in = nic;
        channel.gpus.push_back(gpu);
        visited_[static_cast<std::size_t>(gpu)] = 1;
        visit(channel);
        visited_[static_cast<std::size_t>(gpu)] = 0;
        give(in, terms_.nic_speed);
        if (finished()) return;
      }
    }
  }
}

double ChannelAttempt::left_between(std::int64_t from, std::int64_t to) const {
  const auto way = wires_.between_gpus(from, to, terms_.reach);
  if (!way) return -1.0;
  double left = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < way->count; ++i) left = std::min(left, left_[way->wires[i]]);
  return left;
}

/// GPUs that the channel must end at come last, then the widest way first, then downwards from the
/// GPU that it is at.
std::vector<std::int64_t> ChannelAttempt::next_gpus(const NodeChannel& channel) const {
  struct Candidate {
    bool ends;
    double left;
    std::int64_t gpu;
  };
  std::vector<Candidate> candidates;
  const auto at = std::find(members_.begin(), members_.end(), channel.gpus.back());
  const auto place = static_cast<std::size_t>(at - members_.begin());
  std::int64_t end_nic = -1;
  if (terms_.exit == ChannelExit::same_nic) end_nic = channel.nic_in;
  if (terms_.exit == ChannelExit::cross_nic && channels_.size() % 2 == 1)
    end_nic = channels_.back().nic_in;
  const bool upward = terms_.exit == ChannelExit::closes;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    const std::size_t n = members_.size();
    const std::int64_t gpu = members_[upward ? (place + i) % n : (place + n - i) % n];
    if (visited_[static_cast<std::size_t>(gpu)] != 0) continue;
    const double left = left_between(channel.gpus.back(), gpu);
    if (left < terms_.speed * 0.999) continue;
    const bool ends = end_nic >= 0 && near(wires_, gpu, end_nic, terms_.far_nics);
    candidates.push_back({ends, left, gpu});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.ends != b.ends ? !a.ends : a.left > b.left * 1.001;
  });
  std::vector<std::int64_t> gpus;
  for (const Candidate& candidate : candidates) gpus.push_back(candidate.gpu);
  return gpus;
}

void ChannelAttempt::visit(NodeChannel& channel) {
  if (--steps_ <= 0) return;
  if (channel.gpus.size() == members_.size()) return leave(channel);
  for (const std::int64_t gpu : next_gpus(channel)) {
    const auto way = wires_.between_gpus(channel.gpus.back(), gpu, terms_.reach);
    if (!way || !take(*way, terms_.speed)) continue;
    channel.gpus.push_back(gpu);
    visited_[static_cast<std::size_t>(gpu)] = 1;
    visit(channel);
    visited_[static_cast<std::size_t>(gpu)] = 0;
    channel.gpus.pop_back();
    give(*way, terms_.speed);
    if (finished()) return;
  }
}

void ChannelAttempt::leave(NodeChannel& channel) {
  switch (terms_.exit) {
    case ChannelExit::none:
      channel.nic_out = channel.nic_in;
      channel.out_gpu = channel.gpus.front();
      return complete(channel);
    case ChannelExit::closes: {
      const auto way = wires_.between_gpus(channel.gpus.back(), channel.gpus.front(), terms_.reach);
      if (!way || !take(*way, terms_.speed)) return;
      complete(channel);
      return give(*way, terms_.speed);
    }
    case ChannelExit::same_nic:
    case ChannelExit::same_nic_by_pxn:
      return leave_by(channel, channel.nic_in);
    case ChannelExit::cross_nic: {
      if (channels_.size() % 2 == 1) return leave_by(channel, channels_.back().nic_in);
      for (const std::int64_t nic : nics_)
        if (nic != channel.nic_in && !finished()) leave_by(channel, nic);
      return;
    }
  }
}

void ChannelAttempt::leave_by(NodeChannel& channel, std::int64_t nic) {
  const std::int64_t last = channel.gpus.back();
  const auto leave_from = [&](std::int64_t gpu, const WireRoute& way) {
    if (!take(way, terms_.nic_speed)) return;
    channel.nic_out = nic;
    channel.out_gpu = gpu;
    complete(channel);
    give(way, terms_.nic_speed);
  };
  if (near(wires_, last, nic, terms_.far_nics)) return leave_from(last, wires_.to_nic(last, nic));
  if (terms_.exit != ChannelExit::same_nic_by_pxn) return;
  for (const std::int64_t gpu : members_) {
    if (finished() || gpu == last || !near(wires_, gpu, nic, terms_.far_nics)) continue;
    const auto hop = wires_.between_gpus(last, gpu, terms_.reach);
    if (!hop) continue;
    WireRoute way = *hop;
    way.add(wires_.to_nic(gpu, nic));
    leave_from(gpu, way);
  }
}

void ChannelAttempt::complete(const NodeChannel& channel) {
  channels_.push_back(channel);
  // The channel's GPUs are free for the next one.
  std::vector<char> visited(visited_.size(), 0);
  visited.swap(visited_);
  next_channel();
  visited_ = std::move(visited);
  channels_.pop_back();
}

}  // namespace stepcast::sim
