#pragma once
#include "sim/report.hpp"
