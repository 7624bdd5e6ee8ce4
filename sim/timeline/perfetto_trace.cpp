// Perfetto's own format, about a third of the JSON: protos/perfetto/trace of google/perfetto
// (field numbers read there, 2026-11). Names are interned: written once, then numbers. Times are
// whole nanoseconds; a slice is two packets. Tracks are children of their process, in their order.
#include <cstdint>
#include <map>

#include "sim/files/protobuf.hpp"
#include "sim/timeline/trace_writer.hpp"

namespace stepcast::sim {
namespace {

constexpr std::uint32_t trace_packet = 1;
enum Packet : std::uint32_t {
  packet_timestamp = 8,
  packet_sequence = 10,
  packet_event = 11,
  packet_interned = 12,
  packet_flags = 13,
  packet_track = 60
};
enum Track : std::uint32_t {
  track_uuid = 1,
  track_name = 2,
  track_process = 3,
  track_parent = 5,
  track_counter = 8,
  track_child_ordering = 11,
  track_rank = 12
};
enum Event : std::uint32_t {
  event_category_iid = 3,
  event_annotation = 4,
  event_type = 9,
  event_name_iid = 10,
  event_track = 11,
  event_counter = 44,
  event_flow = 47,
  event_last_flow = 48
};
enum Annotation : std::uint32_t {
  annotation_name_iid = 1,
  annotation_bool = 2,
  annotation_int = 4,
  annotation_double = 5,
  annotation_string = 6
};
constexpr std::uint32_t process_pid = 1, process_name = 6, counter_unit_name = 6;
constexpr std::int64_t explicit_order = 3, slice_begin = 1, slice_end = 2, counter_value = 4;
constexpr std::int64_t state_cleared = 1, needs_state = 2;
constexpr std::uint64_t tracks_per_process = 4096;  // their numbers; the upper half are counters

std::int64_t nanoseconds(Duration d) { return (d.count() + (d.count() < 0 ? -500 : 500)) / 1000; }

std::uint64_t uuid_of(std::int64_t process, std::int64_t track) {
  return (static_cast<std::uint64_t>(process) + 1) * tracks_per_process +
         static_cast<std::uint64_t>(track + 1);
}
std::uint64_t counter_uuid(std::int64_t process, std::int64_t index) {
  return uuid_of(process, static_cast<std::int64_t>(tracks_per_process / 2) + index);
}

class PerfettoTrace final : public TraceWriter {
 public:
  explicit PerfettoTrace(std::string& out) : out_(out) {}

  /// Process 0 is the idle one in Perfetto: numbers are one higher than in JSON.
  void process(std::int64_t process, std::string_view name, std::span<const TraceArg>) override {
    ProtoWriter of, track;
    of.number(process_pid, process + 1);
    of.bytes(process_name, name);
    track.varint(track_uuid, uuid_of(process, -1));
    track.message(track_process, of);
    track.number(track_child_ordering, explicit_order);
    packet(packet_track, track);
  }

  void track(std::int64_t process, std::int64_t index, std::string_view name) override {
    ProtoWriter track;
    track.varint(track_uuid, uuid_of(process, index));
    track.bytes(track_name, name);
    track.varint(track_parent, uuid_of(process, -1));
    track.number(track_rank, index);
    packet(packet_track, track);
  }

  void counter(std::int64_t process, std::int64_t index, std::string_view name,
               std::string_view unit) override {
    ProtoWriter counter, track;
    counter.bytes(counter_unit_name, unit);
    track.varint(track_uuid, counter_uuid(process, index));
    track.bytes(track_name, name);
    track.varint(track_parent, uuid_of(process, -1));
    track.message(track_counter, counter);
    track.number(track_rank, static_cast<std::int64_t>(tracks_per_process / 2) + index);
    packet(packet_track, track);
  }

  void value(std::int64_t process, std::int64_t index, Duration when, double value) override {
    ProtoWriter event;
    event.number(event_type, counter_value);
    event.varint(event_track, counter_uuid(process, index));
    event.real(event_counter, value);
    packet(packet_event, event, nanoseconds(when));
  }

  void slice(const TraceSlice& s) override {
    ProtoWriter begin, end;
    begin.number(event_type, slice_begin);
    begin.varint(event_track, uuid_of(s.process, s.track));
    begin.varint(event_name_iid, interned(event_names, s.name));
    begin.varint(event_category_iid, interned(categories, s.category));
    for (const TraceArg& arg : s.args) begin.message(event_annotation, annotation(arg));
    for (const std::uint64_t number : s.leaving) begin.fixed64(event_flow, number);
    for (const std::uint64_t number : s.arriving) begin.fixed64(event_last_flow, number);
    packet(packet_event, begin, nanoseconds(s.start));
    end.number(event_type, slice_end);
    end.varint(event_track, uuid_of(s.process, s.track));
    packet(packet_event, end, nanoseconds(s.start + s.duration));
  }

  void arrow(const TraceArrow&) override {}  // its slices say it
  void finish() override {}

 private:
  /// Fields of InternedData.
  enum Names : std::uint32_t { categories = 1, event_names = 2, annotation_names = 3 };

  std::uint64_t interned(Names kind, std::string_view name) {
    auto& known = names_[kind];
    const auto at = known.find(name);
    if (at != known.end()) return at->second;
    const std::uint64_t number = known.size() + 1;
    known.emplace(name, number);
    ProtoWriter entry;
    entry.varint(1, number);
    entry.bytes(2, name);
    new_names_.message(kind, entry);
    return number;
  }

  ProtoWriter annotation(const TraceArg& arg) {
    ProtoWriter out;
    out.varint(annotation_name_iid, interned(annotation_names, arg.name));
    if (const auto* whole = std::get_if<std::int64_t>(&arg.value))
      out.number(annotation_int, *whole);
    else if (const auto* real = std::get_if<double>(&arg.value))
      out.real(annotation_double, *real);
    else if (const auto* yes = std::get_if<bool>(&arg.value))
      out.number(annotation_bool, *yes ? 1 : 0);
    else if (const auto* text = std::get_if<std::string_view>(&arg.value))
      out.bytes(annotation_string, *text);
    else if (const auto* time = std::get_if<Duration>(&arg.value))
      out.real(annotation_double, seconds(*time) * 1e6);
    return out;
  }

  void packet(Packet what, const ProtoWriter& message, std::int64_t when = -1) {
    ProtoWriter packet;
    if (when >= 0) packet.number(packet_timestamp, when);
    packet.number(packet_sequence, 1);
    packet.number(packet_flags, first_ ? state_cleared | needs_state : needs_state);
    first_ = false;
    if (!new_names_.text().empty()) packet.message(packet_interned, new_names_);
    new_names_.clear();
    packet.message(what, message);
    ProtoWriter trace;
    trace.message(trace_packet, packet);
    out_ += trace.text();
  }

  std::string& out_;
  bool first_ = true;
  std::map<Names, std::map<std::string, std::uint64_t, std::less<>>> names_;
  ProtoWriter new_names_;  // since the last packet
};

}  // namespace

std::unique_ptr<TraceWriter> perfetto_trace(std::string& out) {
  return std::make_unique<PerfettoTrace>(out);
}

}  // namespace stepcast::sim
