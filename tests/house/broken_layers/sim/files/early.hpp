#pragma once
#include "sim/run/session.hpp"
