// Lanes that do what is put on them when its turn comes, not when it is called. Kernels and groups
// for them: queued_kernels.hpp, queued_communicator.hpp.
#pragma once

#include <functional>

#include "validate/trainer/device/lanes.hpp"

namespace stepcast::validate {

class QueueLanes : public Lanes {
 public:
  /// On the lane that was taken last. `waits_for_rank`: until another rank does something.
  virtual void put(std::function<void()> work, bool waits_for_rank = false) = 0;
};

}  // namespace stepcast::validate
