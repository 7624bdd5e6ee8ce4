#include "engine/program.hpp"

namespace stepcast::engine {

Program unrolled(const Program& program) {
  Program out;
  out.num_events = program.num_events;
  out.num_lanes = program.num_lanes;
  auto at = program.instructions.begin();
  for (const Repeat& repeat : program.repeats) {
    const auto first = program.instructions.begin() + repeat.first;
    const auto end = program.instructions.begin() + repeat.end;
    out.instructions.insert(out.instructions.end(), at, first);
    for (std::uint32_t time = 0; time < repeat.count; ++time)
      for (at = first; at != end; ++at) {
        Instruction& i = out.instructions.emplace_back(*at);
        if (i.op == Op::record || i.op == Op::wait || i.op == Op::host_wait)
          i.arg += time * repeat.events;
      }
    at = end;
  }
  out.instructions.insert(out.instructions.end(), at, program.instructions.end());
  return out;
}

}  // namespace stepcast::engine
