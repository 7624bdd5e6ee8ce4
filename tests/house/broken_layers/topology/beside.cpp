#include <vector>

#include "workloads/plan.hpp"
