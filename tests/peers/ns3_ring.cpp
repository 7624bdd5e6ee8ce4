#include "ns3_ring.hpp"

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

namespace stepcast::peers {
namespace {

constexpr std::uint16_t port = 4791;

/// A member of the ring: sends a chunk for every chunk that came in, the first one unasked.
class Member {
 public:
  Member(const PacketRing& ring, ns3::Ptr<ns3::Node> node, double& finished)
      : ring_(ring), node_(std::move(node)), finished_(finished) {
    socket_ = ns3::Socket::CreateSocket(node_, ns3::UdpSocketFactory::GetTypeId());
    socket_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
    socket_->SetRecvCallback(ns3::MakeCallback(&Member::receive, this));
  }
  void connect(ns3::Ipv4Address next) { socket_->Connect(ns3::InetSocketAddress(next, port)); }
  void send_chunk() {
    ++sent_;
    for (std::uint32_t at = 0; at < ring_.chunk; at += ring_.payload) {
      const std::uint32_t size = std::min(ring_.payload, ring_.chunk - at);
      if (socket_->Send(ns3::Create<ns3::Packet>(size)) < 0)
        throw std::runtime_error("ns-3 refuses a packet");
    }
  }
  bool done() const { return received_ == std::uint64_t{ring_.chunk} * ring_.steps; }

 private:
  void receive(ns3::Ptr<ns3::Socket> socket) {
    while (const ns3::Ptr<ns3::Packet> packet = socket->Recv()) {
      const std::uint64_t before = received_ / ring_.chunk;
      received_ += packet->GetSize();
      if (received_ / ring_.chunk > before && sent_ < ring_.steps) send_chunk();
    }
    if (done()) finished_ = std::max(finished_, ns3::Simulator::Now().GetSeconds());
  }

  const PacketRing& ring_;
  ns3::Ptr<ns3::Node> node_;
  ns3::Ptr<ns3::Socket> socket_;
  double& finished_;
  std::uint64_t received_ = 0;
  std::uint32_t sent_ = 0;
};

/// Queues hold a whole step: nothing is dropped, as with a lossless fabric.
ns3::PointToPointHelper link_of(const PacketRing& ring) {
  ns3::PointToPointHelper link;
  link.SetDeviceAttribute("DataRate",
                          ns3::DataRateValue(static_cast<std::uint64_t>(ring.bits_per_second)));
  link.SetDeviceAttribute("Mtu", ns3::UintegerValue(ring.payload + header_bytes));
  link.SetChannelAttribute(
      "Delay",
      ns3::TimeValue(ns3::PicoSeconds(static_cast<std::uint64_t>(ring.latency / 2 * 1e12 + 0.5))));
  link.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("1000000p"));
  return link;
}

}  // namespace

double ns3_ring(const PacketRing& ring) {
  ns3::Time::SetResolution(ns3::Time::PS);  // a packet takes 82.52 ns
  ns3::NodeContainer hosts, the_switch;
  hosts.Create(ring.hosts);
  the_switch.Create(1);
  ns3::InternetStackHelper internet;
  internet.Install(hosts);
  internet.Install(the_switch);

  const ns3::PointToPointHelper link = link_of(ring);
  ns3::TrafficControlHelper traffic_control;
  std::vector<ns3::Ipv4Address> addresses;
  ns3::Ipv4AddressHelper subnets("10.0.0.0", "255.255.255.252");
  for (std::uint32_t h = 0; h < ring.hosts; ++h) {
    ns3::PointToPointHelper cable = link;
    const auto devices = cable.Install(hosts.Get(h), the_switch.Get(0));
    const auto interfaces = subnets.Assign(devices);
    traffic_control.Uninstall(devices);  // its queues drop
    addresses.push_back(interfaces.GetAddress(0));
    subnets.NewNetwork();
  }
  ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

  double finished = 0.0;
  std::vector<std::unique_ptr<Member>> members;
  for (std::uint32_t h = 0; h < ring.hosts; ++h)
    members.push_back(std::make_unique<Member>(ring, hosts.Get(h), finished));
  for (std::uint32_t h = 0; h < ring.hosts; ++h) {
    members[h]->connect(addresses[(h + 1) % ring.hosts]);
    ns3::Simulator::Schedule(ns3::Seconds(0), &Member::send_chunk, members[h].get());
  }
  ns3::Simulator::Run();
  for (const auto& member : members)
    if (!member->done()) throw std::runtime_error("ns-3 lost packets");
  return finished;
}

}  // namespace stepcast::peers
