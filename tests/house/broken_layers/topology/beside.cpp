#include <vector>

#include "workloads/plan/plan.hpp"
