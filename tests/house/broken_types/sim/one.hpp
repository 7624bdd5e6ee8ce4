#pragma once
namespace stepcast::sim {
struct Way {
  int from = 0;
};
}  // namespace stepcast::sim
