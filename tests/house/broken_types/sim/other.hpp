#pragma once
namespace stepcast::sim {
namespace {
struct Own {};
}  // namespace
struct Way {
  double to = 0;
};
}  // namespace stepcast::sim
